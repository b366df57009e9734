//! Sizes of the processor's caches, and the memory level from which a kernel reads its operands.

use std::sync::LazyLock;

/// Sizes of the caches in bytes, and the maker of the processor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Caches {
    /// Size of a core's L1 data cache.
    l1: usize,
    /// Size of a core's L2 cache.
    l2: usize,
    /// Size of the L3 cache, or of the L2 cache if the processor has no L3 cache.
    l3: usize,
    /// Whether AMD made the processor.
    is_amd: bool,
}

/// Sizes that are assumed if the processor does not report its caches.
const DEFAULT_CACHES: Caches = Caches { l1: 48 << 10, l2: 1 << 20, l3: 32 << 20, is_amd: false };

/// Smallest size of operands, in bytes, at which the operands count as operands in memory even if
/// the L3 cache is larger. Large L3 caches belong to servers, whose cores and virtual machines
/// share them.
const MEMORY_MIN_BYTES: usize = 16 << 20;

/// The memory level in which a kernel finds its operands if the operands were used shortly before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Residence {
    /// The operands fit in the L1 and L2 caches of the cores.
    PrivateCaches,
    /// The operands exceed the private caches, but may fit in the L3 cache.
    L3,
    /// The operands do not stay in the caches.
    Memory,
}

impl Residence {
    /// Returns the residence of operands of `bytes` bytes in total, which `threads` threads divide
    /// among themselves.
    pub(crate) fn of(bytes: usize, threads: usize) -> Self {
        Caches::of_processor().residence(bytes, threads)
    }

    /// Returns whether a kernel that only reads its operands is faster with software prefetch.
    ///
    /// Without software prefetch, neither the measured Xeons nor Zen 5 fetch early enough from the
    /// L3 cache. For operands in memory, software prefetch makes the measured Xeons faster, but
    /// delays the hardware prefetchers of Zen 5. On Zen 4, software prefetch is slower for both
    /// (decision 55).
    pub(crate) fn prefetches_reads(self) -> bool {
        match self {
            Self::PrivateCaches => false,
            Self::L3 => !is_amd_with_small_l1(),
            Self::Memory => !is_amd(),
        }
    }

    /// Returns whether a kernel that reads and writes an operand is faster with software prefetch.
    pub(crate) fn prefetches_updates(self) -> bool {
        match self {
            Self::PrivateCaches => false,
            Self::L3 => is_amd() && !is_amd_with_small_l1(),
            Self::Memory => !is_amd(),
        }
    }
}

/// Returns whether AMD made the processor.
pub(crate) fn is_amd() -> bool {
    Caches::of_processor().is_amd
}

/// Returns whether AMD made the processor, and its L1 data cache has at most 32 KiB, as in Zen 4 and
/// earlier. In such a cache, only eight cache lines that are a multiple of 4 KiB apart fit at a time.
pub(crate) fn is_amd_with_small_l1() -> bool {
    Caches::of_processor().is_amd_with_small_l1()
}

/// Returns whether a kernel that loads two operands and stores a third one is faster with vectors of
/// 128 bits than with wider ones. The operands have `bytes` bytes in total.
///
/// On Zen 4, vectors of 128 bits are faster if the operands fill more than a third of the L3 cache, and
/// slower if they fill less (decision 62).
pub(crate) fn prefers_128_bits(bytes: usize) -> bool {
    Caches::of_processor().is_beyond_third_of_l3(bytes)
}

/// Returns whether a kernel that reads, or reads and writes, each element of its operands is faster if
/// it alternates between two distant parts of each operand. The operands have `bytes` bytes in total.
///
/// On Zen 4, it is faster if the operands fill more than a third of the L3 cache. Other processors have
/// not been measured (decision 63).
pub(crate) fn alternates_places(bytes: usize) -> bool {
    Caches::of_processor().is_beyond_third_of_l3(bytes)
}

/// Returns whether operands of `bytes` bytes in total fit in the L3 cache.
pub(crate) fn fits_l3(bytes: usize) -> bool {
    bytes <= Caches::of_processor().l3
}

impl Caches {
    fn of_processor() -> Self {
        static CACHES: LazyLock<Caches> = LazyLock::new(|| match Caches::detect() {
            (Some((l1, l2, l3)), is_amd) => Caches { l1, l2, l3, is_amd },
            (None, is_amd) => Caches { is_amd, ..DEFAULT_CACHES },
        });
        *CACHES
    }

    fn is_amd_with_small_l1(self) -> bool {
        self.is_amd && self.l1 <= 32 << 10
    }

    /// Returns whether AMD made the processor before Zen 5, and operands of `bytes` bytes in total fill
    /// more than a third of the L3 cache.
    fn is_beyond_third_of_l3(self, bytes: usize) -> bool {
        self.is_amd_with_small_l1() && bytes > self.l3 / 3
    }

    /// Operands of at least half the L3 cache count as operands in memory, because other data and
    /// other cores also use the L3 cache.
    fn residence(self, bytes: usize, threads: usize) -> Residence {
        if bytes >= (self.l3 / 2).min(MEMORY_MIN_BYTES) {
            Residence::Memory
        } else if bytes > self.l2.saturating_mul(threads) {
            Residence::L3
        } else {
            Residence::PrivateCaches
        }
    }

    /// Returns the sizes of L1, L2 and L3 that the processor reports through the instruction CPUID, and
    /// whether AMD made the processor. The sizes are `None` if the processor does not report its
    /// caches, as in some virtual machines.
    #[cfg(target_arch = "x86_64")]
    fn detect() -> (Option<(usize, usize, usize)>, bool) {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        /// The maker's name `AuthenticAMD`, as leaf 0 returns it in EBX, EDX and ECX.
        const AMD: [u32; 3] = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
        /// Bit of ECX in leaf 8000_0001h: the processor has leaf 8000_001Dh, which describes its
        /// caches.
        const TOPOLOGY_EXTENSIONS: u32 = 1 << 22;
        let basic = __cpuid(0);
        let is_amd = [basic.ebx, basic.edx, basic.ecx] == AMD;
        let leaf = if !is_amd {
            (basic.eax >= 4).then_some(4)
        } else {
            let has_leaf = __cpuid(0x8000_0000).eax >= 0x8000_001d
                && __cpuid(0x8000_0001).ecx & TOPOLOGY_EXTENSIONS != 0;
            has_leaf.then_some(0x8000_001d)
        };
        let Some(leaf) = leaf else { return (None, is_amd) };
        let size_of_level = |level| {
            let caches = (0..8).map(|i| __cpuid_count(leaf, i)).take_while(|c| c.eax & 31 != 0);
            let data_or_unified = caches.filter(|c| c.eax & 31 != 2);
            let sizes = data_or_unified.filter(|c| c.eax >> 5 & 7 == level).map(|c| {
                let (ways, partitions) = ((c.ebx >> 22) + 1, (c.ebx >> 12 & 0x3ff) + 1);
                let (line, sets) = ((c.ebx & 0xfff) + 1, u64::from(c.ecx) + 1);
                (u64::from(ways) * u64::from(partitions) * u64::from(line) * sets) as usize
            });
            sizes.max()
        };
        let sizes = size_of_level(1).zip(size_of_level(2));
        (sizes.map(|(l1, l2)| (l1, l2, size_of_level(3).unwrap_or(l2))), is_amd)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> (Option<(usize, usize, usize)>, bool) {
        (None, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residence_follows_from_the_sizes_of_the_caches() {
        let zen = Caches { l1: 48 << 10, l2: 1 << 20, l3: 32 << 20, is_amd: true };
        let xeon = Caches { l1: 48 << 10, l2: 2 << 20, l3: 260 << 20, is_amd: false };
        let small = Caches { l1: 32 << 10, l2: 256 << 10, l3: 4 << 20, is_amd: false };
        let levels = |bytes: usize, threads: usize| {
            [zen, xeon, small].map(|caches| caches.residence(bytes, threads))
        };
        use Residence::{L3, Memory, PrivateCaches};
        assert_eq!(levels(256 << 10, 1), [PrivateCaches; 3]);
        assert_eq!(levels(1 << 20, 1), [PrivateCaches, PrivateCaches, L3]);
        assert_eq!(levels((1 << 20) + 4, 1), [L3, PrivateCaches, L3]);
        assert_eq!(levels((1 << 20) + 4, 2), [PrivateCaches, PrivateCaches, L3]);
        assert_eq!(levels((16 << 20) - 4, 1), [L3, L3, Memory]);
        assert_eq!(levels(16 << 20, 1), [Memory; 3]);
    }

    #[test]
    fn only_amd_with_small_l1_has_operands_beyond_a_third_of_l3() {
        let zen4 = Caches { l1: 32 << 10, l2: 1 << 20, l3: 30 << 20, is_amd: true };
        let zen5 = Caches { l1: 48 << 10, ..zen4 };
        let other = Caches { is_amd: false, ..zen4 };
        let is_beyond = |bytes| [zen4, zen5, other].map(|c| c.is_beyond_third_of_l3(bytes));
        assert_eq!(is_beyond(10 << 20), [false; 3]);
        assert_eq!(is_beyond((10 << 20) + 1), [true, false, false]);
    }

    /// Linux also reads the sizes with CPUID, but with its own code, and reports them in `/sys`.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn detected_sizes_are_those_of_the_operating_system() {
        let read = |cpu: usize, index: usize, name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
            std::fs::read_to_string(path).ok()
        };
        let size = |cpu: usize, level: &str| {
            let is_data = |i| read(cpu, i, "type").is_some_and(|t| t.trim() != "Instruction");
            let is_level = |i| read(cpu, i, "level").is_some_and(|l| l.trim() == level);
            let index = (0..8).find(|&i| is_data(i) && is_level(i))?;
            Some(read(cpu, index, "size")?.trim().strip_suffix('K')?.parse::<usize>().ok()? << 10)
        };
        // The cores of a hybrid processor differ in their caches.
        let cpus = (0..1024).map_while(|cpu| {
            let (l1, l2) = (size(cpu, "1")?, size(cpu, "2")?);
            Some((l1, l2, size(cpu, "3").unwrap_or(l2)))
        });
        let cpus: Vec<_> = cpus.collect();
        // Without sizes, the system does not report the caches, or the processor has no L2.
        if let Some(&first) = cpus.first() {
            let detected = Caches::detect().0.unwrap_or(first);
            assert!(cpus.contains(&detected), "{detected:?}, {cpus:?}");
            let hides_caches = Caches::detect().0.is_none();
            assert!(!hides_caches || is_amd(), "CPUID reports no caches: {cpus:?}");
        }
    }
}

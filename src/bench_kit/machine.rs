//! Description of the machine: processor, caches, threads and instruction sets.

use crate::host::simd_instruction_set;
use std::{fs, thread};

/// Returns names and values that describe the machine on which the program runs. Omits values that
/// the system does not report.
pub(super) fn machine() -> Vec<(String, String)> {
    let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpu_info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let caches = cache_levels().into_iter();
    let caches: Vec<_> =
        caches.map(|(level, bytes)| format!("L{level} {} KiB", bytes >> 10)).collect();
    let rows = [
        ("processor", field("model name")),
        ("threads", Some(threads.to_string())),
        ("caches", Some(caches.join(", ")).filter(|caches| !caches.is_empty())),
        ("vector instructions of the kernels", Some(simd_instruction_set().to_owned())),
        ("system", Some(format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))),
        ("cortado", Some(env!("CARGO_PKG_VERSION").to_owned())),
    ];
    let row = |(name, value): (&str, Option<String>)| Some((name.to_owned(), value?));
    rows.into_iter().filter_map(row).collect()
}

/// Returns the levels and the sizes in bytes of the data caches of the first processor, on Linux,
/// in ascending order. Returns an empty list on other systems.
pub(super) fn cache_levels() -> Vec<(u64, u64)> {
    let read = |index: usize, name: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
        Some(fs::read_to_string(path).ok()?.trim().to_owned())
    };
    let cache = |index| {
        let kind = read(index, "type")?;
        let level = read(index, "level")?.parse().ok()?;
        let bytes = parse_size(&read(index, "size")?)?;
        (kind != "Instruction").then_some((level, bytes))
    };
    let mut levels: Vec<_> = (0..8).filter_map(cache).collect();
    levels.sort_unstable();
    levels
}

/// Parses a size such as `48K`.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes_have_units() {
        let sizes = ["48K", "32M", "64", "", "xK"].map(parse_size);
        assert_eq!(sizes, [Some(48 << 10), Some(32 << 20), Some(64), None, None]);
    }
}

//! SIMD level at which kernels run, and the choice at run time among the versions of a kernel, one
//! of which is compiled for each level.

#[cfg(target_arch = "x86_64")]
use crate::host::cache::residence::{is_amd, is_amd_with_small_l1};
use crate::host::simd::{fma::FmaMode, limit::SimdLimit};
use std::sync::OnceLock;

/// Instruction set for which a kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SimdLevel {
    /// SIMD level that requires AVX-512 F, BW, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// SIMD level that requires AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// SIMD level that requires NEON, which every AArch64 processor has.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Portable SIMD level, for processes with the limit [`SimdLimit::Portable`]. Portable code
    /// emulates FMA where the compilation target lacks it, so results are bit-identical to those of
    /// `Avx512`, `Avx2` and `Neon`.
    Portable,
    /// SIMD level of a processor that supports none of the other levels' instruction sets, unless
    /// the process has the limit [`SimdLimit::Portable`]. Matrix products of `f32` and
    /// `f64` do not emulate FMA, so they are faster than at `Portable`, but differ in the last bits.
    WithoutFma,
}

/// Smallest number of elements of a memory-bound loop for which AVX2 can be faster than AVX-512. For
/// `x²` of 4096 elements on Zen 4, AVX-512 was faster.
#[cfg(target_arch = "x86_64")]
const AVX2_MIN_LEN: usize = 1 << 14;

/// The properties of the processor from which short kernels choose their code. They are detected only
/// once, because checking all processor features on every call would slow down short kernels. They
/// share a cache line, because each further cache line displaces operands from L1.
#[derive(Clone, Copy)]
pub(crate) struct Processor {
    /// SIMD level at which kernels run: the highest level of this process, unless a test has set
    /// another level.
    pub(crate) level: SimdLevel,
    /// Result of [`is_amd`].
    #[cfg(target_arch = "x86_64")]
    pub(crate) is_amd: bool,
    /// Result of [`is_amd_with_small_l1`].
    #[cfg(target_arch = "x86_64")]
    pub(crate) is_amd_with_small_l1: bool,
}

static PROCESSOR: OnceLock<Processor> = OnceLock::new();

impl Processor {
    /// Returns the properties of the processor.
    #[inline(always)]
    fn get() -> Self {
        Self::at_test_level(*PROCESSOR.get_or_init(Self::detect))
    }

    /// Returns [`get`](Self::get) if the properties have been detected before, and otherwise `None`.
    ///
    /// A short kernel calls `known` to choose its code. If `known` returns `None`, the kernel calls
    /// a separate function. If the kernel itself contained the call that detects the properties,
    /// the kernel would save registers for this call every time.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn known() -> Option<Self> {
        PROCESSOR.get().copied().map(Self::at_test_level)
    }

    fn detect() -> Self {
        Self {
            level: SimdLevel::detect(SimdLimit::of_process()),
            #[cfg(target_arch = "x86_64")]
            is_amd: is_amd(),
            #[cfg(target_arch = "x86_64")]
            is_amd_with_small_l1: is_amd_with_small_l1(),
        }
    }

    /// Returns the processor with the SIMD level that a test has set for this thread, if any.
    #[inline(always)]
    fn at_test_level(self) -> Self {
        #[cfg(test)]
        if let Some(level) = TEST_LEVEL.get() {
            return Self { level, ..self };
        }
        self
    }
}

impl SimdLevel {
    /// Returns the SIMD level at which kernels run on this thread: the highest level, unless a test
    /// has set another level.
    #[inline(always)]
    pub(crate) fn current() -> Self {
        Processor::get().level
    }

    /// Returns the SIMD level at which a loop over `len` elements is fastest, if the loop does little
    /// else than loading and storing the elements. The level is [`current`](Self::current), or
    /// `Avx2` instead of `Avx512` for long loops on AMD's processors before Zen 5. These processors
    /// execute an instruction of AVX-512 on units of 256 bits (decision 55).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables))]
    pub(crate) fn memory_bound(len: usize) -> Self {
        let processor = Processor::get();
        #[cfg(target_arch = "x86_64")]
        if len >= AVX2_MIN_LEN && processor.level == Self::Avx512 && processor.is_amd_with_small_l1
        {
            return Self::Avx2;
        }
        processor.level
    }

    /// Returns the highest SIMD level that the processor supports and the process's [`SimdLimit`]
    /// allows.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn highest() -> Self {
        PROCESSOR.get_or_init(Processor::detect).level
    }

    /// Returns the highest SIMD level that the processor supports and `limit` allows.
    fn detect(limit: SimdLimit) -> Self {
        if limit == SimdLimit::Portable {
            return Self::Portable;
        }
        #[cfg(target_arch = "x86_64")]
        if limit >= SimdLimit::Avx512 && has_avx512_features() {
            return Self::Avx512;
        } else if has_avx2_features() {
            return Self::Avx2;
        }
        #[cfg(target_arch = "aarch64")]
        if limit > SimdLimit::Portable {
            return Self::Neon;
        }
        Self::WithoutFma
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx512_features() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(target_arch = "x86_64")]
fn has_avx2_features() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}

/// Returns whether kernels on this thread may use AVX-512 F, BW, DQ and VL.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx512() -> bool {
    SimdLevel::current() == SimdLevel::Avx512
}

/// Runs the version of `kernel` that is compiled for [`SimdLevel::current`], and passes it the
/// [`FmaMode`] for computing `a·b + c`.
///
/// The closure `kernel` and all functions that `kernel` calls must be `#[inline(always)]`, because
/// only inlined code is compiled for the vectors of the SIMD level. The Rust compiler neither
/// contracts nor reorders floating-point operations, so all SIMD levels give bit-identical results.
/// `f32::mul_add` and `f64::mul_add` are one instruction on AVX2, AVX-512 and NEON, and may be
/// library calls, with identical rounding, at the portable level.
#[inline(always)]
pub(crate) fn vectorized<R>(kernel: impl FnOnce(FmaMode) -> R) -> R {
    // SAFETY: the current SIMD level was detected.
    unsafe { run_version(SimdLevel::current(), kernel) }
}

/// Like [`vectorized`], but runs the version for [`SimdLevel::memory_bound`]. `kernel` is a loop over
/// `len` elements.
#[inline(always)]
pub(crate) fn vectorized_memory_bound<R>(len: usize, kernel: impl FnOnce(FmaMode) -> R) -> R {
    // SAFETY: the level is the current SIMD level, which was detected, or a lower level.
    unsafe { run_version(SimdLevel::memory_bound(len), kernel) }
}

/// Calls `kernel` in a function that is not inlined, so that the caller does not save the registers
/// that `kernel` uses.
#[cfg(target_arch = "x86_64")]
#[cold]
#[inline(never)]
pub(crate) fn call_outlined<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

/// Runs the version of `kernel` for `level`.
///
/// # Safety
/// The processor has the features of `level`.
#[inline(always)]
unsafe fn run_version<R>(level: SimdLevel, kernel: impl FnOnce(FmaMode) -> R) -> R {
    match level {
        // SAFETY: the caller guarantees the features of `level`.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => unsafe { kernel.avx512() },
        // SAFETY: the caller guarantees the features of `level`.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => unsafe { kernel.avx2() },
        _ => kernel.portable(),
    }
}

/// The versions of a kernel, one for each SIMD level.
///
/// The versions of a kernel are methods of the closure and not functions, because rustc compiles a
/// method of a closure together with the module that contains the closure. If the versions were
/// functions, the versions of all kernels would share one codegen unit, and a debug build would
/// recompile all of them (18 s) after an edit of one kernel.
trait KernelVersions<R> {
    /// Runs the version that is compiled for AVX-512.
    ///
    /// # Safety
    /// The processor must support AVX-512 F, BW, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    unsafe fn avx512(self) -> R;

    /// Runs the version that is compiled for AVX2.
    ///
    /// # Safety
    /// The processor must support AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    unsafe fn avx2(self) -> R;

    /// Runs the version that is compiled only for the features of the compilation target.
    fn portable(self) -> R;
}

impl<R, K: FnOnce(FmaMode) -> R> KernelVersions<R> for K {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn avx512(self) -> R {
        self(FmaMode::Hardware)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2(self) -> R {
        self(FmaMode::Hardware)
    }

    // On x86-64, `portable` is not inlined, because the portable level is rare and inlined code
    // would lengthen the caller.
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn portable(self) -> R {
        self(FmaMode::BASE)
    }
}

/// Returns the name of the SIMD instruction set that kernels on this host use.
///
/// ```
/// let name = cortado::host::simd_instruction_set();
/// assert!(["AVX-512", "AVX2", "SSE2", "NEON", "SIMD128", "none"].contains(&name));
/// ```
pub fn simd_instruction_set() -> &'static str {
    match SimdLevel::current() {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => "AVX-512",
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => "AVX2",
        #[cfg(target_arch = "aarch64")]
        SimdLevel::Neon => "NEON",
        SimdLevel::Portable | SimdLevel::WithoutFma => match () {
            () if cfg!(target_feature = "sse2") => "SSE2",
            () if cfg!(target_feature = "neon") => "NEON",
            () if cfg!(target_feature = "simd128") => "SIMD128",
            () => "none",
        },
    }
}

#[cfg(test)]
thread_local! {
    /// SIMD level that a test has set for kernels on this thread.
    static TEST_LEVEL: std::cell::Cell<Option<SimdLevel>> = const { std::cell::Cell::new(None) };
}

/// Returns whether a test has overridden the SIMD level of this thread. While a test overrides the
/// SIMD level, instructions that multiply `bf16` are disabled.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn has_test_level() -> bool {
    TEST_LEVEL.get().is_some()
}

/// Calls `body` once for each SIMD level that the processor supports. The SIMD level applies to the
/// calling thread only, so `body` should use one thread.
#[cfg(test)]
pub(crate) fn with_each_simd_level(mut body: impl FnMut()) {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512_features() {
            with_level(SimdLevel::Avx512, &mut body);
        }
        if has_avx2_features() {
            with_level(SimdLevel::Avx2, &mut body);
        }
    }
    #[cfg(target_arch = "aarch64")]
    with_level(SimdLevel::Neon, &mut body);
    with_level(SimdLevel::Portable, &mut body);
    // Every AArch64 processor has FMA, so none runs at the level `WithoutFma`.
    if cfg!(not(target_arch = "aarch64")) {
        with_level(SimdLevel::WithoutFma, body);
    }
}

/// Calls `body` once for each SIMD level at which matrix products use FMA, by an instruction or
/// emulated. Results at these levels must be bit-identical.
#[cfg(test)]
pub(crate) fn with_each_fused_level(mut body: impl FnMut()) {
    with_each_simd_level(|| {
        if SimdLevel::current() != SimdLevel::WithoutFma {
            body();
        }
    });
}

/// Calls `body` on this thread at the SIMD level `level`, which the processor must support.
#[cfg(test)]
pub(crate) fn with_level(level: SimdLevel, body: impl FnOnce()) {
    TEST_LEVEL.set(Some(level));
    body();
    TEST_LEVEL.set(None);
}

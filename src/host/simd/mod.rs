//! One source, compiled for several vector widths, chosen at run time.

pub(crate) mod accumulator;
pub(crate) mod fma;
pub(crate) mod vector;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

use crate::host::simd::fma::FmaMode;
#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// Runs `kernel` compiled for the widest vectors this processor has.
///
/// The closure and all that it calls must be `#[inline(always)]`: only what is inlined here is
/// compiled for the wider vectors. No floating-point operation is contracted or reordered by
/// this, so every width gives the same bits. `mul_add` is one instruction at the wider widths;
/// without them it may be a call, and rounds the same.
#[inline(always)]
pub(crate) fn vectorized<R>(kernel: impl FnOnce() -> R) -> R {
    vectorized_fma(
        #[inline(always)]
        |_| kernel(),
    )
}

/// As [`vectorized`], and says how products are added there.
#[inline(always)]
pub(crate) fn vectorized_fma<R>(kernel: impl FnOnce(FmaMode) -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    match *WIDTH {
        // SAFETY: the processor has what `avx512` is compiled for: it was detected.
        #[allow(unsafe_code)]
        SimdLevel::Avx512 => return unsafe { avx512(kernel) },
        // SAFETY: the processor has what `avx2` is compiled for: it was detected.
        #[allow(unsafe_code)]
        SimdLevel::Avx2 => return unsafe { avx2(kernel) },
        SimdLevel::Base => {}
    }
    base(kernel)
}

/// What other processors run: a call, so that the rest of the caller stays short.
#[cfg_attr(target_arch = "x86_64", inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline(always))]
fn base<R>(kernel: impl FnOnce(FmaMode) -> R) -> R {
    kernel(FmaMode::BASE)
}

/// The instructions that kernels on this host use for vectors.
pub fn simd_instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    match *WIDTH {
        SimdLevel::Avx512 => return "AVX-512",
        SimdLevel::Avx2 => return "AVX2",
        SimdLevel::Base => {}
    }
    match () {
        () if cfg!(target_feature = "sse2") => "SSE2",
        () if cfg!(target_feature = "neon") => "NEON",
        () => "none",
    }
}

/// Whether there is all that `avx512` is compiled for.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx512() -> bool {
    matches!(*WIDTH, SimdLevel::Avx512)
}

#[cfg(target_arch = "x86_64")]
enum SimdLevel {
    Base,
    Avx2,
    Avx512,
}

/// The widest vectors, looked up once: short kernels would feel a look at each instruction set.
#[cfg(target_arch = "x86_64")]
static WIDTH: LazyLock<SimdLevel> = LazyLock::new(|| {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        return SimdLevel::Avx512;
    }
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    if avx2 { SimdLevel::Avx2 } else { SimdLevel::Base }
});

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<R>(kernel: impl FnOnce(FmaMode) -> R) -> R {
    kernel(FmaMode::Hardware)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<R>(kernel: impl FnOnce(FmaMode) -> R) -> R {
    kernel(FmaMode::Hardware)
}

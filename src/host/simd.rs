//! One source, compiled for several vector widths, chosen at run time.

/// Runs `kernel` compiled for the widest vectors this processor has.
///
/// The closure and all that it calls must be `#[inline(always)]`: only what is inlined here is
/// compiled for the wider vectors. No floating-point operation is contracted or reordered by
/// this, so every width gives the same bits. `mul_add` is one instruction at the wider widths;
/// without them it may be a call, and rounds the same.
#[inline(always)]
pub(crate) fn vectorized<R>(kernel: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the processor has what `avx512` is compiled for: it was just detected.
            #[allow(unsafe_code)]
            return unsafe { avx512(kernel) };
        }
        if has_avx2() {
            // SAFETY: the processor has what `avx2` is compiled for: it was just detected.
            #[allow(unsafe_code)]
            return unsafe { avx2(kernel) };
        }
    }
    kernel()
}

/// The instructions that kernels on this host use for vectors.
pub fn vector_instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            return "AVX-512";
        }
        if has_avx2() {
            return "AVX2";
        }
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
pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// Whether there is all that `avx2` is compiled for.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

//! One source, compiled for several vector widths, chosen at run time.

/// Runs `kernel` compiled for the widest vectors this processor has.
///
/// The closure and all that it calls must be `#[inline(always)]`: only what is inlined here is
/// compiled for the wider vectors. No floating-point operation is contracted or reordered by
/// this, so every width gives the same bits.
#[inline(always)]
pub(crate) fn vectorized<R>(kernel: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has what `avx512` is compiled for: all four were just detected.
            #[allow(unsafe_code)]
            return unsafe { avx512(kernel) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what `avx2` is compiled for: it was just detected.
            #[allow(unsafe_code)]
            return unsafe { avx2(kernel) };
        }
    }
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

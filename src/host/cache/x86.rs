//! Prefetch, non-temporal store and store fence on x86-64.

use std::{
    arch::x86_64::{
        __m128i, _MM_HINT_T0, _MM_HINT_T1, _mm_loadu_si128, _mm_prefetch, _mm_sfence,
        _mm_stream_si128,
    },
    ptr::{from_mut, from_ref},
};

/// Prefetches the cache line at `p` into L1. The address `p` need not be readable.
#[inline(always)]
pub(crate) fn prefetch_l1<A>(p: *const A) {
    // SAFETY: a prefetch of any address never faults and changes no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
}

/// Prefetches the cache line at `p` into L2. The address `p` need not be readable.
#[inline(always)]
pub(crate) fn prefetch_l2<A>(p: *const A) {
    // SAFETY: a prefetch of any address never faults and changes no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) };
}

/// Array of bytes that is as long as an SSE2 vector.
pub(crate) type Vector = [u8; size_of::<__m128i>()];

/// `y ← x` with a non-temporal store.
///
/// # Safety
/// `y` is aligned to 16 bytes.
#[inline(always)]
pub(crate) unsafe fn stream(x: &Vector, y: &mut Vector) {
    // SAFETY: `x` and `y` are 16 bytes long, the load needs no alignment, and the caller aligned
    // `y`.
    unsafe { _mm_stream_si128(from_mut(y).cast(), _mm_loadu_si128(from_ref(x).cast())) };
}

/// Makes earlier non-temporal stores visible to other threads before later stores.
pub(crate) fn store_fence() {
    // SAFETY: the store fence instruction has no preconditions.
    unsafe { _mm_sfence() };
}

//! Where operands begin within a cache line.
//!
//! A vector that lies across two lines is loaded or stored twice. Where elements come from beyond
//! the first-level cache, that halves the rate; stores are slower in it, too.

/// Bytes of a cache line, and of the widest vector.
const CACHE_LINE: usize = 64;

/// Bytes from which on it pays to read from the beginning of a line.
const ALIGN_LOADS_MIN_BYTES: usize = 32 << 10;

/// Bytes from which on it pays to write from the beginning of a line.
const ALIGN_STORES_MIN_BYTES: usize = 2 << 10;

/// Elements of `x`, which is read, before the first that begins a line; 0 if that does not pay.
#[inline(always)]
pub(crate) fn load_peel_len<A>(x: &[A]) -> usize {
    before(x, ALIGN_LOADS_MIN_BYTES)
}

/// As [`before_line`], of what is written.
#[inline(always)]
pub(crate) fn store_peel_len<A>(y: &[A]) -> usize {
    before(y, ALIGN_STORES_MIN_BYTES)
}

/// Calls `body` with parts of `y`, which is written, of which all but a short one begin a line.
#[inline(always)]
pub(crate) fn with_aligned_stores<Y>(y: &mut [Y], mut body: impl FnMut(&mut [Y])) {
    let before = store_peel_len(y);
    let (first, rest) = y.split_at_mut(before);
    if before > 0 {
        body(first);
    }
    body(rest);
}

/// As [`by_lines`], with the same parts of `x`, as long as `y`.
#[inline(always)]
pub(crate) fn zip_with_aligned_stores<X, Y>(
    x: &[X],
    y: &mut [Y],
    mut body: impl FnMut(&[X], &mut [Y]),
) {
    let (first_x, rest_x) = x.split_at(store_peel_len(y));
    let (first, rest) = y.split_at_mut(first_x.len());
    if !first.is_empty() {
        body(first_x, first);
    }
    body(rest_x, rest);
}

/// Elements for which [`lines_ahead`] and [`with_lines_ahead`] ask at a time.
const PREFETCH_BLOCK_LEN: usize = 64;

/// As [`by_lines`] of what comes from memory: what follows is asked for meanwhile.
#[inline(always)]
pub(crate) fn with_prefetch<Y>(y: &mut [Y], mut body: impl FnMut(&mut [Y])) {
    let (first, y) = y.split_at_mut(store_peel_len(y));
    body(first);
    let (blocks, rest) = y.as_chunks_mut::<PREFETCH_BLOCK_LEN>();
    for y in blocks {
        prefetch_after(y);
        body(y);
    }
    body(rest);
}

/// As [`lines_ahead`], with the same parts of `x`, as long as `y`.
#[inline(always)]
pub(crate) fn zip_with_prefetch<X, Y>(x: &[X], y: &mut [Y], mut body: impl FnMut(&[X], &mut [Y])) {
    let (first_x, x) = x.split_at(store_peel_len(y));
    let (first, y) = y.split_at_mut(first_x.len());
    body(first_x, first);
    let ((blocks_x, rest_x), (blocks, rest)) =
        (x.as_chunks::<PREFETCH_BLOCK_LEN>(), y.as_chunks_mut::<PREFETCH_BLOCK_LEN>());
    for (x, y) in blocks_x.iter().zip(blocks) {
        prefetch_after(x);
        prefetch_after(y);
        body(x, y);
    }
    body(rest_x, rest);
}

/// Bytes by which [`ahead`] goes before its reader: past what a processor that watches several
/// rows at a time fetches by itself.
pub(crate) const PREFETCH_DISTANCE: usize = 1 << 10;

/// Says that what follows `x` some way further will soon be read, if the processor listens. It need
/// not exist.
#[inline(always)]
pub(crate) fn prefetch_after<A, const N: usize>(x: &[A; N]) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of::<[A; N]>()).step_by(CACHE_LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let there = x.as_ptr().cast::<i8>().wrapping_add(PREFETCH_DISTANCE + line);
        // SAFETY: a prefetch reads nothing that a program could see, whatever the address.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(there);
        }
    }
    let _ = x;
}

#[inline(always)]
fn before<A>(x: &[A], long: usize) -> usize {
    if size_of_val(x) < long { 0 } else { x.as_ptr().align_offset(CACHE_LINE).min(x.len()) }
}

//! Cache-line alignment and software prefetch for streaming loops.
//!
//! A vector access that straddles two cache lines costs two accesses. Unaligned vector accesses
//! halve the throughput of operands outside L1, and slow down stores even within L1.

#[cfg(target_arch = "x86_64")]
use crate::host::cache::x86;
use std::{iter, ops::Range};

/// Size in bytes of a cache line and of the widest vector.
pub(crate) const CACHE_LINE: usize = 64;

/// Size in bytes of an ordinary page of memory, as opposed to a huge page.
pub(crate) const PAGE_4K: usize = 4 << 10;

/// Smallest distance in bytes between addresses that share an L1 cache set. A load waits for an
/// earlier store if their addresses differ by a multiple of `L1_ALIAS_BYTES` (4K aliasing).
pub(crate) const L1_ALIAS_BYTES: usize = 4 << 10;

/// Unit of chunk lengths, in elements: 64 elements fill whole cache lines for every element type.
pub(crate) const CHUNK_ALIGN: usize = 64;

/// Smallest size of an operand, in bytes, for which aligned loads were faster in measurements.
const ALIGN_LOADS_MIN_BYTES: usize = 32 << 10;

/// Smallest size of an operand, in bytes, for which aligned stores were faster in measurements.
const ALIGN_STORES_MIN_BYTES: usize = 2 << 10;

/// Returns the number of elements of `x` before the first cache-line boundary, or 0 if aligned
/// loads would not be faster.
#[inline(always)]
pub(crate) fn load_peel_len<A>(x: &[A]) -> usize {
    peel_len((x.as_ptr(), x.len()), ALIGN_LOADS_MIN_BYTES)
}

/// Like [`load_peel_len`], but for stores to `y`.
#[inline(always)]
pub(crate) fn store_peel_len<A>(y: &[A]) -> usize {
    store_peel_len_at(y.as_ptr(), y.len())
}

/// Like [`store_peel_len`], but for the `len` elements at `y`.
#[inline(always)]
pub(crate) fn store_peel_len_at<A>(y: *const A, len: usize) -> usize {
    peel_len((y, len), ALIGN_STORES_MIN_BYTES)
}

#[inline(always)]
fn peel_len<A>((x, len): (*const A, usize), min_bytes: usize) -> usize {
    if len * size_of::<A>() < min_bytes { 0 } else { x.align_offset(CACHE_LINE).min(len) }
}

/// Calls `body` on the elements of `y` before the first cache-line boundary, if any, and on the
/// remaining elements.
#[inline(always)]
pub(crate) fn with_aligned_stores<Y>(y: &mut [Y], mut body: impl FnMut(&mut [Y])) {
    let peel_len = store_peel_len(y);
    let (first, rest) = y.split_at_mut(peel_len);
    if peel_len > 0 {
        body(first);
    }
    body(rest);
}

/// Like [`with_aligned_stores`], but also passes to `body` the elements of `x` at the same indices;
/// `x` is as long as `y`.
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

/// Returns ranges that together cover the indices of `y` in the order that is fastest if
/// [`alternates_places`](crate::host::cache::residence::alternates_places): 4 KiB of the first half
/// of `y` and 4 KiB of the second half in turn. If `y` has at least 2 KiB, all ranges but the first
/// start at a cache-line boundary.
pub(crate) fn alternating_ranges<Y>(y: &[Y]) -> impl Iterator<Item = Range<usize>> + use<Y> {
    let (start, len, piece_len) = (store_peel_len(y), y.len(), PAGE_4K / size_of::<Y>());
    let half = (len - start) / (2 * piece_len) * piece_len;
    let pieces = (start..start + half).step_by(piece_len).flat_map(move |i| [i, half + i]);
    let pieces = pieces.map(move |i| i..i + piece_len);
    iter::once(0..start).chain(pieces).chain(iter::once(start + 2 * half..len))
}

/// Number of elements in each block that [`with_prefetch`] and [`zip_with_prefetch`] prefetch.
const PREFETCH_BLOCK_LEN: usize = 64;

/// Like [`with_aligned_stores`], but with software prefetch, for operands that exceed the caches.
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

/// Like [`with_prefetch`], but also passes to `body` the elements of `x` at the same indices; `x`
/// is as long as `y`.
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

/// Prefetch distance of [`prefetch_after`] in bytes. While the hardware prefetcher tracks several
/// rows, it does not fetch as far as 1 KiB ahead.
pub(crate) const PREFETCH_DISTANCE: usize = 1 << 10;

/// Prefetches `size_of_val(x)` bytes, which start [`PREFETCH_DISTANCE`] bytes after the start of
/// `x`. The memory at the prefetched addresses need not be readable.
#[inline(always)]
pub(crate) fn prefetch_after<A, const N: usize>(x: &[A; N]) {
    for line in (0..size_of::<[A; N]>()).step_by(CACHE_LINE) {
        prefetch(x.as_ptr().cast::<u8>().wrapping_add(PREFETCH_DISTANCE + line));
    }
}

/// Prefetches the cache line at `p` into L2 on x86-64. The address `p` need not be readable.
#[inline(always)]
pub(crate) fn prefetch_l2<A>(p: *const A) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch_l2(p);
    let _ = p;
}

/// Prefetches the cache line at `p` into L1 on x86-64. The address `p` need not be readable.
#[inline(always)]
pub(crate) fn prefetch<A>(p: *const A) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch_l1(p);
    let _ = p;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_ranges_cover_each_index_once() {
        let y = vec![0.0f32; 5000];
        for len in [0, 1, 17, 1023, 1024, 2047, 2063, 4985] {
            for start in [0, 1, 15] {
                let y = &y[start..][..len];
                let ranges: Vec<_> = alternating_ranges(y).collect();
                let mut indices: Vec<_> = ranges.iter().cloned().flatten().collect();
                indices.sort_unstable();
                assert!(indices.into_iter().eq(0..y.len()), "{len} elements from {start}");
                let is_aligned =
                    |r: &Range<usize>| y[r.start..].as_ptr().addr().is_multiple_of(CACHE_LINE);
                let pieces = ranges.iter().skip(1).filter(|r| r.len() == 1024);
                assert!(pieces.clone().all(is_aligned), "{len} elements from {start}");
                // Up to 15 elements precede the first boundary.
                assert_eq!(pieces.count() >= 2, len >= 2063, "{len} elements from {start}");
            }
        }
    }

    #[test]
    fn alternating_ranges_alternate_between_two_halves() {
        let memory = vec![0.0f64; 2100];
        let start = memory.as_ptr().align_offset(CACHE_LINE);
        let ranges: Vec<_> = alternating_ranges(&memory[start..][..2051]).collect();
        let expected = [0..0, 0..512, 1024..1536, 512..1024, 1536..2048, 2048..2051];
        assert_eq!(ranges, expected);
    }
}

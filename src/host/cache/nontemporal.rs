//! Copies and elementwise maps whose results are written with non-temporal stores.
//!
//! Before an ordinary store to a cache line, the processor reads the line from memory. For an
//! operand too large to stay in cache, these reads increase the memory traffic of a copy by half.
//! Non-temporal stores write a cache line without reading it first.

use crate::cast::{cast_slice, cast_slice_mut};
#[cfg(target_arch = "x86_64")]
use crate::host::cache::x86;
use crate::{
    element::Element,
    host::cache::{
        cache_line::{CACHE_LINE, PAGE_4K},
        scratch::with_scratch,
    },
};

/// Smallest size in bytes of an operand that is assumed to be evicted from all caches before the
/// next kernel reads the operand.
const NONTEMPORAL_MIN_BYTES: usize = 8 << 20;

/// Size in bytes of a block that is copied or computed at a time. The cache lines of the four pages
/// of a block are copied in alternation, because the hardware prefetcher tracks each page
/// separately.
const BLOCK: usize = 4 * PAGE_4K;

/// Number of slices in a block. [`map_nontemporal`] alternates between computing a slice of the
/// next block and storing a slice of the current block.
const SLICES_PER_BLOCK: usize = 16;

/// Number of cache lines that one slice of a block has in each page.
const LINES_PER_SLICE: usize = PAGE_4K / CACHE_LINE / SLICES_PER_BLOCK;

/// Returns whether stores that overwrite all of `y` should bypass the caches.
pub(crate) fn bypasses_cache<T>(y: &[T]) -> bool {
    cfg!(target_arch = "x86_64") && size_of_val(y) >= NONTEMPORAL_MIN_BYTES
}

/// `y ← x` with non-temporal stores. `x` and `y` have the same length.
#[inline(never)] // If inlined, register saves would slow down short copies.
pub(crate) fn copy_nontemporal<T: Element>(x: &[T], y: &mut [T]) {
    let (first, blocks, rest) = split_blocks(y);
    let (x_first, x) = x.split_at(first.len());
    let (x, x_rest) = x.split_at(x.len() - rest.len());
    first.copy_from_slice(x_first);
    for (x, y) in cast_slice::<T, u8>(x).as_chunks().0.iter().zip(blocks) {
        (0..SLICES_PER_BLOCK).for_each(|slice| store_slice(slice, x, [], y));
    }
    rest.copy_from_slice(x_rest);
    store_fence();
}

/// Overwrites `y` with non-temporal stores. `fill(i, part)` stores in `part` the elements of `y`
/// from index `i` on, and must not read the old contents of `part`. Before each call of `fill`,
/// `map_nontemporal` prefetches the elements of `sources` at the same indices.
///
/// `map_nontemporal` stores each block while it computes the next block, so that memory and
/// arithmetic units work at the same time.
pub(crate) fn map_nontemporal<A: Element, const N: usize>(
    sources: [&[A]; N],
    y: &mut [A],
    fill: impl Fn(usize, &mut [A]),
) {
    let (first, blocks, rest) = split_blocks(y);
    fill(0, first);
    let (mut i, slice_len) = (first.len(), BLOCK / size_of::<A>() / SLICES_PER_BLOCK);
    let block_len = SLICES_PER_BLOCK * slice_len;
    with_scratch(2 * block_len, |buffers| {
        let (mut next_buffer, mut current_buffer) = buffers.split_at_mut(block_len);
        let mut pending_block: Option<&mut [u8; BLOCK]> = None;
        for block in blocks {
            let next_sources = sources.map(|x| x.as_ptr().wrapping_add(i + block_len).cast());
            for (slice, part) in next_buffer.chunks_exact_mut(slice_len).enumerate() {
                fill(i, part);
                i += slice_len;
                if let (Some(y), Some(x)) =
                    (&mut pending_block, cast_slice(current_buffer).first_chunk())
                {
                    store_slice(slice, x, next_sources, y);
                }
            }
            pending_block = Some(block);
            (next_buffer, current_buffer) = (current_buffer, next_buffer);
        }
        if let (Some(y), Some(x)) = (pending_block, cast_slice(current_buffer).first_chunk()) {
            (0..SLICES_PER_BLOCK).for_each(|slice| store_slice(slice, x, [], y));
        }
    });
    fill(i, rest);
    store_fence();
}

/// Splits `y` into the elements before the first page boundary, whole blocks, and the remaining
/// elements.
fn split_blocks<T: Element>(y: &mut [T]) -> (&mut [T], &mut [[u8; BLOCK]], &mut [T]) {
    let start = y.as_ptr().align_offset(PAGE_4K).min(y.len());
    let (first, y) = y.split_at_mut(start);
    let (blocks, rest) = cast_slice_mut(y).as_chunks_mut();
    (first, blocks, cast_slice_mut(rest))
}

/// `y ← x` for one slice of a block. A slice consists of the cache lines at the same offsets in
/// each page of the block. `store_slice` also prefetches the corresponding slice of the block that
/// starts at each address in `next_sources`. The prefetched addresses need not be readable. The
/// prefetch targets L2, because the current blocks fill L1.
#[inline(always)]
fn store_slice<const N: usize>(
    slice: usize,
    x: &[u8; BLOCK],
    next_sources: [*const u8; N],
    y: &mut [u8; BLOCK],
) {
    assert!(
        y.as_ptr().addr().is_multiple_of(CACHE_LINE),
        "non-temporal block: not aligned to a cache line"
    );
    for line in slice * LINES_PER_SLICE..(slice + 1) * LINES_PER_SLICE {
        for page in (0..BLOCK).step_by(PAGE_4K) {
            let offset = page + line * CACHE_LINE;
            let (x, y) = (&x[offset..offset + CACHE_LINE], &mut y[offset..offset + CACHE_LINE]);
            #[cfg(target_arch = "x86_64")]
            {
                next_sources
                    .into_iter()
                    .for_each(|source| x86::prefetch_l2(source.wrapping_add(offset)));
                for (x, y) in x.as_chunks().0.iter().zip(y.as_chunks_mut().0) {
                    // SAFETY: an assertion checked that `y` starts at a cache line, so chunks are
                    // aligned.
                    unsafe { x86::stream(x, y) };
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            {
                let _ = next_sources;
                y.copy_from_slice(x);
            }
        }
    }
}

/// Makes non-temporal stores visible to other threads.
fn store_fence() {
    #[cfg(target_arch = "x86_64")]
    x86::store_fence();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nontemporal_copies_of_any_length_and_alignment_are_exact() {
        let x: Vec<f32> = (0..5 * BLOCK / 4 + 77).map(|i| i as f32).collect();
        for (start, end) in [(0, x.len()), (1, x.len() - 3), (13, 20), (5, 5), (3, PAGE_4K)] {
            let x = &x[start..end];
            for offset in [0, 1, 7] {
                let check_copy = |copy: &dyn Fn(&mut [f32])| {
                    let mut y = vec![-1.0; offset + x.len() + 1];
                    copy(&mut y[offset..offset + x.len()]);
                    assert_eq!(y[offset..offset + x.len()], *x);
                    assert!(y[..offset].iter().chain(y.last()).all(|&y| y == -1.0));
                };
                check_copy(&|y| copy_nontemporal(x, y));
                check_copy(&|y| {
                    map_nontemporal([x], y, |i, part| {
                        part.copy_from_slice(&x[i..][..part.len()]);
                    });
                });
            }
        }
    }
}

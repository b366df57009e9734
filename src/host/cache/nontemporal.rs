//! Copies and elementwise maps whose results are written with non-temporal stores.
//!
//! Before an ordinary store to a cache line, the processor reads the line from memory. For an
//! operand too large to stay in cache, these reads increase the memory traffic of a copy by half.
//! Non-temporal stores write a cache line without reading it first.
//!
//! The order of the stores depends on the maker of the processor. The measured Xeons are fastest if
//! stores alternate between the cache lines of four pages. On Zen 5, copies and functions of two
//! operands are fastest in the order of the addresses (decision 48). On Zen 4, functions of one
//! operand are, too (decision 55). `simd::x86::nontemporal` replaces [`map_nontemporal`] for
//! memory-bound functions of `f32` on Zen 4.

use crate::cast::{cast_slice, cast_slice_mut};
#[cfg(target_arch = "x86_64")]
use crate::host::cache::x86;
use crate::{
    element::Element,
    host::cache::{
        cache_line::{CACHE_LINE, PAGE_4K},
        residence::{Residence, fits_l3, is_amd, is_amd_with_small_l1},
        scratch::with_scratch,
    },
};

/// Size in bytes of a block that is copied or computed at a time. The cache lines of the four pages
/// of a block are copied in alternation, because the hardware prefetcher tracks each page
/// separately.
const BLOCK: usize = 4 * PAGE_4K;

/// Number of slices in a block. [`map_blocks`] alternates between computing a slice of the
/// next block and storing a slice of the current block.
const SLICES_PER_BLOCK: usize = 16;

/// Number of elements that [`map_lines`] computes at a time. The results stay in L1 until
/// they are stored. With longer parts, the loads of a part and the stores of the part before it
/// overlap less.
const PART_LEN: usize = 256;

/// Number of cache lines that one slice of a block has in each page.
const LINES_PER_SLICE: usize = PAGE_4K / CACHE_LINE / SLICES_PER_BLOCK;

/// Returns whether a kernel that overwrites an operand should store past the caches. The kernel's
/// operands have `bytes` bytes in total, which `threads` threads divide among themselves.
///
/// On Zen 4, non-temporal stores of one thread can reach the rate at which memory accepts them, so a
/// second thread does not raise the rate. If the operands fit in the L3 cache, ordinary stores of two
/// threads are faster (decision 55).
pub(crate) fn bypasses_cache(bytes: usize, threads: usize) -> bool {
    let stays_in_l3 = threads > 1 && is_amd_with_small_l1() && fits_l3(bytes);
    cfg!(target_arch = "x86_64") && Residence::of(bytes, 1) == Residence::Memory && !stays_in_l3
}

/// Order in which non-temporal stores write the cache lines of an operand.
#[derive(Clone, Copy, PartialEq)]
enum StoreOrder {
    /// Ascending order of the addresses.
    Addresses,
    /// Blocks of four pages: stores alternate between the cache lines of the pages.
    Pages,
}

impl StoreOrder {
    /// Returns the order that is fastest on this processor for copies and for functions of several
    /// operands.
    fn of_processor() -> Self {
        if is_amd() { Self::Addresses } else { Self::Pages }
    }
}

/// `y ← x` with non-temporal stores. `x` and `y` have the same length.
#[inline(never)] // If inlined, register saves would slow down short copies.
pub(crate) fn copy_nontemporal<T: Element>(x: &[T], y: &mut [T]) {
    copy_in_order(StoreOrder::of_processor(), x, y);
}

fn copy_in_order<T: Element>(order: StoreOrder, x: &[T], y: &mut [T]) {
    let (first, blocks, rest) = split_blocks(y);
    let (x_first, x) = x.split_at(first.len());
    let (x, x_rest) = x.split_at(x.len() - rest.len());
    first.copy_from_slice(x_first);
    if order == StoreOrder::Addresses {
        store_lines(cast_slice(x), blocks.as_flattened_mut());
    } else {
        for (x, y) in cast_slice::<T, u8>(x).as_chunks().0.iter().zip(blocks) {
            (0..SLICES_PER_BLOCK).for_each(|slice| store_slice(slice, x, [], y));
        }
    }
    rest.copy_from_slice(x_rest);
    store_fence();
}

/// Overwrites `y` with non-temporal stores. `fill(i, part)` stores in `part` the elements of `y`
/// from index `i` on, and must not read the old contents of `part`. The elements of `y` are
/// computed from the elements of `sources` at the same indices.
pub(crate) fn map_nontemporal<A: Element, const N: usize>(
    sources: [&[A]; N],
    y: &mut [A],
    fill: impl Fn(usize, &mut [A]),
) {
    // With AVX2 on Zen 5, functions of one operand are slow in the order of the addresses.
    let order = if N > 1 || is_amd_with_small_l1() {
        StoreOrder::of_processor()
    } else {
        StoreOrder::Pages
    };
    map_in_order(order, sources, y, fill);
}

fn map_in_order<A: Element, const N: usize>(
    order: StoreOrder,
    sources: [&[A]; N],
    y: &mut [A],
    fill: impl Fn(usize, &mut [A]),
) {
    let (first, blocks, rest) = split_blocks(y);
    let (start, rest_start) = (first.len(), first.len() + size_of_val(blocks) / size_of::<A>());
    fill(0, first);
    match order {
        StoreOrder::Addresses => map_lines(start, blocks.as_flattened_mut(), &fill),
        StoreOrder::Pages => map_blocks(sources, start, blocks, &fill),
    }
    fill(rest_start, rest);
    store_fence();
}

/// Overwrites `blocks`, whose first element has index `start`. While `map_blocks` stores a block,
/// `map_blocks` prefetches the elements of `sources` that `fill` reads for a later block.
///
/// `map_blocks` stores each block while it computes the next block, so that memory and arithmetic
/// units work at the same time.
fn map_blocks<A: Element, const N: usize>(
    sources: [&[A]; N],
    start: usize,
    blocks: &mut [[u8; BLOCK]],
    fill: impl Fn(usize, &mut [A]),
) {
    let (mut i, slice_len) = (start, BLOCK / size_of::<A>() / SLICES_PER_BLOCK);
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
}

/// Overwrites `y`, whose first element has index `start`, in the order of the addresses.
fn map_lines<A: Element>(start: usize, y: &mut [u8], fill: impl Fn(usize, &mut [A])) {
    with_scratch(PART_LEN, |part| {
        for (j, y) in y.chunks_exact_mut(size_of_val(part)).enumerate() {
            fill(start + j * PART_LEN, part);
            store_lines(cast_slice(part), y);
        }
    });
}

/// `y ← x` for whole cache lines, in the order of their addresses.
#[inline(always)]
fn store_lines(x: &[u8], y: &mut [u8]) {
    assert!(
        x.len() == y.len() && (y.is_empty() || y.as_ptr().addr().is_multiple_of(CACHE_LINE)),
        "non-temporal lines: not aligned to a cache line"
    );
    #[cfg(target_arch = "x86_64")]
    for (x, y) in x.as_chunks().0.iter().zip(y.as_chunks_mut().0) {
        // SAFETY: an assertion checked that `y` starts at a cache line, so chunks are aligned.
        unsafe { x86::stream(x, y) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    y.copy_from_slice(x);
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
                for order in [StoreOrder::Addresses, StoreOrder::Pages] {
                    check_copy(&|y| copy_in_order(order, x, y));
                    check_copy(&|y| {
                        map_in_order(order, [x], y, |i, part| {
                            part.copy_from_slice(&x[i..][..part.len()]);
                        });
                    });
                }
            }
        }
    }
}

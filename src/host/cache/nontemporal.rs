//! Copies past the caches.
//!
//! A line that is stored the usual way is fetched first, and drives another from the caches. Where
//! the whole is too large for them in any case, that is half as much again to be moved.

use crate::{element::Element, host::cache::scratch::with_scratch};
use bytemuck::{cast_slice, cast_slice_mut};
use std::ptr::{from_mut, from_ref};

/// Bytes from which on no cache holds an operand until it is needed again.
const NONTEMPORAL_MIN_BYTES: usize = 8 << 20;

/// Bytes of a page.
const PAGE_4K: usize = 4 << 10;

/// Pages copied side by side: what is needed next is fetched ahead within each.
const PAGES: usize = 4;

/// Bytes of pages copied side by side.
const BLOCK: usize = PAGES * PAGE_4K;

/// Parts of a block that are stored one at a time, while others are computed.
const SLICES_PER_BLOCK: usize = 16;

/// Lines of a page that belong to a part.
const LINES_PER_SLICE: usize = PAGE_4K / CACHE_LINE / SLICES_PER_BLOCK;

/// Bytes of a line of a cache.
const CACHE_LINE: usize = 64;

/// Whether `y`, all of which is to be written, is to bypass the caches.
pub(crate) fn bypasses_cache<T>(y: &[T]) -> bool {
    cfg!(target_arch = "x86_64") && size_of_val(y) >= NONTEMPORAL_MIN_BYTES
}

/// `y ← x`, past the caches; equal lengths.
#[inline(never)] // Short copies would feel its registers.
pub(crate) fn copy_nontemporal<T: Element>(x: &[T], y: &mut [T]) {
    let (first, blocks, rest) = in_blocks(y);
    let (x_first, x) = x.split_at(first.len());
    let (x, x_rest) = x.split_at(x.len() - rest.len());
    first.copy_from_slice(x_first);
    for (x, y) in cast_slice::<T, u8>(x).as_chunks().0.iter().zip(blocks) {
        (0..SLICES_PER_BLOCK).for_each(|part| store(part, x, [], y));
    }
    rest.copy_from_slice(x_rest);
    fence();
}

/// Writes `y`, past the caches: `fill(i, part)` writes elements from `i` on, of whatever it finds
/// there, and reads `from` at the same places, which is fetched before.
///
/// A block is stored bit by bit while the next one is computed: memory and what computes work side
/// by side.
pub(crate) fn map_nontemporal<A: Element, const N: usize>(
    from: [&[A]; N],
    y: &mut [A],
    fill: impl Fn(usize, &mut [A]),
) {
    let (first, blocks, rest) = in_blocks(y);
    fill(0, first);
    let (mut at, per_part) = (first.len(), BLOCK / size_of::<A>() / SLICES_PER_BLOCK);
    with_scratch(2 * SLICES_PER_BLOCK * per_part, |rooms| {
        let (mut room, mut full) = rooms.split_at_mut(SLICES_PER_BLOCK * per_part);
        let mut waiting: Option<&mut [u8; BLOCK]> = None;
        for block in blocks {
            let next = from
                .map(|from| from.as_ptr().wrapping_add(at + SLICES_PER_BLOCK * per_part).cast());
            for (part, room) in room.chunks_exact_mut(per_part).enumerate() {
                fill(at, room);
                at += per_part;
                if let (Some(y), Some(x)) = (&mut waiting, cast_slice(full).first_chunk()) {
                    store(part, x, next, y);
                }
            }
            waiting = Some(block);
            (room, full) = (full, room);
        }
        if let (Some(y), Some(x)) = (waiting, cast_slice(full).first_chunk()) {
            (0..SLICES_PER_BLOCK).for_each(|part| store(part, x, [], y));
        }
    });
    fill(at, rest);
    fence();
}

/// What comes before the first whole block of pages, these, and the rest.
fn in_blocks<T: Element>(y: &mut [T]) -> (&mut [T], &mut [[u8; BLOCK]], &mut [T]) {
    let before = y.as_ptr().align_offset(PAGE_4K).min(y.len());
    let (first, y) = y.split_at_mut(before);
    let (blocks, rest) = cast_slice_mut(y).as_chunks_mut();
    (first, blocks, cast_slice_mut(rest))
}

/// `y ← x`, of a part of a block: the same lines of each of its pages. Those of the blocks `next`
/// are asked for.
#[inline(always)]
fn store<const N: usize>(part: usize, x: &[u8; BLOCK], next: [*const u8; N], y: &mut [u8; BLOCK]) {
    assert!(y.as_ptr().addr().is_multiple_of(CACHE_LINE), "blocks begin at a page");
    for line in part * LINES_PER_SLICE..(part + 1) * LINES_PER_SLICE {
        for page in (0..BLOCK).step_by(PAGE_4K) {
            let at = page + line * CACHE_LINE;
            next.into_iter().for_each(|next| fetch(next.wrapping_add(at)));
            store_line(&x[at..at + CACHE_LINE], &mut y[at..at + CACHE_LINE]);
        }
    }
}

/// Asks for a line, whether or not it is there; in the second cache: blocks fill the first.
#[inline(always)]
fn fetch(x: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that a program could see, whatever the address.
    #[allow(unsafe_code)]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(x.cast());
    }
    let _ = x;
}

/// `y ← x`, of a line.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn store_line(x: &[u8], y: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const VECTOR: usize = size_of::<__m128i>();
    let (x, y) = (x.as_chunks::<VECTOR>().0, y.as_chunks_mut::<VECTOR>().0);
    for (x, y) in x.iter().zip(y) {
        // SAFETY: both are vectors, and that of `y` is aligned, as is the line it is in.
        #[allow(unsafe_code)]
        unsafe {
            _mm_stream_si128(from_mut(y).cast(), _mm_loadu_si128(from_ref(x).cast()));
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn store_line(x: &[u8], y: &mut [u8]) {
    y.copy_from_slice(x);
}

/// Lets other threads see what was stored.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it has no conditions.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives() {
        let x: Vec<f32> = (0..5 * BLOCK / 4 + 77).map(|i| i as f32).collect();
        for (start, end) in [(0, x.len()), (1, x.len() - 3), (13, 20), (5, 5), (3, PAGE_4K)] {
            let x = &x[start..end];
            for before in [0, 1, 7] {
                let mut y = vec![-1.0; before + x.len() + 1];
                copy_nontemporal(x, &mut y[before..before + x.len()]);
                assert_eq!(y[before..before + x.len()], *x);
                assert!(y[..before].iter().chain(y.last()).all(|&y| y == -1.0));
                let mut y = vec![-1.0; before + x.len() + 1];
                let fill = |at: usize, part: &mut [f32]| {
                    part.copy_from_slice(&x[at..][..part.len()]);
                };
                map_nontemporal([x], &mut y[before..before + x.len()], fill);
                assert_eq!(y[before..before + x.len()], *x);
                assert!(y[..before].iter().chain(y.last()).all(|&y| y == -1.0));
            }
        }
    }
}

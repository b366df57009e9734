//! Copies past the caches.
//!
//! A line that is stored the usual way is fetched first, and drives another from the caches. Where
//! the whole is too large for them in any case, that is half as much again to be moved.

use super::scratch::with_scratch;
use crate::element::Element;
use bytemuck::{cast_slice, cast_slice_mut};

/// Bytes from which on no cache holds an operand until it is needed again.
const FAR: usize = 8 << 20;

/// Bytes of a page.
const PAGE: usize = 4 << 10;

/// Pages copied side by side: what is needed next is fetched ahead within each.
const PAGES: usize = 4;

/// Bytes of pages copied side by side.
const BLOCK: usize = PAGES * PAGE;

/// Whether `y`, all of which is to be written, is to bypass the caches.
pub(super) fn is_far<T>(y: &[T]) -> bool {
    cfg!(target_arch = "x86_64") && size_of_val(y) >= FAR
}

/// `y ← x`, past the caches; equal lengths.
pub(super) fn stream<T: Element>(x: &[T], y: &mut [T]) {
    by_blocks(
        y,
        |at, y| y.copy_from_slice(&x[at..][..y.len()]),
        |at, y| {
            let x: &[u8] = cast_slice(&x[at..][..BLOCK / size_of::<T>()]);
            if let Some(x) = x.first_chunk() {
                stream_block(x, [], y);
            }
        },
    );
}

/// Writes `y`, past the caches: `fill(i, part)` writes elements from `i` on, of whatever it finds
/// there, and reads `from` at the same places, which is fetched while others are stored.
pub(super) fn stream_from<A: Element, const N: usize>(
    from: [&[A]; N],
    y: &mut [A],
    fill: impl Fn(usize, &mut [A]),
) {
    with_scratch(BLOCK / size_of::<A>(), |room| {
        by_blocks(y, &fill, |at, y| {
            fill(at, room);
            if let Some(x) = cast_slice::<A, u8>(room).first_chunk() {
                let next = from.map(|from| from.as_ptr().wrapping_add(at).cast::<u8>());
                stream_block(x, next.map(|next| next.wrapping_add(BLOCK)), y);
            }
        });
    });
}

/// Calls `usual(i, part)` for what lies before and after whole blocks of `y`, and `whole(i, block)`
/// for each of them.
fn by_blocks<T: Element>(
    y: &mut [T],
    usual: impl Fn(usize, &mut [T]),
    mut whole: impl FnMut(usize, &mut [u8; BLOCK]),
) {
    let before = y.as_ptr().align_offset(PAGE).min(y.len());
    let (first, y) = y.split_at_mut(before);
    usual(0, first);
    let per_block = BLOCK / size_of::<T>();
    let mut at = before;
    let mut blocks = y.chunks_exact_mut(per_block);
    for block in &mut blocks {
        if let Some(block) = cast_slice_mut::<T, u8>(block).first_chunk_mut() {
            whole(at, block);
        }
        at += per_block;
    }
    usual(at, blocks.into_remainder());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it has no conditions; after it, other threads see what was stored.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(target_arch = "x86_64")]
fn stream_block<const N: usize>(x: &[u8; BLOCK], next: [*const u8; N], y: &mut [u8; BLOCK]) {
    use std::arch::x86_64::{
        __m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_stream_si128,
    };
    const VECTOR: usize = size_of::<__m128i>();
    const LINE: usize = 64;
    assert!(y.as_ptr().cast::<__m128i>().is_aligned(), "blocks begin at a page");
    for line in (0..PAGE).step_by(LINE) {
        for page in (0..BLOCK).step_by(PAGE) {
            for next in next {
                // SAFETY: a prefetch reads nothing that a program could see, whatever the address.
                #[allow(unsafe_code)]
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(page + line).cast());
                }
            }
            for at in (page + line..).step_by(VECTOR).take(LINE / VECTOR) {
                // SAFETY: `at` is less than `BLOCK` by a vector at least, and `y`'s are aligned.
                #[allow(unsafe_code)]
                unsafe {
                    let part = _mm_loadu_si128(x.as_ptr().add(at).cast());
                    _mm_stream_si128(y.as_mut_ptr().add(at).cast(), part);
                }
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn stream_block<const N: usize>(x: &[u8; BLOCK], _: [*const u8; N], y: &mut [u8; BLOCK]) {
    y.copy_from_slice(x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives() {
        let x: Vec<f32> = (0..5 * BLOCK / 4 + 77).map(|i| i as f32).collect();
        for (start, end) in [(0, x.len()), (1, x.len() - 3), (13, 20), (5, 5), (3, PAGE)] {
            let x = &x[start..end];
            for before in [0, 1, 7] {
                let mut y = vec![-1.0; before + x.len() + 1];
                stream(x, &mut y[before..before + x.len()]);
                assert_eq!(y[before..before + x.len()], *x);
                assert!(y[..before].iter().chain(y.last()).all(|&y| y == -1.0));
                let mut y = vec![-1.0; before + x.len() + 1];
                let fill = |at: usize, part: &mut [f32]| {
                    part.copy_from_slice(&x[at..][..part.len()]);
                };
                stream_from([x], &mut y[before..before + x.len()], fill);
                assert_eq!(y[before..before + x.len()], *x);
                assert!(y[..before].iter().chain(y.last()).all(|&y| y == -1.0));
            }
        }
    }
}

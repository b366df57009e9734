//! Copies past the caches.
//!
//! A line that is stored the usual way is fetched first, and drives another from the caches. Where
//! the whole is too large for them in any case, that is half as much again to be moved.

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
    let before = y.as_ptr().align_offset(PAGE).min(y.len());
    let ((first_x, x), (first_y, y)) = (x.split_at(before), y.split_at_mut(before));
    first_y.copy_from_slice(first_x);
    let (blocks_x, rest_x) = cast_slice::<T, u8>(x).as_chunks();
    let (blocks_y, rest_y) = cast_slice_mut::<T, u8>(y).as_chunks_mut();
    for (x, y) in blocks_x.iter().zip(blocks_y) {
        stream_block(x, y);
    }
    rest_y.copy_from_slice(rest_x);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it has no conditions; after it, other threads see what was stored.
    #[allow(unsafe_code)]
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(target_arch = "x86_64")]
fn stream_block(x: &[u8; BLOCK], y: &mut [u8; BLOCK]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const VECTOR: usize = size_of::<__m128i>();
    const LINE: usize = 64;
    assert!(y.as_ptr().cast::<__m128i>().is_aligned(), "blocks begin at a page");
    for line in (0..PAGE).step_by(LINE) {
        for page in (0..BLOCK).step_by(PAGE) {
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
fn stream_block(x: &[u8; BLOCK], y: &mut [u8; BLOCK]) {
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
            }
        }
    }
}

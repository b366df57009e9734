//! Scratch buffers that a thread caches for later kernels.

use crate::{element::Element, host::cache::cache_line::CACHE_LINE};
use std::cell::RefCell;

/// Maximum number of cached buffers per thread. The input gradient of a convolution of 16-bit elements
/// by Winograd's algorithm uses eight buffers at a time: widened filters, flipped filters, transformed
/// filters, the widened images and outputs, tiles, matrix products, and transposed planes.
const MAX_CACHED_BUFFERS: usize = 8;

/// Size in bytes of the largest buffer that a thread caches, without the elements before the first
/// cache-line boundary. A thread frees larger buffers after use.
const MAX_CACHED_BYTES: usize = 16 << 20;

thread_local! {
    static FREE_BUFFERS: RefCell<Vec<Vec<f64>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `body` with a buffer of `len` elements whose values are unspecified. The buffer starts at a
/// cache-line boundary, so that whole vectors do not straddle two cache lines.
///
/// Calls of `with_scratch` may nest, because a buffer in use is not in the thread's list of free
/// buffers. Calls of `with_scratch` also nest if `body` waits for other threads, and the waiting
/// thread runs a task that calls `with_scratch`.
pub(crate) fn with_scratch<A: Element, R>(len: usize, body: impl FnOnce(&mut [A]) -> R) -> R {
    let max_offset = CACHE_LINE / size_of::<f64>();
    let mut buffer = take_buffer((len * size_of::<A>()).div_ceil(size_of::<f64>()) + max_offset);
    let start = buffer.as_ptr().align_offset(CACHE_LINE).min(max_offset);
    let result = body(&mut crate::cast::cast_slice_mut(&mut buffer[start..])[..len]);
    return_buffer(buffer);
    result
}

/// Returns a scratch buffer of at least `words` elements of type `f64`.
fn take_buffer(words: usize) -> Vec<f64> {
    let buffer = FREE_BUFFERS.with_borrow_mut(|buffers| {
        // Take the smallest cached buffer that is long enough. If all cached buffers are too short,
        // the new buffer replaces the smallest cached buffer.
        let rank = |buffer: &Vec<f64>| (buffer.len() < words, buffer.len());
        let best_index = (0..buffers.len()).min_by_key(|&i| rank(&buffers[i]));
        best_index.map(|i| buffers.swap_remove(i)).unwrap_or_default()
    });
    match buffer.len() < words {
        // Allocate a new buffer, because `resize` would copy the old contents.
        true => vec![0.0; words],
        false => buffer,
    }
}

/// Caches `buffer`, unless the thread's list of free buffers is full or `buffer` is too large.
fn return_buffer(buffer: Vec<f64>) {
    if buffer.len() * size_of::<f64>() <= MAX_CACHED_BYTES + CACHE_LINE {
        FREE_BUFFERS.with_borrow_mut(|buffers| {
            if buffers.len() < MAX_CACHED_BUFFERS {
                buffers.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_scratch_buffers_do_not_overlap() {
        for len in [0, 1, 7, 1000] {
            with_scratch::<f32, _>(len, |outer| {
                outer.fill(1.0);
                with_scratch::<f64, _>(len + 3, |inner| {
                    assert_eq!(inner.len(), len + 3);
                    inner.fill(2.0);
                });
                assert_eq!(outer, vec![1.0; len]);
            });
        }
    }
}

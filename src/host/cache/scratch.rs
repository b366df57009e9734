//! Temporary memory that a thread keeps for its next kernel.

use crate::element::Element;
use std::cell::RefCell;

/// Buffers a thread keeps; kernels nest (a convolution, its product, its panels) to this depth.
const MAX_CACHED_BUFFERS: usize = 4;

/// Largest buffer that is kept: more is given back to the system after use.
const MAX_CACHED_BYTES: usize = 16 << 20;

thread_local! {
    static FREE: RefCell<Vec<Vec<f64>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `body` with `len` elements of unspecified content.
///
/// A buffer is taken off its thread's list while in use, so that calls may nest, also when a
/// thread that waits inside `body` takes up another task.
pub(crate) fn with_scratch<A: Element, R>(len: usize, body: impl FnOnce(&mut [A]) -> R) -> R {
    let mut buffer = take((len * size_of::<A>()).div_ceil(size_of::<f64>()));
    let result = body(&mut bytemuck::cast_slice_mut(&mut buffer)[..len]);
    keep(buffer);
    result
}

/// A buffer of at least `words`.
fn take(words: usize) -> Vec<f64> {
    let buffer = FREE.with_borrow_mut(|free| {
        // The smallest that is large enough, else any: it grows below.
        let fits = |buffer: &Vec<f64>| (buffer.len() < words, buffer.len());
        let best = (0..free.len()).min_by_key(|&i| fits(&free[i]));
        best.map(|i| free.swap_remove(i)).unwrap_or_default()
    });
    match buffer.len() < words {
        // Not resized: what it held need not be moved.
        true => vec![0.0; words],
        false => buffer,
    }
}

/// Puts a buffer on the thread's list, unless that is full or the buffer very large.
fn keep(buffer: Vec<f64>) {
    if buffer.len() * size_of::<f64>() <= MAX_CACHED_BYTES {
        FREE.with_borrow_mut(|free| {
            if free.len() < MAX_CACHED_BUFFERS {
                free.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_buffers_are_apart() {
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

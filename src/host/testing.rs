//! Helpers for tests of kernels: operands, sets of threads, waiting for a condition, and expected
//! values.

use crate::{
    element::Element,
    error::{Error, Result},
    host::threads::Workers,
    op::{RngKey, Transpose},
};
use std::time::{Duration, Instant};

/// Returns `len` random integers from -4 to 4. All element types represent integers from -4 to 4,
/// and short sums of their products, exactly.
pub(crate) fn integers<T: Element>(tag: u64, len: usize) -> Vec<T> {
    let integers: [T; 9] = std::array::from_fn(|i| T::from_f64(i as f64 - 4.0));
    from_random_words(RngKey::new(7).child(tag), len, |word| integers[word as usize % 9])
}

/// Returns `len` random numbers in [-1, 1).
pub(crate) fn fractions<T: Element>(tag: u64, len: usize) -> Vec<T> {
    from_random_words(RngKey::new(8).child(tag), len, |word| {
        T::from_f64(f64::from(word) / f64::from(1u32 << 31) - 1.0)
    })
}

/// Returns `len` elements, each computed from one random word. The loop uses no iterators, each
/// step of which is several calls in an unoptimized build.
fn from_random_words<T: Element>(key: RngKey, len: usize, element: impl Fn(u32) -> T) -> Vec<T> {
    let mut elements = vec![T::default(); len];
    let (slice, mut words, mut i) = (&mut elements[..], [0; 4], 0);
    while i < len {
        if i % 4 == 0 {
            words = key.words(i as u64 / 4);
        }
        slice[i] = element(words[i % 4]);
        i += 1;
    }
    elements
}

/// Returns `len` NaN elements, to initialize results that a kernel must overwrite.
pub(crate) fn nan<T: Element>(len: usize) -> Vec<T> {
    vec![T::from_f64(f64::NAN); len]
}

/// Returns three [`Workers`], with one, two and three threads. On WebAssembly, which has no
/// threads, all three run kernels on the calling thread.
pub(crate) fn threads() -> [Workers; 3] {
    let has_threads = cfg!(not(target_family = "wasm"));
    [1, 2, 3].map(|count| Workers::new(if has_threads { count } else { 1 }).unwrap())
}

/// Waits until `done` returns true. If `done` does not return true within 20 seconds, panics with
/// `message`.
pub(crate) fn wait_until(done: impl Fn() -> bool, message: &str) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{message}");
        std::thread::yield_now();
    }
}

pub(crate) fn wide<T: Element>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

/// Rounds each exact result once to `T`, as a kernel does.
pub(crate) fn rounded<T: Element>(x: &[f64]) -> Vec<f64> {
    x.iter().map(|&x| T::from_f64(x).to_f64()).collect()
}

/// Returns element (i, j) of `op(A)`.
pub(crate) fn op_element<T: Element>(
    a: &[T],
    trans: Transpose,
    lda: usize,
    i: usize,
    j: usize,
) -> f64 {
    match trans {
        Transpose::No => a[i * lda + j].to_f64(),
        Transpose::Yes => a[j * lda + i].to_f64(),
    }
}

/// Returns the names of the kernel and of the operand in a length error.
pub(crate) fn operand(result: Result<()>) -> (&'static str, &'static str) {
    match result {
        Err(Error::Length { op, operand, .. }) => (op, operand),
        other => panic!("{other:?}"),
    }
}

/// Defines one test for each combination of a generic check function and an element type.
macro_rules! for_each_element {
    ($($check:ident),*) => {
        mod f32 { $(#[test] fn $check() { super::$check::<f32>() })* }
        mod f64 { $(#[test] fn $check() { super::$check::<f64>() })* }
        mod f16 { $(#[test] fn $check() { super::$check::<crate::element::f16>() })* }
        mod bf16 { $(#[test] fn $check() { super::$check::<crate::element::bf16>() })* }
    };
}
pub(crate) use for_each_element;

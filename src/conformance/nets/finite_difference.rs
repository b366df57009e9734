//! Gradients by finite differences.

use crate::{conformance::expected::epsilon, element::Element, error::Result};

/// Step of the differences. Its square, and the function's rounding error divided by it, are small.
const STEP: f64 = 1e-4;

/// Allowed roundings of a gradient: the terms of the longest sum, and a few more.
pub(super) const ROUNDINGS: f64 = 256.0;

/// The derivative of a function with respect to one element of a blob.
pub(super) struct FiniteDifference {
    /// Index of the element in its blob.
    index: usize,
    derivative: f64,
    /// Bound of the derivative's error.
    error: f64,
}

impl FiniteDifference {
    /// Computes central differences over one and two steps around `x`, whose difference estimates
    /// the error. `magnitude` is the sum of the absolute terms of the function.
    pub(super) fn new(
        index: usize,
        x: f64,
        magnitude: f64,
        mut function: impl FnMut(f64) -> Result<f64>,
    ) -> Result<Self> {
        let mut over = |h| Ok((function(x + h)? - function(x - h)?) / (2.0 * h));
        let (near, far): (f64, f64) = (over(STEP)?, over(2.0 * STEP)?);
        let error = (near - far).abs() + ROUNDINGS * f64::EPSILON * magnitude / STEP;
        Ok(Self { index, derivative: near, error })
    }
}

/// `Err` describes the first element that differs too much.
type Compared = std::result::Result<(), String>;

/// Compares a gradient in `T` with differences at some of its elements.
pub(super) fn compare_gradient<T: Element>(
    name: &str,
    gradient: &[f64],
    differences: &[FiniteDifference],
) -> Compared {
    let largest = differences.iter().fold(0.0f64, |max, slope| max.max(slope.derivative.abs()));
    differences.iter().try_for_each(|&FiniteDifference { index, derivative, error }| {
        let bound = error + ROUNDINGS * epsilon::<T>() * largest;
        compare_element(name, index, gradient[index], derivative, bound)
    })
}

/// Compares all elements with their expected values.
pub(super) fn compare_all(name: &str, got: &[f64], want: &[f64], bound: f64) -> Compared {
    let mut pairs = got.iter().zip(want).enumerate();
    pairs.try_for_each(|(i, (&got, &want))| compare_element(name, i, got, want, bound))
}

fn compare_element(name: &str, index: usize, got: f64, want: f64, bound: f64) -> Compared {
    let error = (got - want).abs();
    if error <= bound {
        return Ok(());
    }
    Err(format!(
        "{name}[{index}] is {got:e}, not {want:e}: off by {error:e} where {bound:e} is allowed"
    ))
}

//! Finite differences: numerical derivatives to compare gradients with.

use crate::{conformance::expected::epsilon, element::Element, error::Result};

/// Step `h` of the finite differences: so small that `h²` is negligible, and so large that a
/// rounding error divided by `h` is negligible.
const STEP: f64 = 1e-4;

/// Allowed number of roundings in a gradient: one for each term of the longest sum, and a few more.
pub(super) const ROUNDINGS: f64 = 256.0;

/// Numerical derivative of a function with respect to one element of a blob.
pub(super) struct FiniteDifference {
    /// Index of the perturbed element in its blob.
    index: usize,
    derivative: f64,
    /// Bound on the error of the derivative.
    error: f64,
}

impl FiniteDifference {
    /// Computes the central differences of `function` at `x` with the steps `STEP` and `2 · STEP`.
    /// The error bound is the distance between the two central differences, plus the rounding
    /// error. `magnitude` is the sum of the absolute values of the terms that `function` adds.
    pub(super) fn new(
        index: usize,
        x: f64,
        magnitude: f64,
        mut function: impl FnMut(f64) -> Result<f64>,
    ) -> Result<Self> {
        let mut central_difference = |h| Ok((function(x + h)? - function(x - h)?) / (2.0 * h));
        let (near, far): (f64, f64) = (central_difference(STEP)?, central_difference(2.0 * STEP)?);
        let error = (near - far).abs() + ROUNDINGS * f64::EPSILON * magnitude / STEP;
        Ok(Self { index, derivative: near, error })
    }
}

/// Result of comparing a gradient with expected values. An `Err` describes the first element that
/// differs too much.
type Compared = std::result::Result<(), String>;

/// Compares a gradient in `T` with the finite differences at some of its elements.
pub(super) fn compare_gradient<T: Element>(
    name: &str,
    gradient: &[f64],
    differences: &[FiniteDifference],
) -> Compared {
    let max_derivative =
        differences.iter().fold(0.0f64, |max, slope| max.max(slope.derivative.abs()));
    differences.iter().try_for_each(|&FiniteDifference { index, derivative, error }| {
        let bound = error + ROUNDINGS * epsilon::<T>() * max_derivative;
        compare_element(name, index, gradient[index], derivative, bound)
    })
}

/// Compares all elements with their expected values. Each element may differ from its expected
/// value by at most `bound`.
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

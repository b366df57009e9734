//! Gradients by differences.

use crate::error::Result;

/// Step of the differences: its square, and the rounding of the function over it, are small.
const STEP: f64 = 1e-4;

/// Roundings on the way to a gradient: as many as the longest sum has terms, and some.
pub(super) const ROUNDINGS: f64 = 256.0;

/// The gradient of a function with respect to one element.
pub(super) struct FiniteDifference {
    /// Which element of its blob it is of.
    pub(super) place: usize,
    pub(super) value: f64,
    /// How far off it may be.
    pub(super) unsure: f64,
}

impl FiniteDifference {
    /// By differences over one and two steps about `middle`, whose own difference tells their
    /// error. `magnitude` is that of the terms that the function adds up.
    pub(super) fn of(
        place: usize,
        middle: f64,
        magnitude: f64,
        mut at: impl FnMut(f64) -> Result<f64>,
    ) -> Result<Self> {
        let mut over = |step| Ok((at(middle + step)? - at(middle - step)?) / (2.0 * step));
        let (near, far): (f64, f64) = (over(STEP)?, over(2.0 * STEP)?);
        let unsure = (near - far).abs() + ROUNDINGS * f64::EPSILON * magnitude / STEP;
        Ok(Self { place, value: near, unsure })
    }
}

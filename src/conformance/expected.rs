//! Expected results: a value in `f64` and a bound on the device's rounding error.

use crate::element::{DType, Element};

/// Expected result `Σ tᵢ`, computed in `f64`, and the parts of its error bound.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    /// Expected value `Σ tᵢ`.
    pub(super) value: f64,
    /// Sum of the terms' magnitudes, `Σ |tᵢ|`.
    pub(super) magnitude: f64,
    /// Allowed number of roundings, each with an error relative to `magnitude`. If `roundings` is
    /// 0, the result must be `value`, rounded to the accumulator type and then to the element type.
    pub(super) roundings: f64,
    /// Whether the result has rounding errors even if all terms are integers.
    pub(super) inexact: bool,
}

/// Number of roundings that a sum may have in addition to one per term: the roundings of the
/// factors and of the accumulated result.
const SPARE_ROUNDINGS: f64 = 4.0;

impl Expected {
    /// Returns an expected result without accumulated rounding errors, such as the result of a copy
    /// or of one IEEE operation. A device must return `value`, correctly rounded.
    pub(super) fn exact(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// Returns the expected result of a product that is rounded at most `roundings` times. For
    /// integer operands, the product must be exact.
    pub(super) fn product(value: f64, roundings: f64) -> Self {
        Self { value, magnitude: value.abs(), roundings, inexact: false }
    }

    /// Returns the expected value of a function that devices compute within `ulps` units in the
    /// last place of the accumulator type.
    pub(super) fn approx(value: f64, ulps: f64) -> Self {
        Self { inexact: true, ..Self::product(value, ulps) }
    }

    /// Returns the expected result for integer operands, for which the device must compute `value`
    /// exactly unless `inexact` is true.
    pub(super) fn of_integers(self) -> Self {
        if self.inexact { self } else { Self::exact(self.value) }
    }

    /// Returns the expected result of an empty sum, which is 0.
    pub(super) fn zero() -> Self {
        Self { roundings: SPARE_ROUNDINGS, ..Self::default() }
    }

    /// Adds a term to the expected sum.
    pub(super) fn add(&mut self, term: f64) {
        self.value += term;
        self.magnitude += term.abs();
        self.roundings += 1.0;
    }

    /// Multiplies all terms of the expected sum by `factor`.
    pub(super) fn scaled(self, factor: f64) -> Self {
        let Self { value, magnitude, .. } = self;
        Self { value: factor * value, magnitude: factor.abs() * magnitude, ..self }
    }

    /// Returns the largest allowed difference between a device's result and the expected value. The
    /// bound includes the roundings in the accumulator, each relative to `magnitude`, and one
    /// rounding to the element type.
    ///
    /// One rounding causes an error of at most half an epsilon. The error bound allows a whole
    /// epsilon per rounding, because the oracle's `f64` sum has errors as large as those of an
    /// `f64` accumulator.
    pub(super) fn bound<T: Element>(&self) -> f64 {
        self.roundings * epsilon::<T::Acc>() * self.magnitude
            + epsilon::<T>() * self.value.abs()
            + smallest_positive::<T>()
    }
}

impl FromIterator<f64> for Expected {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::zero();
        terms.into_iter().for_each(|term| sum.add(term));
        sum
    }
}

/// Returns the epsilon of an element type, which is the distance from 1 to the next larger number.
pub(super) fn epsilon<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F16 => 1.0 / 1024.0,
        DType::Bf16 => 1.0 / 128.0,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
    }
}

/// Returns the smallest positive number of an element type.
fn smallest_positive<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F16 => f64::from(2.0f32.powi(-24)),
        DType::Bf16 => 2.0f64.powi(-133),
        DType::F32 => 2.0f64.powi(-149),
        DType::F64 => f64::from_bits(1),
    }
}

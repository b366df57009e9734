//! Expected results: a value in `f64` and a bound on the rounding error of a device.

use crate::element::{DType, Element};

/// A result, computed in `f64`, and the terms of its rounding error.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    /// `Σ tᵢ`
    pub(super) value: f64,
    /// `Σ |tᵢ|`
    pub(super) magnitude: f64,
    /// Largest number of roundings, each relative to the magnitude: one per term, and a few more.
    /// If it is 0, the result is the value, rounded to the accumulator and then to the element.
    pub(super) roundings: f64,
    /// Whether the result is rounded even if the terms are integers.
    pub(super) inexact: bool,
}

/// Roundings other than those of the terms: of factors, and of the result in the accumulator.
const SPARE_ROUNDINGS: f64 = 4.0;

impl Expected {
    /// Returns the result of at most one IEEE operation, which is correctly rounded.
    pub(super) fn exact(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// Returns a product with a few roundings, which is exact if the operands are integers.
    pub(super) fn product(value: f64, roundings: f64) -> Self {
        Self { value, magnitude: value.abs(), roundings, inexact: false }
    }

    /// Returns the value of a function that devices compute within `ulps` of the accumulator.
    pub(super) fn approx(value: f64, ulps: f64) -> Self {
        Self { inexact: true, ..Self::product(value, ulps) }
    }

    /// Returns the expectation for operands that are integers.
    pub(super) fn of_integers(self) -> Self {
        if self.inexact { self } else { Self::exact(self.value) }
    }

    /// Returns a sum without terms.
    pub(super) fn zero() -> Self {
        Self { roundings: SPARE_ROUNDINGS, ..Self::default() }
    }

    /// Adds a term.
    pub(super) fn add(&mut self, term: f64) {
        self.value += term;
        self.magnitude += term.abs();
        self.roundings += 1.0;
    }

    /// Multiplies all terms by `factor`.
    pub(super) fn scaled(self, factor: f64) -> Self {
        let Self { value, magnitude, .. } = self;
        Self { value: factor * value, magnitude: factor.abs() * magnitude, ..self }
    }

    /// Returns the largest allowed distance of an element from the value: the roundings of the
    /// accumulator, each relative to all terms, and one rounding of the element.
    ///
    /// A rounding is half an epsilon. The other half covers the oracle's own sum, whose `f64`
    /// roundings are as large as the device's if the accumulator is `f64`.
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

/// Returns the distance from 1 to the next larger number of a type.
pub(super) fn epsilon<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F16 => 1.0 / 1024.0,
        DType::Bf16 => 1.0 / 128.0,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
    }
}

/// Returns the smallest positive number of a type.
fn smallest_positive<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F16 => f64::from(2.0f32.powi(-24)),
        DType::Bf16 => 2.0f64.powi(-133),
        DType::F32 => 2.0f64.powi(-149),
        DType::F64 => f64::from_bits(1),
    }
}

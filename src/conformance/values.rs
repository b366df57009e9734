//! The elements that kernels are tried on, and what comes of them.

use super::{compare::within, failure::Verdict};
use crate::element::{DType, Element};
use proptest::prelude::*;

/// Which numbers operands hold, and with that how results are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// The integers −4 to 4: all partial sums are exact, so results have to be the nearest.
    Integers,
    /// Numbers in [−1, 1): results may differ by what the roundings of their terms add up to.
    Reals,
}

impl Values {
    /// Either.
    pub(super) fn any() -> BoxedStrategy<Self> {
        prop_oneof![Just(Self::Integers), Just(Self::Reals)].boxed()
    }

    /// A source of such numbers.
    pub(super) fn from(self, seed: u64) -> ValueStream {
        ValueStream { values: self, state: seed }
    }

    /// Compares what a kernel gave with what it should have.
    pub(super) fn judge<T: Element>(self, name: &str, got: &[T], want: &[Expected]) -> Verdict {
        match self {
            Self::Integers => {
                let want: Vec<_> = want.iter().map(|sum| sum.of_integers()).collect();
                within(name, got, &want)
            }
            Self::Reals => within(name, got, want),
        }
    }
}

/// A sequence of numbers; the same for the same seed.
pub(super) struct ValueStream {
    values: Values,
    state: u64,
}

impl ValueStream {
    /// The next `len` of them.
    pub(super) fn take<T: Element>(&mut self, len: usize) -> Vec<T> {
        match self.values {
            Values::Integers => {
                self.below(9, len).into_iter().map(|i| T::from_f64(i as f64 - 4.0)).collect()
            }
            Values::Reals => self.between(-1.0, 1.0, len),
        }
    }

    /// The next `len` numbers of [low, high), whatever the kind.
    pub(super) fn between<T: Element>(&mut self, low: f64, high: f64, len: usize) -> Vec<T> {
        (0..len).map(|_| T::from_f64(low + (high - low) * self.fraction())).collect()
    }

    /// The next `len` integers below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: usize, len: usize) -> Vec<usize> {
        (0..len).map(|_| (self.word() >> 11) as usize % bound).collect()
    }

    fn fraction(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// SplitMix64. Source: Steele, Lea, Flood 2014.
    fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// A result, taken in `f64`, and what roundings in another order or type may amount to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    /// `Σ tᵢ`
    pub(super) value: f64,
    /// `Σ |tᵢ|`
    pub(super) magnitude: f64,
    /// How many roundings there may be on the way: one a term, and a few. With none the result is
    /// the value, rounded to the accumulator and then to the element.
    pub(super) roundings: f64,
    /// Whether there are roundings even if the terms are integers.
    pub(super) inexact: bool,
}

/// Roundings besides those of the terms: of factors, and of the result in the accumulator.
const SPARE: f64 = 4.0;

impl Expected {
    /// What one IEEE operation gives, or none.
    pub(super) fn once(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// A product of a few roundings, none of them if the operands are integers.
    pub(super) fn rounded(value: f64, roundings: f64) -> Self {
        Self { value, magnitude: value.abs(), roundings, inexact: false }
    }

    /// A function that is computed within `ulps` units in the last place of the accumulator.
    pub(super) fn near(value: f64, ulps: f64) -> Self {
        Self { inexact: true, ..Self::rounded(value, ulps) }
    }

    /// This, if the terms are integers.
    fn of_integers(self) -> Self {
        if self.inexact { self } else { Self::once(self.value) }
    }

    /// A sum of no terms.
    pub(super) fn none() -> Self {
        Self { roundings: SPARE, ..Self::default() }
    }

    /// Adds a term.
    pub(super) fn add(&mut self, term: f64) {
        self.value += term;
        self.magnitude += term.abs();
        self.roundings += 1.0;
    }

    /// All of it `factor` times.
    pub(super) fn scaled(self, factor: f64) -> Self {
        let Self { value, magnitude, .. } = self;
        Self { value: factor * value, magnitude: factor.abs() * magnitude, ..self }
    }

    /// How far an element may be from the value: the roundings of the accumulator, each relative
    /// to all terms, and one of the element.
    ///
    /// A rounding is half an epsilon. The other half is for the sum taken here, which rounds in
    /// `f64` as the one on trial does if its accumulator is that.
    pub(super) fn bound<T: Element>(&self) -> f64 {
        self.roundings * epsilon::<T::Acc>() * self.magnitude
            + epsilon::<T>() * self.value.abs()
            + least::<T>()
    }
}

impl FromIterator<f64> for Expected {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::none();
        terms.into_iter().for_each(|term| sum.add(term));
        sum
    }
}

/// The elements in `f64`.
pub(super) fn wide<T: Element>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

/// From 1 to the next number of a type.
pub(super) fn epsilon<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F16 => 1.0 / 1024.0,
        DType::Bf16 => 1.0 / 128.0,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
    }
}

/// The least positive number of a type.
pub(super) fn least<T: Element>() -> f64 {
    match T::DTYPE {
        DType::F16 => f64::from(2.0f32.powi(-24)),
        DType::Bf16 => 2.0f64.powi(-133),
        DType::F32 => 2.0f64.powi(-149),
        DType::F64 => f64::from_bits(1),
    }
}

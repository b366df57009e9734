//! Contents of operands: integers, real numbers and bytes drawn from a seed.

use super::{
    compare::{Output, expect_within},
    expected::Expected,
    failure::Verdict,
};
use crate::element::Element;
use proptest::prelude::*;

/// The kind of values that the operands hold, which determines how the kit compares results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Integers from −4 to 4. Sums of such small integers are exact, so a result must be the
    /// expected value rounded to the element type.
    Integers,
    /// Real numbers in [−1, 1). A sum of these real numbers may differ from the expected value by
    /// rounding errors.
    Reals,
    /// Integers from −4 to 4, except for a few elements that are NaN, an infinity or −0. A sum with
    /// a NaN or with both infinities is NaN, and a sum with one infinity is this infinity, so
    /// results are as exact as those of integers.
    Specials,
}

impl Values {
    /// Returns a strategy that draws integers or real numbers.
    pub(super) fn any() -> BoxedStrategy<Self> {
        prop_oneof![Just(Self::Integers), Just(Self::Reals)].boxed()
    }

    /// Returns a stream of pseudo-random numbers of the kind `self`.
    pub(super) fn stream(self, seed: u64) -> ValueStream {
        ValueStream { values: self, state: seed }
    }

    /// Compares the result of a kernel on operands of the kind `self` with the expected result.
    pub(super) fn compare<'a, T: Element>(
        self,
        output: impl Into<Output<'a>>,
        got: &[T],
        want: &[Expected],
    ) -> Verdict {
        let output = output.into();
        match self {
            Self::Integers | Self::Specials => {
                let want: Vec<_> = want.iter().map(|sum| sum.of_integers()).collect();
                expect_within(output, got, &want)
            }
            Self::Reals => expect_within(output, got, want),
        }
    }
}

/// Stream of pseudo-random numbers that depends only on its seed.
pub(super) struct ValueStream {
    values: Values,
    state: u64,
}

impl ValueStream {
    /// Returns the next `len` numbers of the stream.
    pub(super) fn take<T: Element>(&mut self, len: usize) -> Vec<T> {
        match self.values {
            Values::Integers => {
                self.indices(9, len).into_iter().map(|i| T::from_f64(i as f64 - 4.0)).collect()
            }
            Values::Reals => self.uniform(-1.0, 1.0, len),
            Values::Specials => {
                let element_value = |i| match i {
                    0 => f64::NAN,
                    1 => f64::INFINITY,
                    2 => f64::NEG_INFINITY,
                    3 => -0.0,
                    i => (i % 9) as f64 - 4.0,
                };
                self.indices(48, len).into_iter().map(|i| T::from_f64(element_value(i))).collect()
            }
        }
    }

    /// Returns the next `len` real numbers in [low, high), even if the stream generates integers.
    pub(super) fn uniform<T: Element>(&mut self, low: f64, high: f64, len: usize) -> Vec<T> {
        (0..len).map(|_| T::from_f64(low + (high - low) * self.fraction())).collect()
    }

    /// Returns the next `len` integers below `bound`, which must not be 0.
    pub(super) fn indices(&mut self, bound: usize, len: usize) -> Vec<usize> {
        (0..len).map(|_| (self.word() >> 11) as usize % bound).collect()
    }

    fn fraction(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns the next word of SplitMix64 (Steele, Lea and Flood, 2014).
    fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// Returns `len` bytes, each different from its neighbours. A different `seed` yields different
/// bytes.
pub(super) fn byte_pattern(seed: u64, len: usize) -> Vec<u8> {
    (seed.wrapping_mul(0x9e37_79b9)..).take(len).map(|i| (i.wrapping_mul(167) >> 3) as u8).collect()
}

/// Returns `copies` copies of `period`, one after another.
pub(super) fn repeated<T: Copy>(period: &[T], copies: usize) -> Vec<T> {
    let mut x = Vec::with_capacity(period.len() * copies);
    (0..copies).for_each(|_| x.extend_from_slice(period));
    x
}

/// Converts the elements to `f64`.
pub(super) fn wide<T: Element>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

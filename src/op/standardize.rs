//! Taking the mean off and dividing by the deviation.

use super::Axis;
use num_traits::Float;

/// Where ε keeps a deviation of zero from being divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EpsilonPlacement {
    /// `1 / √(variance + ε)`
    AddedToVariance,
    /// `1 / (√variance + ε)`
    AddedToDeviation,
}

/// `y[o,e,i] = (x[o,e,i] − mean[e]) · rate[e]`, where the rate is the inverse of the deviation.
///
/// If mean and variance are those of `x` itself, its gradient is
/// `dx = (dy − Σ dy / m − y · Σ dy·y / m) · rate` with sums over the `m` elements at `e`. Source:
/// Ioffe, Szegedy 2015, section 3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standardize {
    /// The positions `e`.
    pub axis: Axis,
    /// ε
    pub epsilon: f64,
    /// What it is added to.
    pub place: EpsilonPlacement,
}

impl Standardize {
    /// What differences from the mean are multiplied by.
    #[inline(always)]
    pub fn rate<A: Float>(&self, variance: A, epsilon: A) -> A {
        let deviation = match self.place {
            EpsilonPlacement::AddedToVariance => (variance + epsilon).sqrt(),
            EpsilonPlacement::AddedToDeviation => variance.sqrt() + epsilon,
        };
        A::one() / deviation
    }
}

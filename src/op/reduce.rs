//! Functions of many elements.

use super::Axis;
use crate::error::{Error, Result, check_len};

/// How many elements become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduce {
    /// `Σ xᵢ`
    Sum,
    /// `Σ xᵢ / n`; NaN over nothing.
    Mean,
    /// The greatest; over nothing an error. NaN is ignored unless all are NaN.
    Max,
    /// The least; over nothing an error. NaN is ignored unless all are NaN.
    Min,
    /// `Σ |xᵢ|`
    AbsSum,
    /// `Σ xᵢ²`
    SumSq,
}

impl Reduce {
    /// Kernel name, as in device symbols.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Max => "max",
            Self::Min => "min",
            Self::AbsSum => "abs_sum",
            Self::SumSq => "sum_sq",
        }
    }
}

/// The `k` greatest along an axis, the greatest first; of equals that with the larger index. NaN
/// is less than any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopK {
    /// The axis.
    pub axis: Axis,
    /// How many.
    pub k: usize,
}

impl TopK {
    /// Fails unless the axis has `k` elements and operands have these lengths.
    ///
    /// # Errors
    /// [`Error::Length`] names the operand; [`Error::InvalidInput`].
    pub fn check(&self, x: usize, values: usize, places: usize) -> Result<()> {
        if self.k > self.axis.extent {
            let why = format!("the {} greatest of {}", self.k, self.axis.extent);
            return Err(Error::invalid_input("top_k", why));
        }
        check_len("top_k", "x", self.axis.count(), x)?;
        check_len("top_k", "values", self.k * self.axis.reduced_count(), values)?;
        check_len("top_k", "places", self.k * self.axis.reduced_count(), places)
    }
}

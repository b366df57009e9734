//! Descriptors of reductions along an axis, and of top-k selection along an axis.

use super::Axis;
use crate::error::{Error, Result, check_len};

/// A reduction of the `n` elements xᵢ along an axis to one element.
///
/// ```
/// use cortado::prelude::*;
///
/// let x = Blob::from_slice(&CpuDevice::new(), &[2, 3], &[1.0f32, -2.0, 3.0, 4.0, 5.0, -6.0])?;
/// assert_eq!(x.reduce(Reduce::AbsSum, 1)?.to_vec()?, [6.0, 15.0]);
/// assert_eq!(x.reduce(Reduce::Min, 0)?.to_vec()?, [1.0, -2.0, -6.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduce {
    /// `Σ xᵢ`, which is NaN if an element is NaN.
    Sum,
    /// The mean `Σ xᵢ / n`, or NaN if `n = 0`.
    Mean,
    /// The greatest element; an error if `n = 0`. NaN elements are ignored unless all elements are
    /// NaN.
    Max,
    /// The least element; an error if `n = 0`. NaN elements are ignored unless all elements are
    /// NaN.
    Min,
    /// `Σ |xᵢ|`
    AbsSum,
    /// `Σ xᵢ²`
    SumSq,
}

impl Reduce {
    /// Returns the name of the reduction, as it appears in the names of device kernels.
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

    /// Returns the name under which a [`Ledger`](crate::ledger::Ledger) and the coverage table list
    /// the kernel with this reduction, such as `reduce_sum`.
    pub fn kernel_name(self) -> &'static str {
        match self {
            Self::Sum => "reduce_sum",
            Self::Mean => "reduce_mean",
            Self::Max => "reduce_max",
            Self::Min => "reduce_min",
            Self::AbsSum => "reduce_abs_sum",
            Self::SumSq => "reduce_sum_sq",
        }
    }

    /// Fails unless the lengths of `x` and `y` match `axis`. `Max` and `Min` also fail if the axis
    /// has extent 0 and `y` is not empty.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    /// Returns [`Error::InvalidInput`] if `Max` or `Min` has no elements to reduce.
    pub fn check(self, axis: &Axis, x: usize, y: usize) -> Result<()> {
        check_len(self.kernel_name(), "x", axis.count(), x)?;
        check_len(self.kernel_name(), "y", axis.reduced_count(), y)?;
        match self {
            Self::Max | Self::Min => axis.check_non_empty(self.kernel_name()),
            _ => Ok(()),
        }
    }
}

/// The `k` greatest elements along an axis, in descending order. Among equal elements, the element
/// with the larger index comes first. A NaN element ranks below every number.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::{Axis, TopK}};
///
/// let op = TopK { axis: Axis::new(1, 4, 1)?, k: 2 };
/// let (mut values, mut places) = ([0.0; 2], [0.0; 2]);
/// slices::top_k(Workers::global(), &op, &[0.1f32, 0.5, 0.0, 0.4], &mut values, &mut places)?;
/// assert_eq!((values, places), ([0.5, 0.4], [1.0, 3.0]));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopK {
    /// The axis.
    pub axis: Axis,
    /// Number of greatest elements to find.
    pub k: usize,
}

impl TopK {
    /// Fails unless the axis has at least `k` elements, and the operand lengths match the
    /// descriptor.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    /// Returns [`Error::InvalidInput`] if `k` exceeds the extent of the axis.
    pub fn check(&self, x: usize, values: usize, places: usize) -> Result<()> {
        if self.k > self.axis.extent {
            let reason = format!("k = {} exceeds the axis extent {}", self.k, self.axis.extent);
            return Err(Error::invalid_input("top_k", reason));
        }
        check_len("top_k", "x", self.axis.count(), x)?;
        check_len("top_k", "values", self.k * self.axis.reduced_count(), values)?;
        check_len("top_k", "places", self.k * self.axis.reduced_count(), places)
    }
}

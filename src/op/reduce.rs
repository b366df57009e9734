//! Functions of many elements.

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

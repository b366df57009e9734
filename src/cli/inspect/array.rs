//! An array and statistics of its values.

use crate::{element::DType, tensor_io::Tensor, shape::Shape};

/// What is told of an array.
pub(super) struct Array {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    /// `None` if no value is finite.
    pub(super) spread: Option<Spread>,
    pub(super) nans: usize,
    pub(super) infinities: usize,
}

/// Statistics of finite values.
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    /// Standard deviation `√(Σ(x − mean)²/n)`.
    pub(super) std: f64,
}

impl Array {
    pub(super) fn new(name: impl Into<String>, tensor: &Tensor) -> Self {
        let nans = tensor.values().filter(|value| value.is_nan()).count();
        let infinities = tensor.values().filter(|value| value.is_infinite()).count();
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        Self { name: name.into(), dtype, shape, spread: Spread::of(tensor), nans, infinities }
    }

    pub(super) fn elements(&self) -> usize {
        self.shape.count()
    }

    pub(super) fn bytes(&self) -> usize {
        self.shape.count() * self.dtype.size()
    }
}

impl Spread {
    /// In two passes, since squares less a square would cancel.
    fn of(tensor: &Tensor) -> Option<Self> {
        let finite = || tensor.values().filter(|value| value.is_finite());
        let (mut count, mut sum) = (0.0, 0.0);
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in finite() {
            count += 1.0;
            sum += value;
            (min, max) = (min.min(value), max.max(value));
        }
        let mean =
            if sum.is_finite() { sum / count } else { finite().map(|value| value / count).sum() };
        // Scaled by the largest distance, whose square could overflow.
        let scale = (max - mean).max(mean - min);
        let scaled = |value: f64| if scale > 0.0 { (value - mean) / scale } else { 0.0 };
        let squares: f64 = finite().map(|value| scaled(value).powi(2)).sum();
        (count > 0.0).then(|| Self { min, max, mean, std: scale * (squares / count).sqrt() })
    }
}

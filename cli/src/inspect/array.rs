//! Statistics of the values of an array, for `cortado inspect`.

use cortado::{element::DType, shape::Shape, tensor_io::Tensor};

/// Array in a file: its name, element type, shape and statistics.
pub(super) struct Array {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    /// Statistics of the array's finite values; `None` if no value is finite.
    pub(super) statistics: Option<Statistics>,
    pub(super) nans: usize,
    pub(super) infinities: usize,
}

/// Statistics of an array's finite values, such as mean and standard deviation.
pub(super) struct Statistics {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    /// Standard deviation of the finite values, `√(Σ(x − mean)²/n)`.
    pub(super) std: f64,
}

impl Array {
    pub(super) fn new(name: impl Into<String>, tensor: &Tensor) -> Self {
        let nans = tensor.values().filter(|value| value.is_nan()).count();
        let infinities = tensor.values().filter(|value| value.is_infinite()).count();
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        let statistics = Statistics::of(tensor);
        Self { name: name.into(), dtype, shape, statistics, nans, infinities }
    }

    pub(super) fn elements(&self) -> usize {
        self.shape.count()
    }

    pub(super) fn bytes(&self) -> usize {
        self.shape.count() * self.dtype.size()
    }
}

impl Statistics {
    /// Computes the statistics of a tensor's finite values in two passes, because a one-pass
    /// formula loses digits to cancellation.
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
        // Divide the deviations from the mean by the largest deviation, because the squares could
        // overflow.
        let scale = (max - mean).max(mean - min);
        let scaled = |value: f64| if scale > 0.0 { (value - mean) / scale } else { 0.0 };
        let squares: f64 = finite().map(|value| scaled(value).powi(2)).sum();
        (count > 0.0).then(|| Self { min, max, mean, std: scale * (squares / count).sqrt() })
    }
}

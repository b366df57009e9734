//! The SmoothL1Loss layer: a loss that is quadratic for small differences and linear for large
//! ones.

use super::{loss_common, prelude::*};
use crate::{
    memory::Src,
    op::{Axis, Binary, LossNormalization, Unary},
};

/// `loss = Σ wₒ · f(wᵢ · (a − b)) / n`, where `f(d) = (σ·d)² / 2` if `|d| < 1/σ²`, and `f(d) = |d|
/// − 1/(2σ²)` otherwise. The bottoms are a, b and, optionally, the inside weights wᵢ and the
/// outside weights wₒ, all of the same shape. The field `sigma` is σ.
///
/// The layer comes from Fast R-CNN: Girshick, Fast R-CNN (2015). By default, n is the extent of the
/// first axis. As in R-FCN, the `normalization` of `loss_param` selects another n: `VALID` and
/// `FULL` divide by the number of elements per channel. The layer computes the gradients of a and
/// b.
///
/// The type `SmoothL1LossOHEM` of R-FCN has no outside weights, σ = 1, and the default
/// normalization `VALID`. Its optional second top, which has no gradient, holds the sum of `f` over
/// the channels at each position of each item. The gradients are the derivatives of the loss.
/// R-FCN's code leaves the inside weights out of the gradients, which is the same for weights of 0
/// and 1.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "a" top: "b" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "SmoothL1Loss" bottom: "a" bottom: "b" top: "loss" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("a").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[0.5, -3.0]);
/// assert_eq!(net.forward()?, 0.125 + 2.5);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SmoothL1LossLayer<T: Element> {
    /// Whether the type is `SmoothL1LossOHEM`.
    is_of_regions: bool,
    /// `σ²`
    sigma_squared: f64,
    normalization: LossNormalization,
    /// The divisor of the normalization `PRE_FIXED`.
    fixed_divisor: Option<f64>,
    /// `n / σ²`, by which the layer divides losses and gradients.
    divisor: f64,
    /// Scratch blob of the forward pass: first the weighted differences `d`, then `wₒ · (d − c/2)`
    /// for the clipped differences `c`.
    differences: Blob<T>,
    /// The differences, limited to the range from `−1/σ²` to `1/σ²`: the derivative of `f`, divided
    /// by `σ²`.
    clipped: Blob<T>,
}

impl<T: Element> SmoothL1LossLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `sigma` or `pre_fixed_normalizer` is not positive.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let sigma = param.smooth_l1_loss_param.unwrap_or_default().sigma();
        Self::with_sigma(sigma.into(), param, cx, LossNormalization::BatchSize)
    }

    /// Creates a layer of the type `SmoothL1LossOHEM`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `pre_fixed_normalizer` is not positive.
    pub fn of_regions(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let layer = Self::with_sigma(1.0, param, cx, LossNormalization::Valid)?;
        Ok(Self { is_of_regions: true, ..layer })
    }

    fn with_sigma(
        sigma: f64,
        param: &LayerParameter,
        cx: &LayerContext<'_>,
        default: LossNormalization,
    ) -> Result<Self> {
        if !(sigma > 0.0 && sigma.is_finite()) {
            return invalid(format!(
                "smooth_l1_loss_param: sigma must be positive and finite, found {sigma}"
            ));
        }
        let loss = param.loss_param.clone().unwrap_or_default();
        let fixed_divisor = loss_common::fixed_divisor(&loss)?;
        let normalization = match fixed_divisor {
            Some(_) => LossNormalization::None,
            None => loss_common::normalization(&loss, default)?,
        };
        Ok(Self {
            is_of_regions: false,
            sigma_squared: sigma * sigma,
            normalization,
            fixed_divisor,
            divisor: 1.0,
            differences: Blob::new(cx.device, &[0])?,
            clipped: Blob::new(cx.device, &[0])?,
        })
    }
}

impl<T: Element> Layer<T> for SmoothL1LossLayer<T> {
    fn kind(&self) -> &'static str {
        if self.is_of_regions { "SmoothL1LossOHEM" } else { "SmoothL1Loss" }
    }

    fn arity(&self) -> Arity {
        match self.is_of_regions {
            true => Arity::between(2..=3, 1..=2),
            false => Arity::between(2..=4, 1..=1),
        }
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom < 2
    }

    fn is_loss(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        loss_common::check_batch(shape, bottom[1].shape())?;
        for (i, other) in bottom.iter().enumerate().skip(1) {
            if other.count() != shape.count() {
                return wrong_shape(format!(
                    "bottoms 0 and {i} of shapes {shape} and {} have different numbers of elements",
                    other.shape()
                ));
            }
        }
        let (items, channels) = (shape[0], shape.get(1).copied().unwrap_or(1));
        let positions = shape.count() / channels.max(1);
        let elements_of_axis_0 = positions / items.max(1);
        let n = self.normalization.divisor(items, elements_of_axis_0, positions);
        self.divisor = self.fixed_divisor.unwrap_or(n) / self.sigma_squared;
        self.differences.reshape(shape)?;
        self.clipped.reshape(shape)?;
        if let Some(losses) = top.get_mut(1) {
            let (height, width) = (bottom[0].height()?, bottom[0].width()?);
            losses.reshape(&[items, 1, height, width])?;
        }
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (a, b) = (bottom[0].data()?, bottom[1].data()?);
        let (mut d, mut clipped) = (self.differences.data_mut()?, self.clipped.data_mut()?);
        device.binary(Binary::Sub, a.view().into(), b.view(), d.view_mut())?;
        if let Some(weights) = bottom.get(2) {
            device.binary(Binary::Mul, Src::InPlace, weights.data()?.view(), d.view_mut())?;
        }
        let limit = 1.0 / self.sigma_squared;
        let clip = Unary::Clip { low: T::acc(-limit), high: T::acc(limit) };
        device.unary(clip, d.view().into(), clipped.view_mut())?;
        // With the clipped difference c, f(d) = σ² · c · (d − c/2) in both cases.
        device.axpy(T::acc(-0.5), clipped.view(), d.view_mut())?;
        if let Some(weights) = bottom.get(3) {
            device.binary(Binary::Mul, Src::InPlace, weights.data()?.view(), d.view_mut())?;
        }
        let (all, mut loss) = (Axis::new(bottom[0].count(), 1, 1)?, top[0].data_mut()?);
        device.dot_to_axis(&all, T::acc(0.0), clipped.view(), d.view(), loss.view_mut())?;
        device.scal(T::acc(1.0 / self.divisor), loss.view_mut())?;
        if let Some(losses) = top.get(1) {
            let (channels, mut losses) = (bottom[0].channels()?, losses.data_mut()?);
            let (d, clipped) = (d.view().host()?, clipped.view().host()?);
            let losses = losses.host_write_only()?;
            let positions = bottom[0].height()? * bottom[0].width()?;
            for (i, loss) in losses.iter_mut().enumerate() {
                let (item, position) = (i / positions, i % positions);
                let element = |channel| (item * channels + channel) * positions + position;
                let term = |i: usize| clipped[i].to_f64() * d[i].to_f64();
                let sum: f64 = (0..channels).map(element).map(term).sum();
                *loss = T::from_f64(sum * self.sigma_squared);
            }
        }
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        for (i, content) in [(2, "inside weights"), (3, "outside weights")] {
            check_no_gradient(propagate.bottom, i, content)?;
        }
        let (weight, clipped) = (top[0].diff()?, self.clipped.data()?);
        let each = Axis::new(bottom[0].count(), 1, 1)?;
        for (i, sign) in [(0, 1.0), (1, -1.0)] {
            if !propagate.bottom[i] {
                continue;
            }
            let mut dx = bottom[i].diff_mut()?;
            let c = clipped.view().into();
            device.broadcast(Binary::Mul, &each, c, weight.view(), dx.view_mut())?;
            for weights in &bottom[2..] {
                device.binary(Binary::Mul, Src::InPlace, weights.data()?.view(), dx.view_mut())?;
            }
            device.scal(T::acc(sign / self.divisor), dx.view_mut())?;
        }
        Ok(())
    }
}

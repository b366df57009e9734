//! The BatchNorm layer, which normalizes each channel of a batch.

use super::{
    prelude::*,
    saved_input::SavedInput,
    weight_bias::{filled_blob, filler},
};
use crate::{
    filler::Filler,
    memory::Src,
    op::{Axis, Binary, EpsilonPlacement, Standardize, Unary},
    proto::{BatchNormParameter, Phase},
};

/// Batch normalization, `y = (x − mean) / √(variance + eps)` for each channel; the second axis
/// holds the channels.
///
/// Without `use_global_stats`, the layer normalizes by the mean and the variance of the batch. With
/// `use_global_stats`, the default in the TEST phase, the layer normalizes by stored statistics.
/// The stored statistics are three parameters that are not trainable: a sum of means, a sum of
/// unbiased variances, and the weight by which the layer divides both sums. For each batch, the
/// layer first multiplies the three statistics parameters by `moving_average_fraction`. The layer
/// then adds the batch's mean to the first parameter, the batch's variance to the second parameter,
/// and 1 to the third parameter. If the third parameter is 0, the layer uses 0 as the stored mean
/// and variance.
///
/// With `scale_bias`, `scale_filler` or `bias_filler` of NVIDIA's fork of Caffe, the layer computes
/// `y = scale · (x − mean) / √(variance + eps) + bias` with an `eps` of at least 1e-5. The scale,
/// by default 1, and the bias, by default 0, have one value per channel. Both are trainable
/// parameters, which follow the three statistics parameters. The fork stores the mean and the
/// variance themselves, with a third parameter of 0;
/// [`Net::copy_trained_from`](crate::Net::copy_trained_from) sets the third parameter of such a
/// layer to 1.
///
/// The forward pass reads the bottom twice. The backward pass reads both the bottom and the top's
/// gradient twice. The layer saves a copy of the bottom only if the layer runs in place.
///
/// Batch normalization was introduced by Ioffe and Szegedy (2015).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 dim: 1 } } }
///     layer { type: "BatchNorm" bottom: "x" top: "y"
///       batch_norm_param { use_global_stats: false eps: 3 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 3.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [-0.5, 0.5]); // mean 2, variance 1
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct BatchNormLayer<T: Element> {
    param: BatchNormParameter,
    use_stored: bool,
    epsilon: f64,
    /// The fillers of the scale and the bias; `None` if the layer has no scale.
    fillers: Option<[Filler; 2]>,
    op: Option<Standardize>,
    mean: Blob<T>,
    variance: Blob<T>,
    /// `1 / √(variance + eps)` per channel.
    inverse_deviation: Blob<T>,
    saved_input: SavedInput<T>,
    /// The values that the layer multiplies by the scale.
    normalized: Blob<T>,
    /// The three statistics parameters: the sum of means, the sum of variances, and the weight that
    /// divides both sums. If the layer has a scale, the scale and the bias follow.
    params: Vec<Blob<T>>,
}

/// Returns whether a BatchNorm layer has a scale and a bias.
fn has_scale(param: &BatchNormParameter) -> bool {
    param.scale_bias() || param.scale_filler.is_some() || param.bias_filler.is_some()
}

/// Returns the constant that a BatchNorm layer adds to the variance.
pub(crate) fn epsilon(param: &BatchNormParameter) -> f32 {
    if has_scale(param) { param.eps().max(1e-5) } else { param.eps() }
}

impl<T: Element> BatchNormLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the definition of a filler is invalid.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let param = param.batch_norm_param.clone().unwrap_or_default();
        let fillers = match has_scale(&param) {
            true => Some([
                filler(&param.scale_filler, Filler::Constant { value: 1.0 })?,
                filler(&param.bias_filler, Filler::default())?,
            ]),
            false => None,
        };
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self {
            use_stored: param.use_global_stats.unwrap_or(cx.phase == Phase::Test),
            epsilon: epsilon(&param).into(),
            param,
            fillers,
            op: None,
            mean: blob()?,
            variance: blob()?,
            inverse_deviation: blob()?,
            saved_input: SavedInput::new(cx.device)?,
            normalized: blob()?,
            params: Vec::new(),
        })
    }

    fn load_statistics(&self, device: &AnyDevice) -> Result<()> {
        let weight = self.params[2].data()?;
        for (sum, mean) in self.params.iter().zip([&self.mean, &self.variance]) {
            let (sum, mut mean) = (sum.data()?, mean.data_mut()?);
            let axis = Axis::new(1, 1, sum.view().len())?;
            let sum = Src::View(sum.view());
            device.broadcast(Binary::DivOrZero, &axis, sum, weight.view(), mean.view_mut())?;
        }
        Ok(())
    }

    /// Adds the mean and the unbiased variance of a batch with `count` elements per channel to the
    /// stored sums.
    fn store_statistics(&self, device: &AnyDevice, count: usize) -> Result<()> {
        let unbiased_factor = if count > 1 { count as f64 / (count - 1) as f64 } else { 1.0 };
        let fraction = T::acc(self.param.moving_average_fraction().into());
        let statistics = [(&self.mean, 1.0), (&self.variance, unbiased_factor)];
        for (sum, (value, factor)) in self.params.iter().zip(statistics) {
            let (value, mut sum) = (value.data()?, sum.data_mut()?);
            device.axpby(T::acc(factor), value.view(), fraction, sum.view_mut())?;
        }
        let one = T::acc(1.0);
        let next_weight = Unary::PowAffine { scale: fraction, shift: one, power: one };
        device.unary(next_weight, Src::InPlace, self.params[2].data_mut()?.view_mut())
    }
}

impl<T: Element> Layer<T> for BatchNormLayer<T> {
    fn kind(&self) -> &'static str {
        "BatchNorm"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let channels = Axis::of(bottom[0].shape(), 1)?.extent;
        for len in [channels, channels, 1] {
            self.params.push(Blob::new(cx.device, &[len])?);
        }
        for (i, filler) in (0..).zip(self.fillers.iter().flatten()) {
            self.params.push(filled_blob(cx, &[channels], filler, i)?);
        }
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let axis = Axis::of(bottom[0].shape(), 1)?;
        let channels = self.params[0].count();
        if axis.extent != channels {
            return wrong_shape(format!("expected {channels} channels, found {}", axis.extent));
        }
        let (epsilon, epsilon_placement) = (self.epsilon, EpsilonPlacement::AddedToVariance);
        self.op = Some(Standardize { axis, epsilon, epsilon_placement });
        for blob in [&mut self.mean, &mut self.variance, &mut self.inverse_deviation] {
            blob.reshape(&[channels])?;
        }
        if self.fillers.is_some() {
            self.normalized.reshape_like(&bottom[0])?;
        }
        top[0].reshape_like(&bottom[0])?;
        if self.use_stored { Ok(()) } else { self.saved_input.reshape(&bottom[0], &top[0]) }
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let op = *reshaped(&self.op)?;
        let input = if self.use_stored {
            self.load_statistics(device)?;
            &bottom[0]
        } else {
            let input = self.saved_input.save(&bottom[0], &top[0])?;
            let (mut mean, mut variance) = (self.mean.data_mut()?, self.variance.data_mut()?);
            let x = input.data()?;
            device.moments(&op.axis, x.view(), mean.view_mut(), variance.view_mut())?;
            drop((mean, variance));
            self.store_statistics(device, op.axis.reduced_count())?;
            input
        };
        let (mean, variance) = (self.mean.data()?, self.variance.data()?);
        let [.., scale, bias] = &self.params[3..] else {
            let (x, mut y) = top[0].data_mut_from(input)?;
            return device.standardize(&op, x.src(), mean.view(), variance.view(), y.view_mut());
        };
        let x = input.data()?;
        let mut normalized = self.normalized.data_mut()?;
        let (mean, variance) = (mean.view(), variance.view());
        device.standardize(&op, x.view().into(), mean, variance, normalized.view_mut())?;
        drop((x, normalized));
        let (scale, bias) = (scale.data()?, bias.data()?);
        let (x, mut y) = top[0].data_mut_from(&self.normalized)?;
        device.affine(&op.axis, x.src(), scale.view(), bias.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (op, one) = (*reshaped(&self.op)?, T::acc(1.0));
        if let [_, _, _, scale, bias] = &self.params[..] {
            let dy = top[0].diff()?;
            if propagate.params[3] {
                let (x, mut ds) = (self.normalized.data()?, scale.diff_mut()?);
                device.dot_to_axis(&op.axis, one, dy.view(), x.view(), ds.view_mut())?;
            }
            if propagate.params[4] {
                device.sum_to_axis(&op.axis, one, dy.view(), bias.diff_mut()?.view_mut())?;
            }
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let variance = self.variance.data()?;
        let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
        let mut dy = dy.src();
        if let Some(scale) = self.params.get(3) {
            let scale = scale.data()?;
            device.broadcast(Binary::Mul, &op.axis, dy, scale.view(), dx.view_mut())?;
            dy = Src::InPlace;
        }
        if self.use_stored {
            // With stored statistics, the gradient is `dx = dy / √(variance + eps)`, because these
            // statistics do not depend on the bottom.
            let (shift, power) = (T::acc(op.epsilon), T::acc(-0.5));
            let inverse_root = Unary::PowAffine { scale: one, shift, power };
            let mut factor = self.inverse_deviation.data_mut()?;
            device.unary(inverse_root, Src::View(variance.view()), factor.view_mut())?;
            return device.broadcast(Binary::Mul, &op.axis, dy, factor.view(), dx.view_mut());
        }
        let (x, mean) = (self.saved_input.input(&bottom[0], &top[0]).data()?, self.mean.data()?);
        let (mean, variance) = (mean.view(), variance.view());
        device.standardize_backward(&op, x.view(), mean, variance, dy, dx.view_mut())
    }

    fn params_are_trainable(&self) -> bool {
        self.fillers.is_some()
    }

    fn keeps_param(&self, index: usize) -> bool {
        self.fillers.is_some() && index < 3
    }

    fn params(&self) -> &[Blob<T>] {
        &self.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        &mut self.params
    }
}

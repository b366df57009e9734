//! Channels standardized over the batch, or by stored statistics.

use super::{Layer, LayerContext, PropagateDown, saved_input::SavedInput};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    memory::Src,
    op::{Axis, Binary, EpsilonPlacement, Standardize, Unary},
    proto::{BatchNormParameter, LayerParameter, Phase},
};

/// Batch normalisation: `y = (x − mean) / √(variance + eps)` for each channel, the second axis.
///
/// Mean and variance are the batch's, or with `use_global_stats` (in the TEST phase, unless said
/// otherwise) those of the stored sums. The parameters are not learned: sums of means and of
/// unbiased variances, and the weight by which both are to be divided, each of which a batch
/// multiplies by `moving_average_fraction` and adds to; a weight of 0 makes both 0.
///
/// Forward reads the input twice, the first time while its channels stay in cache, and writes the
/// output; backward reads input and gradient twice each and writes the other gradient. Nothing of
/// the input's size is kept, except the input itself if it runs in place.
///
/// Source: Ioffe, Szegedy 2015.
pub struct BatchNormLayer<T: Element, D: Device> {
    param: BatchNormParameter,
    /// Whether the stored statistics are used.
    global: bool,
    /// For the bottom's present shape.
    op: Option<Standardize>,
    /// Used in the last forward pass, by channel.
    mean: Blob<T, D>,
    variance: Blob<T, D>,
    rate: Blob<T, D>,
    kept: SavedInput<T, D>,
    /// Sums of means and of variances, and their weight.
    params: Vec<Blob<T, D>>,
}

impl<T: Element, D: Device> BatchNormLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.batch_norm_param.unwrap_or_default();
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self {
            param,
            global: param.use_global_stats.unwrap_or(cx.phase == Phase::Test),
            op: None,
            mean: blob()?,
            variance: blob()?,
            rate: blob()?,
            kept: SavedInput::new(cx.device)?,
            params: Vec::new(),
        })
    }

    fn op(&self) -> Result<Standardize> {
        self.op.ok_or_else(|| Error::InvalidData("forward before reshape".into()))
    }

    /// Mean and variance of what is stored.
    fn recall(&self, device: &D) -> Result<()> {
        let weight = self.params[2].data()?;
        for (sum, to) in self.params.iter().zip([&self.mean, &self.variance]) {
            let (sum, mut to) = (sum.data()?, to.data_mut()?);
            let axis = Axis::new(1, 1, sum.view().len())?;
            let sum = Src::View(sum.view());
            device.broadcast(Binary::DivOrZero, &axis, sum, weight.view(), to.view_mut())?;
        }
        Ok(())
    }

    /// Adds mean and variance of a batch to what is stored.
    fn store(&self, device: &D, batch: usize) -> Result<()> {
        let unbiased = if batch > 1 { batch as f64 / (batch - 1) as f64 } else { 1.0 };
        let fraction = T::acc(self.param.moving_average_fraction().into());
        let parts = [(&self.mean, 1.0), (&self.variance, unbiased)];
        for (sum, (from, factor)) in self.params.iter().zip(parts) {
            let (from, mut sum) = (from.data()?, sum.data_mut()?);
            device.axpby(T::acc(factor), from.view(), fraction, sum.view_mut())?;
        }
        let one = T::acc(1.0);
        let count = Unary::PowAffine { scale: fraction, shift: one, power: one };
        device.unary(count, Src::InPlace, self.params[2].data_mut()?.view_mut())
    }
}

impl<T: Element, D: Device> Layer<T, D> for BatchNormLayer<T, D> {
    fn kind(&self) -> &'static str {
        "BatchNorm"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn setup(&mut self, cx: &LayerContext<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        let channels = Axis::of(bottom[0].shape(), 1)?.extent;
        for len in [channels, channels, 1] {
            self.params.push(Blob::new(cx.device, &[len])?);
        }
        Ok(())
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let axis = Axis::of(bottom[0].shape(), 1)?;
        let channels = self.params[0].count();
        if axis.extent != channels {
            let why = format!("{} channels, statistics of {channels}", axis.extent);
            return Err(Error::Shape(why));
        }
        let epsilon = self.param.eps().into();
        self.op = Some(Standardize { axis, epsilon, place: EpsilonPlacement::AddedToVariance });
        for blob in [&mut self.mean, &mut self.variance, &mut self.rate] {
            blob.reshape(&[channels])?;
        }
        top[0].reshape_like(&bottom[0])?;
        if self.global { Ok(()) } else { self.kept.reshape(&bottom[0], &top[0]) }
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let op = self.op()?;
        let input = if self.global {
            self.recall(device)?;
            &bottom[0]
        } else {
            let input = self.kept.keep(&bottom[0], &top[0])?;
            let (mut mean, mut variance) = (self.mean.data_mut()?, self.variance.data_mut()?);
            let x = input.data()?;
            device.moments(&op.axis, x.view(), mean.view_mut(), variance.view_mut())?;
            input
        };
        if !self.global {
            self.store(device, op.axis.reduced_count())?;
        }
        let (mean, variance) = (self.mean.data()?, self.variance.data()?);
        let (x, mut y) = top[0].data_mut_from(input)?;
        device.standardize(&op, x.src(), mean.view(), variance.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (op, variance) = (self.op()?, self.variance.data()?);
        let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
        if self.global {
            // Statistics that do not depend on the input are constants.
            let (scale, shift, power) = (T::acc(1.0), T::acc(op.epsilon), T::acc(-0.5));
            let of_variance = Unary::PowAffine { scale, shift, power };
            let mut rate = self.rate.data_mut()?;
            device.unary(of_variance, Src::View(variance.view()), rate.view_mut())?;
            return device.broadcast(Binary::Mul, &op.axis, dy.src(), rate.view(), dx.view_mut());
        }
        let (x, mean) = (self.kept.input(&bottom[0], &top[0]).data()?, self.mean.data()?);
        let (mean, variance) = (mean.view(), variance.view());
        device.standardize_backward(&op, x.view(), mean, variance, dy.src(), dx.view_mut())
    }

    fn params_are_trainable(&self) -> bool {
        false
    }

    fn params(&self) -> &[Blob<T, D>] {
        &self.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T, D>] {
        &mut self.params
    }
}

//! The BN layer: batch normalization with a learned scale and shift.

use super::{prelude::*, saved_input::SavedInput, weight_bias::filled_blob};
use crate::{
    filler::Filler,
    memory::Src,
    op::{Axis, Binary, EpsilonPlacement, Standardize, Unary},
    proto::{BnParameter, Phase, bn_parameter::BnMode},
};

/// Batch normalization, `y = scale · (x − mean) / √(variance + eps) + shift` for each channel; the
/// second axis holds the channels. The scale and the shift are parameters of the shape `[1, channels,
/// 1, 1]`. Two forms of the layer exist in forks of Caffe:
///
/// - **SegNet** (fields `scale_filler`, `shift_filler` and `bn_mode`): two parameters, and eps = 1e-9.
///   With the `bn_mode` `LEARN`, in both phases, the mean and the variance are those of the batch; an
///   optional second top holds the mean, and an optional third top the variance. With `INFERENCE`,
///   `y = scale · x + shift`.
/// - **TSN and PSPNet** (fields `slope_filler`, `bias_filler`, `momentum`, `eps` and `frozen`): the
///   third parameter is the stored mean, and the fourth the stored variance. In the TRAIN phase,
///   unless `frozen` is true, each batch changes a stored value v to `momentum · v + (1 − momentum)
///   · (value of the batch)`. The layer uses the stored values in the TEST phase and if `frozen` is
///   true. The solver changes neither the third nor the fourth parameter, nor any parameter of a
///   frozen layer.
///
/// A layer without any of these fields has the form of TSN and PSPNet if the definition has more than
/// two `param` entries, and otherwise the form of SegNet.
///
/// Batch normalization was introduced by Ioffe and Szegedy (2015).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 dim: 1 } } }
///     layer { type: "BN" bottom: "x" top: "y" bn_param {
///       scale_filler { value: 3 } shift_filler { value: 1 } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().copy_from_slice(&[1.0, 3.0])?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [-2.0, 4.0]); // mean 2, variance 1
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "BNLayer")]
pub struct BnLayer<T: Element> {
    form: BnForm,
    statistics: Statistics,
    fillers: [Filler; 2],
    epsilon: f64,
    op: Option<Standardize>,
    mean: Blob<T>,
    variance: Blob<T>,
    inverse_deviation: Blob<T>,
    /// The values that the layer multiplies by the scale.
    normalized: Blob<T>,
    saved_input: SavedInput<T>,
    params: Vec<Blob<T>>,
}

/// The form of a BN layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BnForm {
    SegNet,
    /// The form of TSN and PSPNet.
    Stored {
        momentum: f64,
        frozen: bool,
    },
}

/// The kind of statistics by which a BN layer normalizes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Statistics {
    Batch,
    Stored,
    None,
}

/// Returns the form, the kind of statistics and the constant that is added to the variance.
///
/// # Errors
/// Returns [`Error::InvalidData`] if the definition has fields of both forms, or if `momentum` or
/// `eps` is out of range.
pub(crate) fn bn_form(param: &LayerParameter, phase: Phase) -> Result<(BnForm, Statistics, f64)> {
    let is_stored_form = param.param.len() > 2;
    let param = param.bn_param.clone().unwrap_or_default();
    let BnParameter { scale_filler, shift_filler, bn_mode, .. } = &param;
    let is_segnet = scale_filler.is_some() || shift_filler.is_some() || bn_mode.is_some();
    let BnParameter { slope_filler, bias_filler, momentum, eps, frozen, .. } = &param;
    let is_stored = slope_filler.is_some()
        || bias_filler.is_some()
        || momentum.is_some()
        || eps.is_some()
        || frozen.is_some();
    if is_segnet && is_stored {
        return invalid(
            "bn_param: scale_filler, shift_filler and bn_mode of SegNet cannot be combined with \
             slope_filler, bias_filler, momentum, eps or frozen of TSN and PSPNet",
        );
    }
    if !is_stored && (is_segnet || !is_stored_form) {
        let statistics = match param.bn_mode() {
            BnMode::Learn => Statistics::Batch,
            BnMode::Inference => Statistics::None,
        };
        return Ok((BnForm::SegNet, statistics, 1e-9));
    }
    let (momentum, eps) = (f64::from(param.momentum()), f64::from(param.eps()));
    if !(0.0..=1.0).contains(&momentum) {
        return invalid(format!("bn_param: momentum must be in [0, 1], found {momentum}"));
    }
    if !(eps >= 0.0 && eps.is_finite()) {
        return invalid(format!("bn_param: eps must be at least 0 and finite, found {eps}"));
    }
    let frozen = param.frozen();
    let statistics = match frozen || phase == Phase::Test {
        true => Statistics::Stored,
        false => Statistics::Batch,
    };
    Ok((BnForm::Stored { momentum, frozen }, statistics, eps))
}

impl<T: Element> BnLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the definition has fields of both forms, if `momentum` or
    /// `eps` is out of range, or if the definition of a filler is invalid.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let (form, statistics, epsilon) = bn_form(param, cx.phase)?;
        let bn = param.bn_param.clone().unwrap_or_default();
        let fillers = match form {
            BnForm::SegNet => {
                [("scale_filler", bn.scale_filler), ("shift_filler", bn.shift_filler)]
            }
            BnForm::Stored { .. } => {
                [("slope_filler", bn.slope_filler), ("bias_filler", bn.bias_filler)]
            }
        };
        let [scale, shift] = fillers.map(|(name, filler)| {
            Filler::from_proto(&filler.unwrap_or_default())
                .map_err(|error| error.context(format!("bn_param: {name}")))
        });
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self {
            form,
            statistics,
            fillers: [scale?, shift?],
            epsilon,
            op: None,
            mean: blob()?,
            variance: blob()?,
            inverse_deviation: blob()?,
            normalized: blob()?,
            saved_input: SavedInput::new(cx.device)?,
            params: Vec::new(),
        })
    }

    /// Computes the mean and the variance of the batch, and updates the stored values, if the layer
    /// has any.
    fn compute_statistics(&self, device: &AnyDevice, op: &Standardize, x: &Blob<T>) -> Result<()> {
        let (x, mut mean, mut variance) =
            (x.data()?, self.mean.data_mut()?, self.variance.data_mut()?);
        device.moments(&op.axis, x.view(), mean.view_mut(), variance.view_mut())?;
        let BnForm::Stored { momentum, .. } = self.form else { return Ok(()) };
        for (value, stored) in [&mean, &variance].into_iter().zip(&self.params[2..]) {
            let (fraction, momentum) = (T::acc(1.0 - momentum), T::acc(momentum));
            device.axpby(fraction, value.view(), momentum, stored.data_mut()?.view_mut())?;
        }
        Ok(())
    }

    /// Returns the blobs of the mean and the variance by which the layer normalizes.
    fn mean_and_variance(&self) -> [&Blob<T>; 2] {
        match self.statistics {
            Statistics::Stored => [&self.params[2], &self.params[3]],
            _ => [&self.mean, &self.variance],
        }
    }

    /// Returns the blob of the values that the layer multiplies by the scale.
    fn normalized<'a>(&'a self, bottom: &'a Blob<T>, top: &Blob<T>) -> &'a Blob<T> {
        match self.statistics {
            Statistics::None => self.saved_input.input(bottom, top),
            _ => &self.normalized,
        }
    }
}

impl<T: Element> Layer<T> for BnLayer<T> {
    fn kind(&self) -> &'static str {
        "BN"
    }

    fn arity(&self) -> Arity {
        match (self.form, self.statistics) {
            (BnForm::SegNet, Statistics::Batch) => Arity::between(1..=1, 1..=3),
            _ => Arity::exactly(1, 1),
        }
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let channels = Axis::of(bottom[0].shape(), 1)?.extent;
        let shape = [1, channels, 1, 1];
        for (i, filler) in (0..).zip(&self.fillers) {
            self.params.push(filled_blob(cx, &shape, filler, i)?);
        }
        if let BnForm::Stored { frozen, .. } = self.form {
            let (mean, variance) = (Blob::new(cx.device, &shape)?, Blob::new(cx.device, &shape)?);
            variance.fill(if frozen { 1.0 } else { 0.0 })?;
            self.params.extend([mean, variance]);
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
        self.normalized.reshape_like(&bottom[0])?;
        let (first, others) = top.split_at_mut(1);
        first[0].reshape_like(&bottom[0])?;
        others.iter_mut().try_for_each(|top| top.reshape(&[1, channels, 1, 1]))?;
        match self.statistics {
            Statistics::Stored => Ok(()),
            _ => self.saved_input.reshape(&bottom[0], &first[0]),
        }
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let op = *reshaped(&self.op)?;
        let input = match self.statistics {
            Statistics::Stored => &bottom[0],
            _ => self.saved_input.save(&bottom[0], &top[0])?,
        };
        if self.statistics == Statistics::Batch {
            self.compute_statistics(device, &op, input)?;
        }
        if self.statistics != Statistics::None {
            let [mean, variance] = self.mean_and_variance();
            let (mean, variance) = (mean.data()?, variance.data()?);
            for (value, top) in [&mean, &variance].into_iter().zip(&top[1..]) {
                device.copy(value.view(), top.data_mut()?.view_mut())?;
            }
            let (x, mut y) = (input.data()?, self.normalized.data_mut()?);
            let (mean, variance) = (mean.view(), variance.view());
            device.standardize(&op, x.view().into(), mean, variance, y.view_mut())?;
        }
        let (scale, shift) = (self.params[0].data()?, self.params[1].data()?);
        let (x, mut y) = top[0].data_mut_from(self.normalized(&bottom[0], &top[0]))?;
        device.affine(&op.axis, x.src(), scale.view(), shift.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (op, one) = (*reshaped(&self.op)?, T::acc(1.0));
        if propagate.params[0] {
            let (dy, x) = (top[0].diff()?, self.normalized(&bottom[0], &top[0]).data()?);
            let mut ds = self.params[0].diff_mut()?;
            device.dot_to_axis(&op.axis, one, dy.view(), x.view(), ds.view_mut())?;
        }
        if propagate.params[1] {
            let (dy, mut db) = (top[0].diff()?, self.params[1].diff_mut()?);
            device.sum_to_axis(&op.axis, one, dy.view(), db.view_mut())?;
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let scale = self.params[0].data()?;
        let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
        device.broadcast(Binary::Mul, &op.axis, dy.src(), scale.view(), dx.view_mut())?;
        if self.statistics == Statistics::None {
            return Ok(());
        }
        let [mean, variance] = self.mean_and_variance();
        let (mean, variance) = (mean.data()?, variance.data()?);
        if self.statistics == Statistics::Batch {
            let x = self.saved_input.input(&bottom[0], &top[0]).data()?;
            let (mean, variance) = (mean.view(), variance.view());
            let dy = Src::InPlace;
            return device.standardize_backward(&op, x.view(), mean, variance, dy, dx.view_mut());
        }
        // The stored statistics do not depend on the bottom, so the gradient has no terms for them.
        let (shift, power) = (T::acc(op.epsilon), T::acc(-0.5));
        let inverse_root = Unary::PowAffine { scale: one, shift, power };
        let mut factor = self.inverse_deviation.data_mut()?;
        device.unary(inverse_root, variance.view().into(), factor.view_mut())?;
        device.broadcast(Binary::Mul, &op.axis, Src::InPlace, factor.view(), dx.view_mut())
    }

    fn keeps_param(&self, index: usize) -> bool {
        match self.form {
            BnForm::SegNet => false,
            BnForm::Stored { frozen, .. } => frozen || index >= 2,
        }
    }

    fn params(&self) -> &[Blob<T>] {
        &self.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        &mut self.params
    }
}

//! The SoftmaxWithLoss layer: the multinomial logistic loss of the softmax of scores.

use super::{infogain_loss::InfogainLossLayer, loss_common, prelude::*};
use crate::op::{Axis, LossNormalization, SoftmaxLoss, Unary};

/// `loss = −Σ ln softmax(x)[label] / n`, where the normalization determines the divisor n. The
/// first bottom holds the scores x, and the second bottom holds the labels. With the normalization
/// `PRE_FIXED` of the fork R-FCN, n is `pre_fixed_normalizer`. With `weight_by_label_freqs`, a
/// field of the SegNet fork, `loss = −Σ w[label] · ln softmax(x)[label] / n` with the weights w of
/// `class_weighting`; the weights do not change n.
///
/// The type `SoftmaxWithLossOHEM` of R-FCN has two more optional tops: the probabilities, and the
/// loss of each label before the division by n, which is 0 for ignored labels. Neither of these
/// tops has a gradient.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "scores" input_param { shape { dim: 1 dim: 4 } } }
///     layer { type: "Input" top: "label" input_param { shape { dim: 1 } } }
///     layer { type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("scores").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0; 4]);
/// net.blob("label").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[2.0]);
/// let loss = net.forward()?;
/// assert!((loss - 4_f64.ln()).abs() < 1e-6);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SoftmaxLossLayer<T: Element> {
    /// Whether the type is `SoftmaxWithLossOHEM`.
    is_of_regions: bool,
    axis: isize,
    ignore: Option<i64>,
    normalization: LossNormalization,
    /// The divisor of the normalization `PRE_FIXED`. With `PRE_FIXED`, the descriptor of the
    /// kernels has the normalization `None`.
    fixed_divisor: Option<f64>,
    /// Scratch blob for the gradient of the loss, divided by `fixed_divisor`.
    weight: Blob<T>,
    op: Option<SoftmaxLoss>,
    /// The layer that computes a loss with class weights.
    weighted: Option<InfogainLossLayer<T>>,
    class_weights: usize,
    probabilities: Blob<T>,
}

impl<T: Element> SoftmaxLossLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `pre_fixed_normalizer` is not positive, or if the layer
    /// has both class weights and the normalization `PRE_FIXED`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let loss = param.loss_param.clone().unwrap_or_default();
        let fixed_divisor = loss_common::fixed_divisor(&loss)?;
        let axis = param.softmax_param.unwrap_or_default().axis() as isize;
        let ignore = loss_common::ignore(&loss);
        let normalization = match fixed_divisor {
            Some(_) => LossNormalization::None,
            None => loss_common::normalization(&loss, LossNormalization::Valid)?,
        };
        let weighted = match (loss.weight_by_label_freqs(), fixed_divisor) {
            (false, _) => None,
            (true, None) => {
                let weights = &loss.class_weighting;
                Some(InfogainLossLayer::with_class_weights(
                    weights,
                    axis,
                    ignore,
                    normalization,
                    cx,
                )?)
            }
            (true, Some(_)) => {
                return invalid(
                    "loss_param: weight_by_label_freqs is not supported with the normalization \
                     PRE_FIXED",
                );
            }
        };
        Ok(Self {
            is_of_regions: false,
            axis,
            ignore,
            normalization,
            fixed_divisor,
            weight: Blob::new(cx.device, &[])?,
            op: None,
            weighted,
            class_weights: loss.class_weighting.len(),
            probabilities: Blob::new(cx.device, &[0])?,
        })
    }

    /// Creates a layer of the type `SoftmaxWithLossOHEM`.
    ///
    /// # Errors
    /// Returns any error from [`new`](Self::new), and [`Error::InvalidData`] if the layer has class
    /// weights.
    pub fn of_regions(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let layer = Self::new(param, cx)?;
        match layer.weighted {
            Some(_) => invalid("loss_param: weight_by_label_freqs is not supported"),
            None => Ok(Self { is_of_regions: true, ..layer }),
        }
    }

    /// Computes the second and the third top of `SoftmaxWithLossOHEM` from the probabilities.
    fn forward_regions(&self, device: &AnyDevice, labels: &Blob<T>, top: &[Blob<T>]) -> Result<()> {
        let p = self.probabilities.data()?;
        if let Some(top) = top.first() {
            device.copy(p.view(), top.data_mut()?.view_mut())?;
        }
        if let Some(top) = top.get(1) {
            let (axis, labels, mut losses) =
                (reshaped(&self.op)?.axis, labels.data()?, top.data_mut()?);
            let (p, labels, losses) = (p.host()?, labels.host()?, losses.host_write_only()?);
            for (position, (label, loss)) in labels.iter().zip(losses).enumerate() {
                let label = label.to_f64() as i64;
                let (item, offset) = (position / axis.inner, position % axis.inner);
                let least = f64::from(f32::MIN_POSITIVE);
                let value = match usize::try_from(label).ok().filter(|&class| class < axis.extent) {
                    _ if Some(label) == self.ignore => 0.0,
                    Some(class) => {
                        let index = (item * axis.extent + class) * axis.inner + offset;
                        let p = p[index].to_f64();
                        -(if p < least { least } else { p }).ln()
                    }
                    // The label is invalid; a device may report the error only after the forward
                    // pass.
                    None => f64::NAN,
                };
                *loss = T::from_f64(value);
            }
        }
        Ok(())
    }
}

impl<T: Element> Layer<T> for SoftmaxLossLayer<T> {
    fn kind(&self) -> &'static str {
        if self.is_of_regions { "SoftmaxWithLossOHEM" } else { "SoftmaxWithLoss" }
    }

    fn arity(&self) -> Arity {
        Arity::between(2..=2, 1..=if self.is_of_regions { 3 } else { 1 })
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom == 0
    }

    fn is_loss(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let axis = Axis::of(bottom[0].shape(), self.axis)?;
        if let Some(weighted) = &mut self.weighted {
            if self.class_weights != axis.extent {
                return wrong_shape(format!(
                    "expected {} values of class_weighting for scores {}, found {}",
                    axis.extent,
                    bottom[0].shape(),
                    self.class_weights
                ));
            }
            return weighted.reshape(bottom, top);
        }
        loss_common::check_batch(bottom[0].shape(), bottom[1].shape())?;
        loss_common::check_labels(bottom[0].shape(), bottom[1].shape(), &axis)?;
        let (ignore, normalization) = (self.ignore, self.normalization);
        self.op = Some(SoftmaxLoss { axis, ignore, normalization });
        self.probabilities.reshape_like(&bottom[0])?;
        for (top, bottom) in top[1..].iter_mut().zip(bottom) {
            top.reshape_like(bottom)?;
        }
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        if let Some(weighted) = &mut self.weighted {
            return weighted.forward(device, bottom, top);
        }
        let op = reshaped(&self.op)?;
        let (x, label) = (bottom[0].data()?, bottom[1].data()?);
        let (mut p, mut loss) = (self.probabilities.data_mut()?, top[0].data_mut()?);
        device.softmax(&op.axis, x.view().into(), p.view_mut())?;
        device.softmax_loss(op, p.view(), label.view(), loss.view_mut())?;
        if let Some(divisor) = self.fixed_divisor {
            device.scal(T::acc(1.0 / divisor), loss.view_mut())?;
        }
        drop(p);
        self.forward_regions(device, &bottom[1], &top[1..])
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        if let Some(weighted) = &mut self.weighted {
            return weighted.backward(device, top, propagate, bottom);
        }
        check_no_gradient(propagate.bottom, 1, "labels")?;
        let (p, label) = (self.probabilities.data()?, bottom[1].data()?);
        let (op, mut dx) = (reshaped(&self.op)?, bottom[0].diff_mut()?);
        let weight = match self.fixed_divisor {
            Some(divisor) => {
                let (weight, scale) = (top[0].diff()?, Unary::Scale(T::acc(1.0 / divisor)));
                let mut scaled = self.weight.diff_mut()?;
                device.unary(scale, weight.view().into(), scaled.view_mut())?;
                drop(scaled);
                self.weight.diff()?
            }
            None => top[0].diff()?,
        };
        device.softmax_loss_backward(op, p.view(), label.view(), weight.view(), dx.view_mut())
    }
}

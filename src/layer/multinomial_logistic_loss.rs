//! Multinomial logistic loss of probabilities.

use super::{Arity, Context, Layer, Propagate, losses};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::Result,
    op::{ClassForm, ClassLoss, LossNormalization},
    proto::LayerParameter,
};

/// `loss = −Σ ln max(p[label], 1e-20) / N` over N items of probabilities, such as a softmax gives.
/// Bottoms are probabilities and labels.
pub struct MultinomialLogisticLossLayer;

impl MultinomialLogisticLossLayer {
    /// From the layer's parameters, of which there are none.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new<D: Device>(_: &LayerParameter, _: &Context<'_, D>) -> Result<Self> {
        Ok(Self)
    }
}

/// The loss of these probabilities.
fn op<T: Element, D: Device>(probabilities: &Blob<T, D>) -> Result<ClassLoss> {
    let axis = losses::items(probabilities.shape())?;
    let normalization = LossNormalization::BatchSize;
    Ok(ClassLoss { axis, form: ClassForm::Log, ignore: None, normalization })
}

impl<T: Element, D: Device> Layer<T, D> for MultinomialLogisticLossLayer {
    fn kind(&self) -> &'static str {
        "MultinomialLogisticLoss"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn propagates_to(&self, bottom: usize) -> bool {
        bottom == 0
    }

    fn default_loss_weight(&self, top: usize) -> f32 {
        if top == 0 { 1.0 } else { 0.0 }
    }

    fn makes_tops(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let (p, labels) = (bottom[0].shape(), bottom[1].shape());
        losses::expect_batch(p, labels)?;
        losses::expect_labels(p, labels, &losses::items(p)?)?;
        top[0].reshape(&[])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (x, label, mut loss) = (bottom[0].data()?, bottom[1].data()?, top[0].data_mut()?);
        device.class_loss(&op(&bottom[0])?, x.view(), label.view(), None, loss.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: Propagate<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[1] {
            return Err(losses::no_gradient("labels", 1));
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (op, weight) = (op(&bottom[0])?, top[0].diff()?);
        let (x, label, mut dx) = (bottom[0].data()?, bottom[1].data()?, bottom[0].diff_mut()?);
        let (x, label) = (x.view(), label.view());
        device.class_loss_backward(&op, x, label, None, weight.view(), dx.view_mut())
    }
}

//! Elements left out by chance.

use super::{Layer, LayerContext, PropagateDown};
use crate::{
    blob::{Blob, SrcGuard, WriteGuard},
    device::Device,
    element::Element,
    error::{Error, Result},
    op::RngKey,
    proto::{LayerParameter, Phase},
};

/// Dropout: in training each element is 0 with probability `dropout_ratio`, else divided by that
/// of staying; in tests nothing changes.
///
/// No mask is stored: which elements stay depends on the layer's key, on how many forward passes
/// there were and on the element's place alone, so the backward pass draws them again.
pub struct DropoutLayer {
    /// Probability of staying; `None` if nothing is left out.
    keep: Option<f64>,
    key: RngKey,
    /// Forward passes so far.
    passes: u64,
}

impl DropoutLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] unless `0 ≤ dropout_ratio < 1`.
    pub fn new<D: Device>(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let ratio = param.dropout_param.unwrap_or_default().dropout_ratio();
        if !(0.0..1.0).contains(&ratio) {
            let why = format!("dropout_param: needs 0 ≤ dropout_ratio < 1, not {ratio}");
            return Err(Error::InvalidData(why));
        }
        let keep = (cx.phase == Phase::Train).then_some(1.0 - f64::from(ratio));
        Ok(Self { keep, key: cx.key, passes: 0 })
    }

    /// `y` of `x`, as `dx` of `dy`.
    fn apply<T: Element, D: Device>(
        &self,
        device: &D,
        (x, mut y): (SrcGuard<'_, T, D>, WriteGuard<'_, T, D>),
    ) -> Result<()> {
        match (self.keep, x) {
            (Some(keep), x) => {
                device.dropout(self.key.child(self.passes), keep, x.src(), y.view_mut())
            }
            (None, SrcGuard::Other(x)) => device.copy(x.view(), y.view_mut()),
            (None, SrcGuard::InPlace) => Ok(()),
        }
    }
}

impl<T: Element, D: Device> Layer<T, D> for DropoutLayer {
    fn kind(&self) -> &'static str {
        "Dropout"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        self.passes += 1;
        self.apply(device, top[0].data_mut_from(&bottom[0])?)
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        match propagate.bottom[0] {
            true => self.apply(device, bottom[0].diff_mut_from(&top[0])?),
            false => Ok(()),
        }
    }
}

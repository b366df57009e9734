//! The Dropout layer, which zeroes random elements during training.

use super::{position, prelude::*};
use crate::{
    blob::{SrcGuard, WriteGuard},
    op::RngKey,
    proto::{LayerState, Phase},
};

/// Dropout. During training, the layer replaces each element by 0 with probability `dropout_ratio`
/// and divides all other elements by `1 − dropout_ratio`. In the TEST phase, the top equals the
/// bottom.
///
/// The layer stores no dropout mask. The backward pass regenerates the random numbers of the
/// forward pass instead of reading a mask. The random number for an element depends only on the
/// layer's key, the number of preceding forward passes and the element's index.
///
/// ```
/// use cortado::{prelude::*, proto::{Phase, parse_text}};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 100 } } }
///     layer { type: "Dropout" bottom: "x" top: "y" dropout_param { dropout_ratio: 0.5 } }"#;
/// let net = parse_text(text, "net")?;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).phase(Phase::Train).build(&net)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0; 100]);
/// net.forward()?;
/// let y = net.blob("y").unwrap().to_vec()?;
/// assert!(y.contains(&0.0) && y.contains(&2.0));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct DropoutLayer {
    /// The probability that the layer keeps an element, `1 − dropout_ratio`; `None` in the TEST
    /// phase.
    keep: Option<f64>,
    key: RngKey,
    passes: u64,
}

impl DropoutLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] unless `0 ≤ dropout_ratio < 1`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let ratio = param.dropout_param.unwrap_or_default().dropout_ratio();
        if !(0.0..1.0).contains(&ratio) {
            return invalid(format!(
                "dropout_param: dropout_ratio must be in [0, 1), found {ratio}"
            ));
        }
        let keep = (cx.phase == Phase::Train).then_some(1.0 - f64::from(ratio));
        Ok(Self { keep, key: cx.pass_key(), passes: 0 })
    }

    /// Computes `y` from `x` in the forward pass, or `dx` from `dy` in the backward pass.
    fn apply<T: Element>(
        &self,
        device: &AnyDevice,
        (x, mut y): (SrcGuard<'_, T, AnyDevice>, WriteGuard<'_, T, AnyDevice>),
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

impl<T: Element> Layer<T> for DropoutLayer {
    fn kind(&self) -> &'static str {
        "Dropout"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        self.passes += 1;
        self.apply(device, top[0].data_mut_from(&bottom[0])?)
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        self.apply(device, bottom[0].diff_mut_from(&top[0])?)
    }

    fn state(&self) -> Result<Option<LayerState>> {
        position::state(self.passes)
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        self.passes = position::of(state)?;
        Ok(())
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        self.passes = self.passes.saturating_add(passes);
        Ok(true)
    }
}

//! The Dropout layer, which zeroes random elements during training.

use super::{position, prelude::*};
use crate::{
    blob::{SrcGuard, WriteGuard},
    op::{RngKey, Unary},
    proto::{LayerState, Phase},
};

/// Dropout. During training, the layer replaces each element by 0 with probability `dropout_ratio`
/// and divides all other elements by `1 − dropout_ratio`. In the TEST phase, the top equals the
/// bottom.
///
/// With a `dropout_ratio` of 1, all elements of the top and of the gradient are 0 during training.
/// Caffe multiplies these zeros by an infinite factor, which gives NaN.
///
/// Two fields come from forks of Caffe. With `scale_train: false` (R-FCN), the layer does not
/// divide during training, and multiplies by `1 − dropout_ratio` in the TEST phase. With
/// `sample_weights_test` (SegNet), the layer works in the TEST phase as during training.
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
    mode: Mode,
    key: RngKey,
    passes: u64,
}

/// The operation that the layer performs in the phase of its net.
#[derive(Clone, Copy)]
enum Mode {
    /// Keeps each element with the probability `keep`, and divides the kept elements by `keep` if
    /// `scale` is true.
    Drop {
        keep: f64,
        scale: bool,
    },
    /// Multiplies all elements by a factor.
    Scale(f64),
    Copy,
}

impl DropoutLayer {
    /// Creates the layer. Logs a warning if the layer will drop all elements.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] unless `0 ≤ dropout_ratio ≤ 1`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let name = param.name();
        let param = param.dropout_param.unwrap_or_default();
        let ratio = param.dropout_ratio();
        if !(0.0..=1.0).contains(&ratio) {
            return invalid(format!(
                "dropout_param: dropout_ratio must be in [0, 1], found {ratio}"
            ));
        }
        let (keep, scale) = (1.0 - f64::from(ratio), param.scale_train());
        let mode = match cx.phase == Phase::Train || param.sample_weights_test() {
            true => Mode::Drop { keep, scale },
            false if scale => Mode::Copy,
            false => Mode::Scale(keep),
        };
        if matches!(mode, Mode::Drop { keep: 0.0, .. }) {
            log::warn!("layer `{name}`: dropout_ratio 1 sets all elements to 0 during training");
        }
        Ok(Self { mode, key: cx.pass_key(), passes: 0 })
    }

    /// Computes `y` from `x` in the forward pass, or `dx` from `dy` in the backward pass.
    fn apply<T: Element>(
        &self,
        device: &AnyDevice,
        (x, mut y): (SrcGuard<'_, T, AnyDevice>, WriteGuard<'_, T, AnyDevice>),
    ) -> Result<()> {
        match (self.mode, x) {
            (Mode::Drop { keep: 0.0, .. }, _) => device.fill(T::default(), y.view_mut()),
            (Mode::Drop { keep, scale }, x) => {
                device.dropout(self.key.child(self.passes), keep, x.src(), y.view_mut())?;
                match scale {
                    true => Ok(()),
                    false => device.scal(T::acc(keep), y.view_mut()),
                }
            }
            (Mode::Scale(factor), x) => {
                device.unary(Unary::Scale(T::acc(factor)), x.src(), y.view_mut())
            }
            (Mode::Copy, SrcGuard::Other(x)) => device.copy(x.view(), y.view_mut()),
            (Mode::Copy, SrcGuard::InPlace) => Ok(()),
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

//! The Silence layer, which consumes blobs without computing anything.

use super::prelude::*;

/// Consumes its bottoms, so that they are not outputs of the net. The backward pass sets the
/// gradients of the bottoms to zero.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "DummyData" top: "a" top: "b" dummy_data_param { shape { dim: 1 } } }
///     layer { type: "Silence" bottom: "b" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// let outputs: Vec<&str> = net.outputs().map(|(name, ..)| name).collect();
/// assert_eq!(outputs, ["a"]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SilenceLayer;

impl SilenceLayer {
    /// Creates the layer.
    pub fn new(_: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl<T: Element> Layer<T> for SilenceLayer {
    fn kind(&self) -> &'static str {
        "Silence"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=usize::MAX, 0..=0)
    }

    fn reshape(&mut self, _: &[Blob<T>], _: &mut [Blob<T>]) -> Result<()> {
        Ok(())
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], _: &[Blob<T>]) -> Result<()> {
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        _: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        zero_gradients(device, propagate, bottom)
    }
}

//! The Split layer, which shares one blob among several tops, one top for each consumer.

use super::prelude::*;
use crate::{memory::Src, op::Binary};

/// Makes every top share the data of the bottom. The gradient of the bottom is the sum of the
/// gradients of the tops.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 3 } } }
///     layer { type: "Split" bottom: "x" top: "a" top: "b" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// let (a, b) = (net.blob("a").unwrap(), net.blob("b").unwrap());
/// assert!(a.shares_data_with(b) && !a.shares_diff_with(b));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SplitLayer;

impl SplitLayer {
    /// Creates the layer.
    pub fn new(_: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl<T: Element> Layer<T> for SplitLayer {
    fn kind(&self) -> &'static str {
        "Split"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=1, 1..=usize::MAX)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        for top in top {
            top.reshape_like(&bottom[0])?;
            top.share_data(&bottom[0])?;
        }
        Ok(())
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], _: &[Blob<T>]) -> Result<()> {
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let mut dx = bottom[0].diff_mut()?;
        let first = top[0].diff()?;
        let Some(second) = top.get(1) else {
            return device.copy(first.view(), dx.view_mut());
        };
        device.binary(Binary::Add, first.view().into(), second.diff()?.view(), dx.view_mut())?;
        for top in &top[2..] {
            device.binary(Binary::Add, Src::InPlace, top.diff()?.view(), dx.view_mut())?;
        }
        Ok(())
    }
}

//! The Tile layer, which repeats a blob along an axis.

use super::prelude::*;
use crate::{op::Tile, shape::Shape};

/// Repeats its bottom `tiles` times along `axis`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "Tile" bottom: "x" top: "y" tile_param { axis: 0 tiles: 3 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct TileLayer {
    axis: isize,
    tiles: usize,
}

impl TileLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] unless `tiles` is positive.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.tile_param.unwrap_or_default();
        let tiles = usize::try_from(param.tiles()).ok().filter(|&tiles| tiles > 0);
        let tiles =
            tiles.ok_or_else(|| Error::InvalidData("tile_param: tiles must be positive".into()))?;
        Ok(Self { axis: param.axis() as isize, tiles })
    }

    fn op(&self, shape: &Shape) -> Result<Tile> {
        let axis = shape.canonical_axis(self.axis)?;
        let (outer, inner) = (shape.count_range(0, axis)?, shape.count_range(axis, shape.len())?);
        Ok(Tile { outer, inner, tiles: self.tiles })
    }
}

impl<T: Element> Layer<T> for TileLayer {
    fn kind(&self) -> &'static str {
        "Tile"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let mut shape = bottom[0].shape().to_vec();
        let axis = bottom[0].shape().canonical_axis(self.axis)?;
        shape[axis] = shape[axis].saturating_mul(self.tiles);
        top[0].reshape(&shape)
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let op = self.op(bottom[0].shape())?;
        device.tile(&op, bottom[0].data()?.view(), top[0].data_mut()?.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let op = self.op(bottom[0].shape())?;
        device.tile_backward(&op, top[0].diff()?.view(), bottom[0].diff_mut()?.view_mut())
    }
}

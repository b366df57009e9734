//! The Reorg layer, which moves blocks of elements to channels.

use super::prelude::*;
use crate::{op::Permute, shape::Shape};

/// The reorganization of YOLO version 2. Without `reverse`, a bottom of the shape `[num, channels,
/// height, width]` becomes a top of the shape `[num, channels·s², height/s, width/s]`, where s is
/// the `stride`. With `reverse`, the top has the shape `[num, channels/s², height·s, width·s]`.
///
/// The order of the elements is that of Darknet and of the forks of Caffe with this layer. With
/// C = channels/s², the layer without `reverse` reads the bottom as an array of the shape `[num, C,
/// height, s, width, s]`, and writes the array with the axes in the order 0, 3, 5, 1, 2, 4. With
/// `reverse`, the layer reads the bottom as an array of the shape `[num, s, s, C, height, width]`,
/// and writes the array with the axes in the order 0, 3, 4, 1, 5, 2.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 dim: 2 dim: 2 } } }
///     layer { type: "Reorg" bottom: "x" top: "y" reorg_param { stride: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().shape().to_vec(), [1, 16, 1, 1]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ReorgLayer {
    stride: usize,
    reverse: bool,
}

impl ReorgLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `stride` is missing or 0.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.reorg_param.unwrap_or_default();
        match param.stride() {
            0 => invalid("reorg_param: a positive stride is required"),
            stride => Ok(Self { stride: stride as usize, reverse: param.reverse() }),
        }
    }
}

/// Returns the permutation of the elements for a bottom of shape `shape`.
pub(crate) fn reorganization(stride: usize, reverse: bool, shape: &Shape) -> Result<Permute> {
    let [num, channels, height, width] = image_extents(shape)?;
    let area = stride.saturating_mul(stride);
    if channels % area != 0 {
        return wrong_shape(format!(
            "reorg_param: {channels} channels are not divisible by the square of stride {stride}"
        ));
    }
    if !reverse && (height % stride, width % stride) != (0, 0) {
        return wrong_shape(format!(
            "reorg_param: height {height} and width {width} are not divisible by stride {stride}"
        ));
    }
    let parts = channels / area;
    match reverse {
        false => {
            let shape = Shape::new(&[num, parts, height, stride, width, stride])?;
            Permute::new(shape, &[0, 3, 5, 1, 2, 4])
        }
        true => {
            let shape = Shape::new(&[num, stride, stride, parts, height, width])?;
            Permute::new(shape, &[0, 3, 4, 1, 5, 2])
        }
    }
}

impl<T: Element> Layer<T> for ReorgLayer {
    fn kind(&self) -> &'static str {
        "Reorg"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (shape, stride) = (bottom[0].shape(), self.stride);
        reorganization(stride, self.reverse, shape)?;
        let [num, channels, height, width] = image_extents(shape)?;
        top[0].reshape(&match self.reverse {
            false => [num, channels * stride * stride, height / stride, width / stride],
            true => [num, channels / (stride * stride), height * stride, width * stride],
        })
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let op = reorganization(self.stride, self.reverse, bottom[0].shape())?;
        device.permute(&op, bottom[0].data()?.view(), top[0].data_mut()?.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let op = reorganization(self.stride, self.reverse, bottom[0].shape())?;
        let mut inverse_order = vec![0; op.order().len()];
        for (i, &axis) in op.order().iter().enumerate() {
            inverse_order[axis] = i;
        }
        let op = Permute::new(Shape::new(&op.output())?, &inverse_order)?;
        device.permute(&op, top[0].diff()?.view(), bottom[0].diff_mut()?.view_mut())
    }
}

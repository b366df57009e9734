//! The Im2col layer, which converts each image to the im2col matrix of its windows.

use super::{conv_geometry::spatial_axes, prelude::*};
use crate::{op::Window, proto::ConvolutionParameter};

/// Converts each image of the bottom to the im2col matrix of its windows. The top has `channels ·
/// ∏kernel` channels, and its spatial extents are the numbers of windows along each axis. The layer
/// reads the same fields of `convolution_param` as a Convolution layer.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 3 } } }
///     layer { type: "Im2col" bottom: "x" top: "y" convolution_param { kernel_size: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [0.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 5.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Im2colLayer {
    param: ConvolutionParameter,
    op: Option<Window>,
}

impl Im2colLayer {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        Ok(Self { param: param.convolution_param.clone().unwrap_or_default(), op: None })
    }
}

impl<T: Element> Layer<T> for Im2colLayer {
    fn kind(&self) -> &'static str {
        "Im2col"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let axis = shape.canonical_axis(self.param.axis() as isize)?;
        let op = Window::new(shape[axis], &spatial_axes(&self.param, &shape[axis + 1..])?)?;
        let mut shape = shape[..axis].to_vec();
        shape.push(op.column_rows());
        shape.extend(op.output());
        top[0].reshape(&shape)?;
        self.op = Some(op);
        Ok(())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (op, x, mut y) = (reshaped(&self.op)?, bottom[0].data()?, top[0].data_mut()?);
        let (image, columns) = (op.image_len(), op.columns_len());
        for i in 0..top[0].count() / columns.max(1) {
            let x = x.view().slice(i * image..(i + 1) * image)?;
            device.im2col(op, x, y.view_mut().slice(i * columns..(i + 1) * columns)?)?;
        }
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (op, dy, mut dx) = (reshaped(&self.op)?, top[0].diff()?, bottom[0].diff_mut()?);
        let (image, columns) = (op.image_len(), op.columns_len());
        for i in 0..top[0].count() / columns.max(1) {
            let dy = dy.view().slice(i * columns..(i + 1) * columns)?;
            device.col2im(op, dy, dx.view_mut().slice(i * image..(i + 1) * image)?)?;
        }
        Ok(())
    }
}

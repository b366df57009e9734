//! The Axpy layer, which scales the channels of one blob and adds another blob.

use super::prelude::*;
use crate::{
    memory::Src,
    op::{Axis, Binary},
    shape::Shape,
};

/// `y[n, c, …] = a[n, c] · x[n, c, …] + b[n, c, …]`. The bottoms are a, x and b. The bottom a has
/// the shape `[num, channels]`, which may be followed by extents of 1.
///
/// The layer comes from the fork of Caffe for SENet: Hu, Shen and Sun, Squeeze-and-excitation
/// networks (2018).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "a" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "Input" top: "x" top: "b" input_param { shape { dim: 1 dim: 2 dim: 2 } } }
///     layer { type: "Axpy" bottom: "a" bottom: "x" bottom: "b" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("a").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[2.0, 3.0]);
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
/// net.blob("b").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[10.0; 4]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [12.0, 14.0, 19.0, 22.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct AxpyLayer;

impl AxpyLayer {
    /// Creates the layer.
    pub fn new(_: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        Ok(Self)
    }
}

/// Returns an axis with one element for each channel of each image of `x`, after checking the shape
/// of `a`.
fn axis(a: &Shape, x: &Shape) -> Result<Axis> {
    let fits = a.len() >= 2 && x.len() >= 2 && a[..2] == x[..2];
    if !fits || a[2..].iter().any(|&extent| extent != 1) {
        return wrong_shape(format!(
            "expected one factor per image and channel of shape {x}, found shape {a}"
        ));
    }
    Axis::new(1, x.count_range(0, 2)?, x.count_range(2, x.len())?)
}

impl<T: Element> Layer<T> for AxpyLayer {
    fn kind(&self) -> &'static str {
        "Axpy"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(3, 1)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (x, b) = (bottom[1].shape(), bottom[2].shape());
        axis(bottom[0].shape(), x)?;
        if x[..] != b[..] {
            return wrong_shape(format!("bottoms 1 and 2 have different shapes {x} and {b}"));
        }
        top[0].reshape(x)
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let axis = axis(bottom[0].shape(), bottom[1].shape())?;
        let (a, x, b) = (bottom[0].data()?, bottom[1].data()?, bottom[2].data()?);
        let mut y = top[0].data_mut()?;
        device.broadcast(Binary::Mul, &axis, x.view().into(), a.view(), y.view_mut())?;
        device.binary(Binary::Add, Src::InPlace, b.view(), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let axis = axis(bottom[0].shape(), bottom[1].shape())?;
        let dy = top[0].diff()?;
        if propagate.bottom[0] {
            let (x, mut da) = (bottom[1].data()?, bottom[0].diff_mut()?);
            device.dot_to_axis(&axis, T::acc(0.0), dy.view(), x.view(), da.view_mut())?;
        }
        if propagate.bottom[1] {
            let (a, mut dx) = (bottom[0].data()?, bottom[1].diff_mut()?);
            device.broadcast(Binary::Mul, &axis, dy.view().into(), a.view(), dx.view_mut())?;
        }
        if propagate.bottom[2] {
            device.copy(dy.view(), bottom[2].diff_mut()?.view_mut())?;
        }
        Ok(())
    }
}

//! The Reduction layer, which reduces the last axes of a blob.

use super::prelude::*;
use crate::{
    memory::Src,
    op::{Axis, Binary, Reduce, Tile, Unary},
    proto::reduction_parameter::ReductionOp,
    shape::Shape,
};

/// `y = coeff · f(x)`, where f reduces all axes from `axis` on. The reduction f is the sum, the sum
/// of absolute values, the sum of squares or the mean.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 dim: 2 } } }
///     layer { type: "Reduction" bottom: "x" top: "y"
///       reduction_param { operation: SUMSQ axis: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [5.0, 25.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ReductionLayer<T: Element> {
    operation: ReductionOp,
    axis: isize,
    coeff: f64,
    /// Scratch blob: for each result of the reduction, the gradient times the constant factor of
    /// the derivative.
    scaled_gradient: Blob<T>,
}

impl<T: Element> ReductionLayer<T> {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let param = param.reduction_param.unwrap_or_default();
        Ok(Self {
            operation: param.operation(),
            axis: param.axis() as isize,
            coeff: param.coeff().into(),
            scaled_gradient: Blob::new(cx.device, &[0])?,
        })
    }

    /// Returns the number of results of the reduction, and the number of elements that the layer
    /// combines into each result.
    fn result_and_item_counts(&self, shape: &Shape) -> Result<(usize, usize)> {
        let axis = shape.canonical_axis(self.axis)?;
        Ok((shape.count_range(0, axis)?, shape.count_range(axis, shape.len())?))
    }
}

impl<T: Element> Layer<T> for ReductionLayer<T> {
    fn kind(&self) -> &'static str {
        "Reduction"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        top[0].reshape(&shape[..shape.canonical_axis(self.axis)?])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (results, elements_per_result) = self.result_and_item_counts(bottom[0].shape())?;
        let op = match self.operation {
            ReductionOp::Sum => Reduce::Sum,
            ReductionOp::Asum => Reduce::AbsSum,
            ReductionOp::Sumsq => Reduce::SumSq,
            ReductionOp::Mean => Reduce::Mean,
        };
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        device.reduce(op, &Axis::new(results, elements_per_result, 1)?, x.view(), y.view_mut())?;
        if self.coeff == 1.0 {
            return Ok(());
        }
        device.scal(T::acc(self.coeff), y.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (results, elements_per_result) = self.result_and_item_counts(bottom[0].shape())?;
        let factor = match self.operation {
            ReductionOp::Sum | ReductionOp::Asum => self.coeff,
            ReductionOp::Sumsq => 2.0 * self.coeff,
            ReductionOp::Mean => self.coeff / elements_per_result as f64,
        };
        self.scaled_gradient.reshape_like(&top[0])?;
        let mut scaled_gradient = self.scaled_gradient.data_mut()?;
        let (scale, dy) = (Unary::Scale(T::acc(factor)), top[0].diff()?);
        device.unary(scale, dy.view().into(), scaled_gradient.view_mut())?;
        let (x, mut dx) = (bottom[0].data()?, bottom[0].diff_mut()?);
        let src = match self.operation {
            ReductionOp::Sum | ReductionOp::Mean => {
                let op = Tile { outer: results, inner: 1, tiles: elements_per_result };
                return device.tile(&op, scaled_gradient.view(), dx.view_mut());
            }
            ReductionOp::Asum => {
                device.unary(Unary::Sign, x.view().into(), dx.view_mut())?;
                Src::InPlace
            }
            ReductionOp::Sumsq => x.view().into(),
        };
        let axis = Axis::new(1, results, elements_per_result)?;
        device.broadcast(Binary::Mul, &axis, src, scaled_gradient.view(), dx.view_mut())
    }
}

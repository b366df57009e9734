//! What convolution and deconvolution have in common: filters, and the geometry they imply.

use super::{LayerContext, PropagateDown, conv_geometry::extents, weight_bias::Weights};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    memory::{View, ViewMut},
    op::{Axis, Convolution, SpatialAxis, Window},
    proto::{ConvolutionParameter, LayerParameter},
    shape::Shape,
};

/// Which side of a convolution the bottoms are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Its images: the layer convolves.
    Forward,
    /// Its results: the layer goes back to images.
    Backward,
}

/// A bank of filters: axes before `axis` are the batch, `axis` holds the channels, those after it
/// are spatial.
pub(super) struct BaseConvolution<T: Element, D: Device> {
    direction: Direction,
    param: ConvolutionParameter,
    pub(super) weights: Weights<T, D>,
    /// For the bottoms' present shape.
    op: Option<Convolution>,
}

impl<T: Element, D: Device> BaseConvolution<T, D> {
    pub(super) fn new(direction: Direction, param: &LayerParameter) -> Result<Self> {
        let param = param.convolution_param.clone().unwrap_or_default();
        let weights = Weights::new(
            "convolution_param",
            param.num_output(),
            [&param.weight_filler, &param.bias_filler],
            param.bias_term(),
        )?;
        Ok(Self { direction, param, weights, op: None })
    }

    /// The convolution that has a bottom of this shape on the layer's side, and the axis of the
    /// channels.
    fn describe(&self, shape: &Shape) -> Result<(Convolution, usize)> {
        let axis = shape.canonical_axis(self.param.axis() as isize)?;
        let mut axes = extents(&self.param, &shape[axis + 1..])?;
        let (mut channels, mut outputs) = (shape[axis], self.weights.outputs());
        if self.direction == Direction::Backward {
            (channels, outputs) = (outputs, channels);
            axes = axes.iter().map(SpatialAxis::transposed).collect::<Result<_>>()?;
        }
        let window = Window::new(channels, &axes)?;
        let batch = shape.count_range(0, axis)?;
        let groups = self.param.group() as usize;
        Ok((Convolution::new(batch, outputs, groups, window)?, axis))
    }

    /// Makes the parameters.
    pub(super) fn setup(&mut self, cx: &LayerContext<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        let (op, _) = self.describe(bottom[0].shape())?;
        let mut shape = vec![op.outputs(), op.window().channels() / op.groups()];
        shape.extend(op.window().axes().iter().map(|axis| axis.kernel));
        self.weights.make(cx, &shape)
    }

    /// Shapes each top after its bottom, which are all alike.
    pub(super) fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let first = bottom[0].shape();
        let (op, axis) = self.describe(first)?;
        let filters = self.weights.weights()?.shape();
        if op.filter_len() != filters.count() {
            let why = format!("{} channels do not fit filters {filters}", first[axis]);
            return Err(Error::Shape(why));
        }
        let mut shape = first[..axis].to_vec();
        shape.push(self.weights.outputs());
        match self.direction {
            Direction::Forward => shape.extend(op.window().output()),
            Direction::Backward => shape.extend(op.window().axes().iter().map(|axis| axis.input)),
        }
        for (bottom, top) in bottom.iter().zip(top) {
            if *bottom.shape() != *first {
                let why = format!("bottoms of shapes {first} and {}", bottom.shape());
                return Err(Error::Shape(why));
            }
            top.reshape(&shape)?;
        }
        self.op = Some(op);
        Ok(())
    }

    pub(super) fn op(&self) -> Result<&Convolution> {
        self.op.as_ref().ok_or_else(|| Error::InvalidData("forward before reshape".into()))
    }

    /// The tops' channels as an axis.
    fn channels(&self) -> Result<Axis> {
        let op = self.op()?;
        let plane = match self.direction {
            Direction::Forward => op.window().positions(),
            Direction::Backward => op.window().plane_len(),
        };
        Axis::new(op.batch(), self.weights.outputs(), plane)
    }

    /// `y ← y + bias`
    pub(super) fn add_bias(&self, device: &D, y: ViewMut<'_, T, D>) -> Result<()> {
        self.weights.add_bias(device, &self.channels()?, y)
    }

    /// Adds to the parameters' gradients, given the images, the results and their gradients on
    /// one side: those of the tops.
    pub(super) fn add_gradients(
        &self,
        device: &D,
        x: View<'_, T, D>,
        y: View<'_, T, D>,
        propagate: PropagateDown<'_>,
    ) -> Result<()> {
        let dy = if self.direction == Direction::Forward { y } else { x };
        self.weights.add_bias_gradient(device, &self.channels()?, dy, propagate)?;
        if propagate.params[0] {
            let mut dw = self.weights.weights()?.diff_mut()?;
            device.convolve_backward_filters(self.op()?, x, y, dw.view_mut())?;
        }
        Ok(())
    }
}

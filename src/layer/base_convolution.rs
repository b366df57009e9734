//! The implementation that the Convolution and Deconvolution layers share: filters and geometry.

use super::{conv_geometry::spatial_axes, prelude::*, weight_bias::WeightsAndBias};
use crate::{
    memory::{View, ViewMut},
    op::{Axis, Convolution, SpatialAxis, Window},
    proto::ConvolutionParameter,
    shape::Shape,
};

/// Whether a layer's bottoms are the images or the outputs of the convolution that [`Convolution`]
/// describes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The bottoms are images, which the layer convolves.
    Forward,
    /// The bottoms have the shape of a convolution's outputs, and the layer applies the transposed
    /// convolution to the bottoms.
    Backward,
}

/// The filters and the convolution descriptor of a Convolution or Deconvolution layer. In a bottom,
/// the axes before `axis` are the batch, `axis` holds the channels, and the axes after `axis` are
/// spatial.
pub(super) struct BaseConvolution<T: Element> {
    direction: Direction,
    param: ConvolutionParameter,
    /// Whether each channel of the bottom is a group of its own.
    is_depthwise: bool,
    pub(super) weights: WeightsAndBias<T>,
    op: Option<Convolution>,
}

impl<T: Element> BaseConvolution<T> {
    pub(super) fn new(direction: Direction, param: &LayerParameter) -> Result<Self> {
        let param = param.convolution_param.clone().unwrap_or_default();
        let weights = WeightsAndBias::new(
            "convolution_param",
            param.num_output(),
            [&param.weight_filler, &param.bias_filler],
            param.bias_term(),
        )?;
        Ok(Self { direction, param, is_depthwise: false, weights, op: None })
    }

    /// Makes each channel of the bottom a group of its own.
    pub(super) fn depthwise(self) -> Self {
        Self { is_depthwise: true, ..self }
    }

    /// Returns the number of groups for a bottom with `channels` channels.
    fn groups(&self, channels: usize) -> Result<usize> {
        match (self.is_depthwise, self.param.group) {
            (true, Some(group)) if group as usize != channels => invalid(format!(
                "convolution_param: group {group} of a depthwise convolution must be the number of \
                 channels {channels}"
            )),
            (true, _) => Ok(channels),
            (false, _) => Ok(self.param.group() as usize),
        }
    }

    /// Returns the convolution descriptor for a bottom of shape `shape`, and the index of the
    /// channel axis.
    fn convolution_and_channels(&self, shape: &Shape) -> Result<(Convolution, usize)> {
        let axis = shape.canonical_axis(self.param.axis() as isize)?;
        let mut axes = spatial_axes(&self.param, &shape[axis + 1..])?;
        let (mut channels, mut outputs) = (shape[axis], self.weights.outputs());
        if self.direction == Direction::Backward {
            (channels, outputs) = (outputs, channels);
            axes = axes.iter().map(SpatialAxis::transposed).collect::<Result<_>>()?;
        }
        let window = Window::new(channels, &axes)?;
        let batch = shape.count_range(0, axis)?;
        let groups = self.groups(shape[axis])?;
        Ok((Convolution::new(batch, outputs, groups, window)?, axis))
    }

    pub(super) fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let (op, _) = self.convolution_and_channels(bottom[0].shape())?;
        let mut shape = vec![op.outputs(), op.window().channels() / op.groups()];
        shape.extend(op.window().axes().iter().map(|axis| axis.kernel));
        self.weights.create(cx, &shape)
    }

    /// Derives the shape of the tops from the bottoms, which must all have the same shape.
    pub(super) fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let first_shape = bottom[0].shape();
        let (op, axis) = self.convolution_and_channels(first_shape)?;
        let filters = self.weights.weights()?.shape();
        if op.filter_len() != filters.count() {
            return wrong_shape(format!(
                "filters of shape {filters} do not fit a bottom with {} channels",
                first_shape[axis]
            ));
        }
        let mut shape = first_shape[..axis].to_vec();
        shape.push(self.weights.outputs());
        match self.direction {
            Direction::Forward => shape.extend(op.window().output()),
            Direction::Backward => shape.extend(op.window().axes().iter().map(|axis| axis.input)),
        }
        for (bottom, top) in bottom.iter().zip(top) {
            if *bottom.shape() != *first_shape {
                return wrong_shape(format!(
                    "bottoms have different shapes {first_shape} and {}",
                    bottom.shape()
                ));
            }
            top.reshape(&shape)?;
        }
        self.op = Some(op);
        Ok(())
    }

    pub(super) fn op(&self) -> Result<&Convolution> {
        reshaped(&self.op)
    }

    fn channels(&self) -> Result<Axis> {
        let op = self.op()?;
        let plane = match self.direction {
            Direction::Forward => op.window().positions(),
            Direction::Backward => op.window().plane_len(),
        };
        Axis::new(op.batch(), self.weights.outputs(), plane)
    }

    /// `y ← y + bias`, where the bias has one value per output channel.
    pub(super) fn add_bias(&self, device: &AnyDevice, y: ViewMut<'_, T, AnyDevice>) -> Result<()> {
        self.weights.add_bias(device, &self.channels()?, y)
    }

    /// Adds the contribution of one bottom to the gradients of the parameters. `x` is the image of
    /// the convolution, and `y` is its output. In a Convolution layer, `x` holds a bottom's data
    /// and `y` a top's gradient. In a Deconvolution layer, `x` holds a top's gradient and `y` a
    /// bottom's data.
    pub(super) fn add_gradients(
        &self,
        device: &AnyDevice,
        x: View<'_, T, AnyDevice>,
        y: View<'_, T, AnyDevice>,
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

//! Pooling over windows of two spatial axes.

use super::{Arity, Layer, LayerContext, PropagateDown, stochastic_pooling::Stochastic};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Pool2d, PoolRounding},
    proto::{
        LayerParameter, Phase, PoolingParameter,
        pooling_parameter::{PoolMethod, RoundMode},
    },
    shape::Shape,
};

/// Maximum, average or an element drawn at random over windows, which round up at the border unless
/// `round_mode: FLOOR`.
///
/// A second top of the maximum tells where each was found: `row · width + column` within its
/// plane, −1 for a window that holds nothing.
///
/// `STOCHASTIC` draws an element of each window in proportion to it, negative ones never; in the
/// TEST phase it takes their mean, so weighted.
pub struct PoolingLayer<T: Element, D: Device> {
    param: PoolingParameter,
    phase: Phase,
    /// For stochastic pooling only.
    stochastic: Option<Stochastic<T, D>>,
    /// For the bottom's present shape.
    op: Option<Pool2d>,
    /// Where each maximum, or what was drawn, was.
    mask: Blob<i32, D>,
}

impl<T: Element, D: Device> PoolingLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if kernel, stride or padding are given twice or not at all, or with
    /// `global_pooling`, or with padding for stochastic pooling.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.pooling_param.unwrap_or_default();
        let invalid = |why: &str| Err(Error::InvalidData(format!("pooling_param: {why}")));
        let stochastic = param.pool() == PoolMethod::Stochastic;
        if stochastic && pads(&param) != [0, 0] {
            return invalid("STOCHASTIC pooling takes no padding");
        }
        let pair = (param.kernel_h.is_some(), param.kernel_w.is_some());
        let kernel = param.kernel_size.is_some();
        if param.global_pooling() {
            if kernel || pair != (false, false) {
                return invalid("global_pooling takes no kernel");
            }
            if pads(&param) != [0, 0] || strides(&param) != [1, 1] {
                return invalid("global_pooling takes no padding and no stride");
            }
        } else if pair.0 != pair.1 || kernel == pair.0 {
            return invalid("give either kernel_size or both kernel_h and kernel_w");
        }
        if param.pad_h.is_some() != param.pad_w.is_some() {
            return invalid("pad_h and pad_w need each other");
        }
        if param.pad.is_some() && param.pad_h.is_some() {
            return invalid("give either pad or pad_h and pad_w");
        }
        if param.stride_h.is_some() != param.stride_w.is_some() {
            return invalid("stride_h and stride_w need each other");
        }
        if param.stride.is_some() && param.stride_h.is_some() {
            return invalid("give either stride or stride_h and stride_w");
        }
        let stochastic = stochastic.then(|| Stochastic::new(cx)).transpose()?;
        let mask = Blob::new(cx.device, &[0])?;
        Ok(Self { param, phase: cx.phase, stochastic, op: None, mask })
    }

    fn describe(&self, shape: &Shape) -> Result<Pool2d> {
        let &[batch, channels, height, width] = &shape[..] else {
            return Err(Error::Shape(format!(
                "needs 4 axes (num, channels, height, width), not {shape}"
            )));
        };
        let param = &self.param;
        let size = |value: Option<u32>| value.or(param.kernel_size).unwrap_or(0) as usize;
        let kernel = match param.global_pooling() {
            true => [height, width],
            false => [size(param.kernel_h), size(param.kernel_w)],
        };
        let rounding = match param.round_mode() {
            RoundMode::Ceil => PoolRounding::Ceil,
            RoundMode::Floor => PoolRounding::Floor,
        };
        let planes = Shape::new(&[batch, channels])?.count();
        Pool2d::new(planes, [height, width], kernel, strides(param), pads(param), rounding)
    }

    fn op(&self) -> Result<&Pool2d> {
        self.op.as_ref().ok_or_else(|| Error::InvalidData("forward before reshape".into()))
    }
}

fn strides(param: &PoolingParameter) -> [usize; 2] {
    [param.stride_h, param.stride_w].map(|value| value.unwrap_or(param.stride()) as usize)
}

fn pads(param: &PoolingParameter) -> [usize; 2] {
    [param.pad_h, param.pad_w].map(|value| value.unwrap_or(param.pad()) as usize)
}

impl<T: Element, D: Device> Layer<T, D> for PoolingLayer<T, D> {
    fn kind(&self) -> &'static str {
        "Pooling"
    }

    fn arity(&self) -> Arity {
        let tops = if self.param.pool() == PoolMethod::Max { 2 } else { 1 };
        Arity::between(1..=1, 1..=tops)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        let op = self.describe(shape)?;
        let [height, width] = op.output();
        let shape = [shape[0], shape[1], height, width];
        top.iter_mut().try_for_each(|top| top.reshape(&shape))?;
        if self.param.pool() != PoolMethod::Ave {
            self.mask.reshape(&shape)?;
        }
        if let Some(stochastic) = &mut self.stochastic {
            stochastic.reshape(bottom[0].shape(), top[0].shape())?;
        }
        self.op = Some(op);
        Ok(())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (op, x, mut y) = (*self.op()?, bottom[0].data()?, top[0].data_mut()?);
        match (&mut self.stochastic, self.phase) {
            (Some(stochastic), Phase::Train) => {
                let mut mask = self.mask.data_mut()?;
                stochastic.draw(device, &op, x.view(), y.view_mut(), mask.view_mut())
            }
            (Some(stochastic), Phase::Test) => stochastic.mean(device, &op, x.view(), y.view_mut()),
            _ if self.param.pool() == PoolMethod::Ave => {
                device.average_pool(&op, x.view(), y.view_mut())
            }
            _ => {
                let mut mask = self.mask.data_mut()?;
                device.max_pool(&op, x.view(), y.view_mut(), mask.view_mut())?;
                match top.get(1) {
                    Some(top) => device.convert_integers(mask.view(), top.data_mut()?.view_mut()),
                    None => Ok(()),
                }
            }
        }
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (op, dy, mut dx) = (self.op()?, top[0].diff()?, bottom[0].diff_mut()?);
        match (&self.stochastic, self.phase) {
            (Some(stochastic), Phase::Test) => {
                let y = top[0].data()?;
                stochastic.mean_backward(device, op, y.view(), dy.view(), dx.view_mut())
            }
            _ if self.param.pool() == PoolMethod::Ave => {
                device.average_pool_backward(op, dy.view(), dx.view_mut())
            }
            _ => {
                let mask = self.mask.data()?;
                device.max_pool_backward(op, dy.view(), mask.view(), dx.view_mut())
            }
        }
    }
}

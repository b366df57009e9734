//! Pooling over windows of two spatial axes.

use super::{Context, Layer, Propagate};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Pool, Rounding},
    proto::{
        LayerParameter, PoolingParameter,
        pooling_parameter::{PoolMethod, RoundMode},
    },
    shape::Shape,
};

/// Maximum or average over windows, which round up at the border unless `round_mode: FLOOR`.
pub struct PoolingLayer<D: Device> {
    param: PoolingParameter,
    /// For the bottom's present shape.
    op: Option<Pool>,
    /// Where each maximum was.
    mask: Blob<i32, D>,
}

impl<D: Device> PoolingLayer<D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] if kernel, stride or padding are given twice or not at all, or with
    /// `global_pooling`, or for stochastic pooling.
    pub fn new(param: &LayerParameter, cx: &Context<'_, D>) -> Result<Self> {
        let param = param.pooling_param.unwrap_or_default();
        let invalid = |why: &str| Err(Error::Invalid(format!("pooling_param: {why}")));
        if param.pool() == PoolMethod::Stochastic {
            return invalid("STOCHASTIC pooling is not implemented");
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
        Ok(Self { param, op: None, mask: Blob::new(cx.device, &[0])? })
    }

    fn describe(&self, shape: &Shape) -> Result<Pool> {
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
            RoundMode::Ceil => Rounding::Ceil,
            RoundMode::Floor => Rounding::Floor,
        };
        let planes = Shape::new(&[batch, channels])?.count();
        Pool::new(planes, [height, width], kernel, strides(param), pads(param), rounding)
    }

    fn op(&self) -> Result<&Pool> {
        self.op.as_ref().ok_or_else(|| Error::Invalid("forward before reshape".into()))
    }
}

fn strides(param: &PoolingParameter) -> [usize; 2] {
    [param.stride_h, param.stride_w].map(|value| value.unwrap_or(param.stride()) as usize)
}

fn pads(param: &PoolingParameter) -> [usize; 2] {
    [param.pad_h, param.pad_w].map(|value| value.unwrap_or(param.pad()) as usize)
}

impl<T: Element, D: Device> Layer<T, D> for PoolingLayer<D> {
    fn kind(&self) -> &'static str {
        "Pooling"
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        let op = self.describe(shape)?;
        let [height, width] = op.output();
        let shape = [shape[0], shape[1], height, width];
        top[0].reshape(&shape)?;
        if self.param.pool() == PoolMethod::Max {
            self.mask.reshape(&shape)?;
        }
        self.op = Some(op);
        Ok(())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (op, x, mut y) = (self.op()?, bottom[0].data()?, top[0].data_mut()?);
        match self.param.pool() {
            PoolMethod::Ave => device.average_pool(op, x.view(), y.view_mut()),
            _ => {
                let mut mask = self.mask.data_mut()?;
                device.max_pool(op, x.view(), y.view_mut(), mask.view_mut())
            }
        }
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: Propagate<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (op, dy, mut dx) = (self.op()?, top[0].diff()?, bottom[0].diff_mut()?);
        match self.param.pool() {
            PoolMethod::Ave => device.average_pool_backward(op, dy.view(), dx.view_mut()),
            _ => {
                let mask = self.mask.data()?;
                device.max_pool_backward(op, dy.view(), mask.view(), dx.view_mut())
            }
        }
    }
}

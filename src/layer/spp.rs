//! Pooling into the same number of elements whatever the extents.

use super::{Layer, LayerContext, PropagateDown, concat_layout::ConcatLayout};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    memory::{Src, View, ViewMut},
    op::{Binary, Pool2d, PoolRounding},
    proto::{LayerParameter, spp_parameter::PoolMethod},
    shape::Shape,
};

/// Spatial pyramid pooling: level `l` of `pyramid_height` pools into about 2ˡ × 2ˡ bins; all
/// levels, one after the other, are the top's second axis. A lone level keeps its four axes.
/// Source: He, Zhang, Ren, Sun 2014.
#[doc(alias = "SPPLayer")]
pub struct SppLayer<T: Element, D: Device> {
    height: u32,
    method: PoolMethod,
    levels: Vec<Level<T, D>>,
    /// Where the levels lie in the top.
    joint: ConcatLayout,
    /// The gradient by way of one level.
    part: Blob<T, D>,
}

/// A level for the bottom's present shape.
struct Level<T: Element, D: Device> {
    op: Pool2d,
    pooled: Blob<T, D>,
    /// Where each maximum was.
    mask: Blob<i32, D>,
}

impl<T: Element, D: Device> Level<T, D> {
    fn pool(
        &self,
        device: &D,
        method: PoolMethod,
        x: View<'_, T, D>,
        y: ViewMut<'_, T, D>,
    ) -> Result<()> {
        match method {
            PoolMethod::Ave => device.average_pool(&self.op, x, y),
            _ => device.max_pool(&self.op, x, y, self.mask.data_mut()?.view_mut()),
        }
    }

    fn pool_backward(
        &self,
        device: &D,
        method: PoolMethod,
        dy: View<'_, T, D>,
        dx: ViewMut<'_, T, D>,
    ) -> Result<()> {
        match method {
            PoolMethod::Ave => device.average_pool_backward(&self.op, dy, dx),
            _ => device.max_pool_backward(&self.op, dy, self.mask.data()?.view(), dx),
        }
    }
}

impl<T: Element, D: Device> SppLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] without a positive `pyramid_height`, or for stochastic pooling.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.spp_param.unwrap_or_default();
        let invalid = |why: &str| Err(Error::InvalidData(format!("spp_param: {why}")));
        if param.pyramid_height() == 0 {
            return invalid("needs a positive pyramid_height");
        }
        if param.pool() == PoolMethod::Stochastic {
            return invalid("STOCHASTIC pooling is not implemented");
        }
        Ok(Self {
            height: param.pyramid_height(),
            method: param.pool(),
            levels: Vec::new(),
            joint: ConcatLayout::default(),
            part: Blob::new(cx.device, &[0])?,
        })
    }

    /// Pooling into 2ˡ bins along both axes, as far as windows of one size allow.
    fn op(&self, level: u32, planes: usize, input: [usize; 2]) -> Result<Pool2d> {
        let too_deep = || Error::InvalidData(format!("there are no 2^{level} bins"));
        let bins = 1usize.checked_shl(level).ok_or_else(too_deep)?;
        let kernel = input.map(|extent| extent.div_ceil(bins));
        let pad = [0, 1].map(|axis| (kernel[axis] * bins - input[axis]).div_ceil(2));
        let pool = Pool2d::new(planes, input, kernel, kernel, pad, PoolRounding::Ceil);
        pool.map_err(|error| error.context(format!("level {level} of the pyramid")))
    }
}

impl<T: Element, D: Device> Layer<T, D> for SppLayer<T, D> {
    fn kind(&self) -> &'static str {
        "SPP"
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        let &[batch, channels, height, width] = &shape[..] else {
            let axes = "4 axes (num, channels, height, width)";
            return Err(Error::Shape(format!("needs {axes}, not {shape}")));
        };
        let planes = Shape::new(&[batch, channels])?.count();
        let ops = (0..self.height).map(|level| self.op(level, planes, [height, width]));
        let ops = ops.collect::<Result<Vec<_>>>()?;
        let device = bottom[0].device();
        for (level, &op) in ops.iter().enumerate() {
            let [height, width] = op.output();
            let shape = [batch, channels, height, width];
            match self.levels.get_mut(level) {
                Some(level) => {
                    level.op = op;
                    level.pooled.reshape(&shape)?;
                    level.mask.reshape(&shape)?;
                }
                None => {
                    let (pooled, mask) = (Blob::new(device, &shape)?, Blob::new(device, &shape)?);
                    self.levels.push(Level { op, pooled, mask });
                }
            }
        }
        if let [only] = &self.levels[..] {
            return top[0].reshape(only.pooled.shape());
        }
        let bins = ops.iter().map(|op| channels * op.output().iter().product::<usize>());
        let bins: Vec<_> = bins.collect();
        top[0].reshape(&[batch, bins.iter().sum()])?;
        self.joint = ConcatLayout::new(batch, bins);
        self.part.reshape(shape)
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        if let [only] = &self.levels[..] {
            return only.pool(device, self.method, x.view(), y.view_mut());
        }
        for (i, level) in self.levels.iter().enumerate() {
            let mut pooled = level.pooled.data_mut()?;
            level.pool(device, self.method, x.view(), pooled.view_mut())?;
            self.joint.join(device, i, pooled.view(), y.view_mut())?;
        }
        Ok(())
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
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        if let [only] = &self.levels[..] {
            return only.pool_backward(device, self.method, dy.view(), dx.view_mut());
        }
        let mut part = self.part.diff_mut()?;
        for (i, level) in self.levels.iter().enumerate() {
            let mut pooled = level.pooled.diff_mut()?;
            self.joint.part(device, i, dy.view(), pooled.view_mut())?;
            if i == 0 {
                level.pool_backward(device, self.method, pooled.view(), dx.view_mut())?;
                continue;
            }
            level.pool_backward(device, self.method, pooled.view(), part.view_mut())?;
            device.binary(Binary::Add, Src::InPlace, part.view(), dx.view_mut())?;
        }
        Ok(())
    }
}

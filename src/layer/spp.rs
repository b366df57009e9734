//! The SPP layer: spatial pyramid pooling.

use super::{concat_layout::ConcatLayout, prelude::*};
use crate::{
    memory::{Src, View, ViewMut},
    op::{Binary, Pool2d, PoolRounding},
    proto::spp_parameter::PoolMethod,
    shape::Shape,
};

/// Spatial pyramid pooling with `pyramid_height` levels. Level `l`, counted from 0, pools each
/// channel into at most 2ˡ × 2ˡ bins. The layer concatenates the bins of all levels along the
/// second axis of the top. If `pyramid_height` is 1, the top has four axes instead of two.
///
/// Spatial pyramid pooling was introduced by He, Zhang, Ren and Sun (2014).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 9 dim: 7 } } }
///     layer { type: "SPP" bottom: "x" top: "y" spp_param { pyramid_height: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().shape().to_vec(), [1, 15]); // 3 channels of 1 + 4 bins
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "SPPLayer")]
pub struct SppLayer<T: Element> {
    height: u32,
    method: PoolMethod,
    levels: Vec<PyramidLevel<T>>,
    layout: ConcatLayout,
    /// Scratch blob whose diff holds the contribution of one pyramid level to the gradient of the
    /// bottom.
    level_gradient: Blob<T>,
}

struct PyramidLevel<T: Element> {
    op: Pool2d,
    pooled_bins: Blob<T>,
    /// For each bin, the position of the bin's maximum within the plane.
    mask: Blob<i32>,
}

impl<T: Element> PyramidLevel<T> {
    fn pool(
        &self,
        device: &AnyDevice,
        method: PoolMethod,
        x: View<'_, T, AnyDevice>,
        y: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        match method {
            PoolMethod::Ave => device.average_pool(&self.op, x, y),
            _ => device.max_pool(&self.op, x, y, self.mask.data_mut()?.view_mut()),
        }
    }

    fn pool_backward(
        &self,
        device: &AnyDevice,
        method: PoolMethod,
        dy: View<'_, T, AnyDevice>,
        dx: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        match method {
            PoolMethod::Ave => device.average_pool_backward(&self.op, dy, dx),
            _ => device.max_pool_backward(&self.op, dy, self.mask.data()?.view(), dx),
        }
    }
}

impl<T: Element> SppLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `pyramid_height` is 0, or if the pooling method is
    /// `STOCHASTIC`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let param = param.spp_param.unwrap_or_default();
        if param.pyramid_height() == 0 {
            return invalid("spp_param: pyramid_height must be positive");
        }
        if param.pool() == PoolMethod::Stochastic {
            return invalid("spp_param: STOCHASTIC pooling is not implemented");
        }
        Ok(Self {
            height: param.pyramid_height(),
            method: param.pool(),
            levels: Vec::new(),
            layout: ConcatLayout::default(),
            level_gradient: Blob::new(cx.device, &[0])?,
        })
    }
}

/// Returns the pooling windows of pyramid level `level` for a bottom of shape `shape`. The level has
/// at most `2^level` bins of equal size along each spatial axis.
pub(crate) fn pyramid_windows(level: u32, shape: &Shape) -> Result<Pool2d> {
    let [batch, channels, height, width] = image_extents(shape)?;
    let (planes, input) = (Shape::new(&[batch, channels])?.count(), [height, width]);
    let too_many_bins =
        || Error::InvalidData(format!("spp_param: 2^{level} bins per axis are too many"));
    let bins = 1usize.checked_shl(level).ok_or_else(too_many_bins)?;
    let kernel = input.map(|extent| extent.div_ceil(bins));
    let pad = [0, 1].map(|axis| (kernel[axis] * bins - input[axis]).div_ceil(2));
    let pool = Pool2d::new(planes, input, kernel, kernel, pad, PoolRounding::Ceil);
    pool.map_err(|error| error.context(format!("pyramid level {level}")))
}

impl<T: Element> Layer<T> for SppLayer<T> {
    fn kind(&self) -> &'static str {
        "SPP"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let [batch, channels, ..] = image_extents(shape)?;
        let ops = (0..self.height).map(|level| pyramid_windows(level, shape));
        let ops = ops.collect::<Result<Vec<_>>>()?;
        let device = bottom[0].device();
        for (level, &op) in ops.iter().enumerate() {
            let [height, width] = op.output();
            let shape = [batch, channels, height, width];
            match self.levels.get_mut(level) {
                Some(level) => {
                    level.op = op;
                    level.pooled_bins.reshape(&shape)?;
                    level.mask.reshape(&shape)?;
                }
                None => {
                    let (pooled_bins, mask) =
                        (Blob::new(device, &shape)?, Blob::new(device, &shape)?);
                    self.levels.push(PyramidLevel { op, pooled_bins, mask });
                }
            }
        }
        if let [only_level] = &self.levels[..] {
            return top[0].reshape(only_level.pooled_bins.shape());
        }
        let bins = ops.iter().map(|op| channels * op.output().iter().product::<usize>());
        let bins: Vec<_> = bins.collect();
        top[0].reshape(&[batch, bins.iter().sum()])?;
        self.layout = ConcatLayout::new(batch, bins);
        self.level_gradient.reshape(shape)
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        if let [only_level] = &self.levels[..] {
            return only_level.pool(device, self.method, x.view(), y.view_mut());
        }
        for (i, level) in self.levels.iter().enumerate() {
            let mut pooled_bins = level.pooled_bins.data_mut()?;
            level.pool(device, self.method, x.view(), pooled_bins.view_mut())?;
            self.layout.write_part(device, i, pooled_bins.view(), y.view_mut())?;
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
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        if let [only_level] = &self.levels[..] {
            return only_level.pool_backward(device, self.method, dy.view(), dx.view_mut());
        }
        let mut gradient = self.level_gradient.diff_mut()?;
        for (i, level) in self.levels.iter().enumerate() {
            let mut pooled_bins = level.pooled_bins.diff_mut()?;
            self.layout.read_part(device, i, dy.view(), pooled_bins.view_mut())?;
            if i == 0 {
                level.pool_backward(device, self.method, pooled_bins.view(), dx.view_mut())?;
                continue;
            }
            level.pool_backward(device, self.method, pooled_bins.view(), gradient.view_mut())?;
            device.binary(Binary::Add, Src::InPlace, gradient.view(), dx.view_mut())?;
        }
        Ok(())
    }
}

//! The Pooling layer: maximum, average and stochastic pooling over two spatial axes.

use super::{position, prelude::*, stochastic_pooling::StochasticPooling};
use crate::{
    memory::Src,
    op::{Axis, Binary, Pool2d, PoolRounding},
    proto::{
        LayerState, Phase, PoolingParameter,
        pooling_parameter::{PoolMethod, RoundMode},
    },
    shape::Shape,
};

/// Pooling: the maximum, the average or a random element of each window. The layer rounds the
/// number of windows up, unless `round_mode` is `FLOOR`.
///
/// With `MAX`, the optional second top holds the position of each maximum within its plane, `row ·
/// width + column`. The second top holds −1 for a window that contains no input element.
///
/// `STOCHASTIC` draws one element of each window with a probability proportional to `max(x, 0)`. In
/// the TEST phase, stochastic pooling computes the weighted mean of each window, with the weights
/// `max(x, 0)`.
///
/// Three extensions come from forks of Caffe. `ceil_mode: false`, which the fork for DenseNet and
/// other forks use, rounds down like the `round_mode` `FLOOR`. The method `AVE_EXC_PAD` of Synopsys
/// Caffe computes the average of those elements of each window that lie in the input.
/// `avg_include_pad: false` of Intel Caffe turns the method `AVE` into `AVE_EXC_PAD`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 4 } } }
///     layer { type: "Pooling" bottom: "x" top: "y"
///       pooling_param { pool: MAX kernel_size: 2 stride: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// let x = net.blob("x").unwrap();
/// x.data_mut()?.host_mut()?.copy_from_slice(&[1.0, 5.0, 2.0, 0.0, 3.0, 4.0, 8.0, 6.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [5.0, 8.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct PoolingLayer<T: Element> {
    param: PoolingParameter,
    phase: Phase,
    /// For averages that exclude the padding: for each window, the number of elements in the input
    /// and its padding, divided by the number of elements in the input.
    padding_factors: Option<Blob<T>>,
    /// Scratch blob for the product of the top's gradient and `padding_factors`.
    scaled_gradient: Blob<T>,
    /// The scratch blobs and random number state of stochastic pooling; `None` for other pooling
    /// methods.
    stochastic: Option<StochasticPooling<T>>,
    op: Option<Pool2d>,
    /// For each window, the index, within the plane, of the maximum or of the drawn element.
    mask: Blob<i32>,
}

impl<T: Element> PoolingLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the kernel size is missing, or if the method is
    /// `STOCHASTIC` and the padding is not zero. Returns [`Error::InvalidData`] if the kernel,
    /// stride or padding is given twice, for one axis only, or together with `global_pooling`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let param = param.pooling_param.unwrap_or_default();
        let reject = |reason: &str| invalid(format!("pooling_param: {reason}"));
        let stochastic = param.pool() == PoolMethod::Stochastic;
        if stochastic && pads(&param) != [0, 0] {
            return reject("STOCHASTIC pooling does not support padding");
        }
        let has_kernel_h_w = [param.kernel_h, param.kernel_w].map(|extent| extent.is_some());
        let has_kernel_size = param.kernel_size.is_some();
        if param.global_pooling() {
            if has_kernel_size || has_kernel_h_w != [false; 2] {
                return reject(
                    "global_pooling cannot be combined with kernel_size, kernel_h or kernel_w",
                );
            }
            if pads(&param) != [0, 0] || strides(&param) != [1, 1] {
                return reject("global_pooling requires padding 0 and stride 1");
            }
        } else if has_kernel_h_w[0] != has_kernel_h_w[1] || has_kernel_size == has_kernel_h_w[0] {
            return reject("give either kernel_size or both kernel_h and kernel_w");
        }
        for (name, size, [height, width]) in [
            ("pad", param.pad, [param.pad_h, param.pad_w]),
            ("stride", param.stride, [param.stride_h, param.stride_w]),
        ] {
            if height.is_some() != width.is_some() {
                return reject(&format!("give both {name}_h and {name}_w, or neither"));
            }
            if size.is_some() && height.is_some() {
                return reject(&format!("give either {name} or both {name}_h and {name}_w"));
            }
        }
        if param.round_mode.is_some()
            && param.ceil_mode.is_some_and(|ceil| ceil != (param.round_mode() == RoundMode::Ceil))
        {
            return reject("ceil_mode and round_mode contradict each other");
        }
        if !param.avg_include_pad() && !is_average(&param) {
            return reject("avg_include_pad: false needs the method AVE");
        }
        let stochastic = stochastic.then(|| StochasticPooling::new(cx)).transpose()?;
        let mask = Blob::new(cx.device, &[0])?;
        let excludes_padding = excludes_padding(&param) && pads(&param) != [0, 0];
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self {
            param,
            phase: cx.phase,
            padding_factors: excludes_padding.then(blob).transpose()?,
            scaled_gradient: blob()?,
            stochastic,
            op: None,
            mask,
        })
    }
}

fn is_average(param: &PoolingParameter) -> bool {
    matches!(param.pool(), PoolMethod::Ave | PoolMethod::AveExcPad)
}

/// Returns whether averages exclude the padding.
pub(crate) fn excludes_padding(param: &PoolingParameter) -> bool {
    param.pool() == PoolMethod::AveExcPad || !param.avg_include_pad()
}

/// Returns, for each window, the number of elements in the input and its padding, divided by the
/// number of elements in the input.
fn padding_factors(op: &Pool2d) -> Vec<f64> {
    let counts = |axis: usize, window: usize| {
        let start = window * op.stride[axis];
        let end = (start + op.kernel[axis]).min(op.input[axis] + 2 * op.pad[axis]);
        let first = start.max(op.pad[axis]);
        let inside = end.min(op.input[axis] + op.pad[axis]).saturating_sub(first);
        [(end - start) as f64, inside as f64]
    };
    let [rows, columns] = op.output();
    let windows = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let factor = |(row, column)| {
        let ([rows, rows_inside], [columns, columns_inside]) = (counts(0, row), counts(1, column));
        rows * columns / (rows_inside * columns_inside)
    };
    windows.map(factor).collect()
}

/// Returns the pooling windows for a bottom of shape `shape`.
pub(crate) fn pooling_windows(param: &PoolingParameter, shape: &Shape) -> Result<Pool2d> {
    let [batch, channels, height, width] = image_extents(shape)?;
    let size = |value: Option<u32>| value.or(param.kernel_size).unwrap_or(0) as usize;
    let kernel = match param.global_pooling() {
        true => [height, width],
        false => [size(param.kernel_h), size(param.kernel_w)],
    };
    let rounding = match param.round_mode() == RoundMode::Ceil && param.ceil_mode() {
        true => PoolRounding::Ceil,
        false => PoolRounding::Floor,
    };
    let planes = Shape::new(&[batch, channels])?.count();
    Pool2d::new(planes, [height, width], kernel, strides(param), pads(param), rounding)
}

/// Returns the axis along which the windows of each plane lie.
fn window_axis(op: &Pool2d) -> Result<Axis> {
    let [rows, columns] = op.output();
    Axis::new(op.planes, rows * columns, 1)
}

fn strides(param: &PoolingParameter) -> [usize; 2] {
    [param.stride_h, param.stride_w].map(|value| value.unwrap_or(param.stride()) as usize)
}

fn pads(param: &PoolingParameter) -> [usize; 2] {
    [param.pad_h, param.pad_w].map(|value| value.unwrap_or(param.pad()) as usize)
}

impl<T: Element> Layer<T> for PoolingLayer<T> {
    fn kind(&self) -> &'static str {
        "Pooling"
    }

    fn arity(&self) -> Arity {
        let tops = if self.param.pool() == PoolMethod::Max { 2 } else { 1 };
        Arity::between(1..=1, 1..=tops)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let op = pooling_windows(&self.param, shape)?;
        let [height, width] = op.output();
        let shape = [shape[0], shape[1], height, width];
        top.iter_mut().try_for_each(|top| top.reshape(&shape))?;
        if !is_average(&self.param) {
            self.mask.reshape(&shape)?;
        }
        if let Some(factors) = self.padding_factors.as_mut().filter(|_| self.op != Some(op)) {
            factors.reshape(&[height, width])?;
            let values: Vec<T> = padding_factors(&op).into_iter().map(T::from_f64).collect();
            factors.copy_from_slice(&values)?;
            self.scaled_gradient.reshape(&shape)?;
        }
        if let Some(stochastic) = &mut self.stochastic {
            stochastic.reshape(bottom[0].shape(), top[0].shape())?;
        }
        self.op = Some(op);
        Ok(())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (op, x, mut y) = (*reshaped(&self.op)?, bottom[0].data()?, top[0].data_mut()?);
        match (&mut self.stochastic, self.phase) {
            (Some(stochastic), Phase::Train) => {
                let mut mask = self.mask.data_mut()?;
                stochastic.draw(device, &op, x.view(), y.view_mut(), mask.view_mut())
            }
            (Some(stochastic), Phase::Test) => stochastic.mean(device, &op, x.view(), y.view_mut()),
            _ if is_average(&self.param) => {
                device.average_pool(&op, x.view(), y.view_mut())?;
                let Some(factors) = &self.padding_factors else { return Ok(()) };
                let (axis, factors) = (window_axis(&op)?, factors.data()?);
                device.broadcast(Binary::Mul, &axis, Src::InPlace, factors.view(), y.view_mut())
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
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (op, dy, mut dx) = (reshaped(&self.op)?, top[0].diff()?, bottom[0].diff_mut()?);
        match (&self.stochastic, self.phase) {
            (Some(stochastic), Phase::Test) => {
                let y = top[0].data()?;
                stochastic.mean_backward(device, op, y.view(), dy.view(), dx.view_mut())
            }
            _ if is_average(&self.param) => {
                let Some(factors) = &self.padding_factors else {
                    return device.average_pool_backward(op, dy.view(), dx.view_mut());
                };
                let (factors, mut scaled) = (factors.data()?, self.scaled_gradient.diff_mut()?);
                let dy = dy.view().into();
                let axis = window_axis(op)?;
                device.broadcast(Binary::Mul, &axis, dy, factors.view(), scaled.view_mut())?;
                device.average_pool_backward(op, scaled.view(), dx.view_mut())
            }
            _ => {
                let mask = self.mask.data()?;
                device.max_pool_backward(op, dy.view(), mask.view(), dx.view_mut())
            }
        }
    }

    fn state(&self) -> Result<Option<LayerState>> {
        match &self.stochastic {
            Some(stochastic) => position::state(stochastic.draws()),
            None => Ok(None),
        }
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        match &mut self.stochastic {
            Some(stochastic) => stochastic.set_draws(position::of(state)?),
            None => return invalid("only STOCHASTIC pooling has a state to restore"),
        }
        Ok(())
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        if let Some(stochastic) = &mut self.stochastic {
            stochastic.set_draws(stochastic.draws().saturating_add(passes));
        }
        Ok(true)
    }
}

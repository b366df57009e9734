//! The MVN layer: mean-variance normalization.

use super::{prelude::*, saved_input::SavedInput};
use crate::{
    op::{Axis, Binary, EpsilonPlacement, Standardize},
    proto::MvnParameter,
};

/// Mean-variance normalization: `y = (x − mean) / (√variance + eps)`, or `y = x − mean` without
/// `normalize_variance`. The layer computes the mean and the variance over each channel of each
/// image. With `across_channels`, the layer computes the mean and the variance over each whole
/// image.
///
/// As in Caffe, the top has four axes, with extent 1 for each axis that the bottom lacks.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 1 dim: 2 } } }
///     layer { type: "MVN" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 3.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [-1.0, 1.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct MvnLayer<T: Element> {
    param: MvnParameter,
    op: Option<Standardize>,
    mean: Blob<T>,
    variance: Blob<T>,
    saved_input: SavedInput<T>,
}

impl<T: Element> MvnLayer<T> {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        Ok(Self {
            param: param.mvn_param.unwrap_or_default(),
            op: None,
            mean: Blob::new(cx.device, &[0])?,
            variance: Blob::new(cx.device, &[0])?,
            saved_input: SavedInput::new(cx.device)?,
        })
    }
}

impl<T: Element> Layer<T> for MvnLayer<T> {
    fn kind(&self) -> &'static str {
        "MVN"
    }

    fn allows_in_place(&self) -> bool {
        true
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let x = &bottom[0];
        let shape = [x.num()?, x.channels()?, x.height()?, x.width()?];
        let [num, channels, height, width] = shape;
        let axis = match self.param.across_channels() {
            true => Axis::new(1, num, channels * height * width)?,
            false => Axis::new(1, num * channels, height * width)?,
        };
        let epsilon = self.param.eps().into();
        self.op = Some(Standardize {
            axis,
            epsilon,
            epsilon_placement: EpsilonPlacement::AddedToDeviation,
        });
        self.mean.reshape(&[axis.extent])?;
        self.variance.reshape(&[axis.extent])?;
        top[0].reshape(&shape)?;
        match self.param.normalize_variance() {
            true => self.saved_input.reshape(&bottom[0], &top[0]),
            false => Ok(()),
        }
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let op = *reshaped(&self.op)?;
        let input = match self.param.normalize_variance() {
            true => self.saved_input.save(&bottom[0], &top[0])?,
            false => &bottom[0],
        };
        let (mut mean, mut variance) = (self.mean.data_mut()?, self.variance.data_mut()?);
        device.moments(&op.axis, input.data()?.view(), mean.view_mut(), variance.view_mut())?;
        let (x, mut y) = top[0].data_mut_from(input)?;
        match self.param.normalize_variance() {
            true => device.standardize(&op, x.src(), mean.view(), variance.view(), y.view_mut()),
            false => device.broadcast(Binary::Sub, &op.axis, x.src(), mean.view(), y.view_mut()),
        }
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let op = *reshaped(&self.op)?;
        if self.param.normalize_variance() {
            let x = self.saved_input.input(&bottom[0], &top[0]).data()?;
            let (mean, variance) = (self.mean.data()?, self.variance.data()?);
            let (mean, variance) = (mean.view(), variance.view());
            let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
            return device.standardize_backward(
                &op,
                x.view(),
                mean,
                variance,
                dy.src(),
                dx.view_mut(),
            );
        }
        // The gradient of `y = x − mean` with respect to `x` is `dy` minus the mean of `dy`.
        let (mut mean, mut variance) = (self.mean.data_mut()?, self.variance.data_mut()?);
        device.moments(&op.axis, top[0].diff()?.view(), mean.view_mut(), variance.view_mut())?;
        let (dy, mut dx) = bottom[0].diff_mut_from(&top[0])?;
        device.broadcast(Binary::Sub, &op.axis, dy.src(), mean.view(), dx.view_mut())
    }
}

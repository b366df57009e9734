//! The ShuffleChannel layer, which transposes groups of channels.

use super::prelude::*;
use crate::{
    op::{Axis, Permute},
    shape::Shape,
};

/// Divides the channels into `group` groups, and interleaves the groups: `y[j·group + i] =
/// x[i·(channels / group) + j]` for group i and channel j of the group. The second axis holds the
/// channels.
///
/// The layer comes from Caffe's forks for ShuffleNet: Zhang, Zhou, Lin and Sun, ShuffleNet: an
/// extremely efficient convolutional neural network for mobile devices (2018).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 6 } } }
///     layer { type: "ShuffleChannel" bottom: "x" top: "y" shuffle_channel_param { group: 2 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ShuffleChannelLayer {
    groups: usize,
}

impl ShuffleChannelLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `group` is 0.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        match param.shuffle_channel_param.unwrap_or_default().group() {
            0 => invalid("shuffle_channel_param: group must be positive"),
            groups => Ok(Self { groups: groups as usize }),
        }
    }

    /// Returns the transposition of the groups and the channels within a group, or the inverse of
    /// this transposition.
    fn op(&self, shape: &Shape, inverse: bool) -> Result<Permute> {
        let Axis { outer, extent, inner } = Axis::of(shape, 1)?;
        if extent % self.groups != 0 {
            return wrong_shape(format!(
                "shuffle_channel_param: {extent} channels are not divisible by group {}",
                self.groups
            ));
        }
        let (mut rows, mut columns) = (self.groups, extent / self.groups);
        if inverse {
            (rows, columns) = (columns, rows);
        }
        Permute::new(Shape::new(&[outer, rows, columns, inner])?, &[0, 2, 1, 3])
    }
}

impl<T: Element> Layer<T> for ShuffleChannelLayer {
    fn kind(&self) -> &'static str {
        "ShuffleChannel"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        self.op(bottom[0].shape(), false)?;
        top[0].reshape_like(&bottom[0])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let op = self.op(bottom[0].shape(), false)?;
        device.permute(&op, bottom[0].data()?.view(), top[0].data_mut()?.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let op = self.op(bottom[0].shape(), true)?;
        device.permute(&op, top[0].diff()?.view(), bottom[0].diff_mut()?.view_mut())
    }
}

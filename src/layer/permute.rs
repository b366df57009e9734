//! The Permute layer, which changes the order of a blob's axes.

use super::{prelude::*, shared_top::SharedTop};
use crate::{op::Permute, shape::Shape};

/// Permutes the axes of its bottom: axis `i` of the top is axis `order[i]` of the bottom. The axes
/// that the field `order` does not name follow in ascending order.
///
/// The Permute layer comes from the SSD fork of Caffe (weiliu89/caffe, branch ssd), where its field
/// `permute_param` has the number 202.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 dim: 1 dim: 2 } } }
///     layer { type: "Permute" bottom: "x" top: "y"
///       permute_param { order: 0 order: 2 order: 3 order: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0, 2.0, 30.0, 40.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().shape().to_vec(), [1, 1, 2, 2]);
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [1.0, 30.0, 2.0, 40.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct PermuteLayer {
    order: Vec<usize>,
    shared_top: SharedTop,
}

impl PermuteLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `order` names an axis twice.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let order = param.permute_param.clone().unwrap_or_default().order;
        let order: Vec<_> = order.into_iter().map(|axis| axis as usize).collect();
        for (i, axis) in order.iter().enumerate() {
            if order[..i].contains(axis) {
                return invalid(format!("permute_param: order names axis {axis} twice"));
            }
        }
        Ok(Self { order, shared_top: SharedTop::new(param) })
    }

    /// Returns, for each axis of the top, the axis of a bottom of shape `shape` that becomes this
    /// axis.
    fn order(&self, shape: &Shape) -> Result<Vec<usize>> {
        if let Some(axis) = self.order.iter().find(|&&axis| axis >= shape.len()) {
            return invalid(format!(
                "permute_param: order names axis {axis}, but the bottom of shape {shape} has {} \
                 axes",
                shape.len()
            ));
        }
        let other_axes = (0..shape.len()).filter(|axis| !self.order.contains(axis));
        Ok(self.order.iter().copied().chain(other_axes).collect())
    }
}

impl<T: Element> Layer<T> for PermuteLayer {
    fn kind(&self) -> &'static str {
        "Permute"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let order = self.order(shape)?;
        top[0].reshape(&Permute::new(shape.clone(), &order)?.output())?;
        match order.is_sorted() {
            true => self.shared_top.share(&bottom[0], &mut top[0]),
            false => Ok(()),
        }
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let shape = bottom[0].shape();
        let order = self.order(shape)?;
        if order.is_sorted() {
            return Ok(());
        }
        let op = Permute::new(shape.clone(), &order)?;
        device.permute(&op, bottom[0].data()?.view(), top[0].data_mut()?.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let order = self.order(bottom[0].shape())?;
        if order.is_sorted() {
            return SharedTop::backward(device, &top[0], &bottom[0]);
        }
        let mut inverse_order = vec![0; order.len()];
        for (axis, &from) in order.iter().enumerate() {
            inverse_order[from] = axis;
        }
        let op = Permute::new(top[0].shape().clone(), &inverse_order)?;
        device.permute(&op, top[0].diff()?.view(), bottom[0].diff_mut()?.view_mut())
    }
}

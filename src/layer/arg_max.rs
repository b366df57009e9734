//! Where the greatest are.

use super::{Layer, LayerContext, PropagateDown, concat_layout::ConcatLayout, loss_common};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Axis, TopK},
    proto::LayerParameter,
    shape::Shape,
};

/// Indices of the `top_k` greatest along `axis`, the greatest first, or with `out_max_val` their
/// values. Of equals, that with the larger index comes first, as in Caffe.
///
/// Without `axis` it is all axes after the first, the top is `N × 1 × top_k`, and with
/// `out_max_val` it is `N × 2 × top_k` and has the indices before the values.
pub struct ArgMaxLayer<T: Element, D: Device> {
    axis: Option<isize>,
    top_k: usize,
    values: bool,
    /// For the bottom's present shape.
    op: Option<TopK>,
    /// What is found: values in the data, indices in the diff.
    found: Blob<T, D>,
}

impl<T: Element, D: Device> ArgMaxLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] without a positive `top_k`.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let param = param.argmax_param.unwrap_or_default();
        if param.top_k() == 0 {
            return Err(Error::InvalidData("argmax_param needs a positive top_k".into()));
        }
        Ok(Self {
            axis: param.axis.map(|axis| axis as isize),
            top_k: param.top_k() as usize,
            values: param.out_max_val(),
            op: None,
            found: Blob::new(cx.device, &[0])?,
        })
    }

    fn describe(&self, shape: &Shape) -> Result<TopK> {
        let axis = match self.axis {
            Some(axis) => Axis::of(shape, axis)?,
            None => loss_common::per_item_axis(shape)?,
        };
        if self.top_k > axis.extent {
            let why = format!("top_k {} of {} elements", self.top_k, axis.extent);
            return Err(Error::InvalidData(why));
        }
        Ok(TopK { axis, k: self.top_k })
    }
}

impl<T: Element, D: Device> Layer<T, D> for ArgMaxLayer<T, D> {
    fn kind(&self) -> &'static str {
        "ArgMax"
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        let op = self.describe(shape)?;
        self.op = Some(op);
        self.found.reshape(&[op.axis.outer, op.k, op.axis.inner])?;
        if let Some(axis) = self.axis {
            let mut output = shape.to_vec();
            output[shape.canonical_axis(axis)?] = op.k;
            return top[0].reshape(&output);
        }
        let mut output = vec![1; shape.len().max(3)];
        output[..3].copy_from_slice(&[op.axis.outer, 1 + usize::from(self.values), op.k]);
        top[0].reshape(&output)
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let op = self.op.as_ref().ok_or_else(loss_common::not_reshaped_error)?;
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        match (self.values, self.axis) {
            (false, _) => {
                let mut values = self.found.data_mut()?;
                device.top_k(op, x.view(), values.view_mut(), y.view_mut())
            }
            (true, Some(_)) => {
                let mut places = self.found.diff_mut()?;
                device.top_k(op, x.view(), y.view_mut(), places.view_mut())
            }
            (true, None) => {
                let (mut values, mut places) = (self.found.data_mut()?, self.found.diff_mut()?);
                device.top_k(op, x.view(), values.view_mut(), places.view_mut())?;
                let joint = ConcatLayout::new(op.axis.outer, [op.k, op.k]);
                joint.join(device, 0, places.view(), y.view_mut())?;
                joint.join(device, 1, values.view(), y.view_mut())
            }
        }
    }

    fn backward(
        &mut self,
        _: &D,
        _: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom.contains(&true) {
            return Err(Error::InvalidData("indices of the greatest have no gradient".into()));
        }
        Ok(())
    }
}

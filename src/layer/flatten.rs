//! Several axes as one.

use super::{Layer, LayerContext, PropagateDown, shared_top::SharedTop};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::LayerParameter,
};

/// Makes one axis of those from `axis` to `end_axis`, both included, without copying. If the
/// latter is just before the former, that is an axis of extent 1.
pub struct FlattenLayer {
    axis: isize,
    end: isize,
    alias: SharedTop,
}

impl FlattenLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let flatten = param.flatten_param.unwrap_or_default();
        let (axis, end) = (flatten.axis() as isize, flatten.end_axis() as isize);
        Ok(Self { axis, end, alias: SharedTop::new(param) })
    }
}

impl<T: Element, D: Device> Layer<T, D> for FlattenLayer {
    fn kind(&self) -> &'static str {
        "Flatten"
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        let start = shape.canonical_axis(self.axis)?;
        let end = shape.canonical_axis(self.end)? + 1;
        if end < start {
            let why = format!("end_axis {} lies before axis {} of {shape}", self.end, self.axis);
            return Err(Error::Shape(why));
        }
        let flat = shape.count_range(start, end)?;
        top[0].reshape(&[&shape[..start], &[flat], &shape[end..]].concat())?;
        self.alias.share(&bottom[0], &mut top[0])
    }

    fn forward(&mut self, _: &D, _: &[Blob<T, D>], _: &[Blob<T, D>]) -> Result<()> {
        Ok(())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        SharedTop::backward(device, &top[0], propagate, &bottom[0])
    }
}

//! Blobs one after the other along an axis.

use super::{
    Arity, Layer, LayerContext, PropagateDown, shared_top::SharedTop, proto_shape, concat_layout::ConcatLayout,
};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::LayerParameter,
};

/// Joins its bottoms along `axis`; all other extents must agree. A lone bottom is handed on
/// without copying.
pub struct ConcatLayer {
    axis: isize,
    alias: SharedTop,
    /// For the bottoms' present shapes.
    joint: ConcatLayout,
}

impl ConcatLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if both `axis` and `concat_dim` are given.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let concat = param.concat_param.unwrap_or_default();
        let axis = proto_shape::axis(concat.axis, ("concat_dim", concat.concat_dim))?;
        Ok(Self { axis, alias: SharedTop::new(param), joint: ConcatLayout::default() })
    }
}

impl<T: Element, D: Device> Layer<T, D> for ConcatLayer {
    fn kind(&self) -> &'static str {
        "Concat"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=usize::MAX, 1..=1)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let first = bottom[0].shape();
        let axis = first.canonical_axis(self.axis)?;
        let mut shape = first.to_vec();
        for other in bottom[1..].iter().map(Blob::shape) {
            let alike = |at: usize| at == axis || first[at] == other[at];
            if other.len() != first.len() || !(0..first.len()).all(alike) {
                let why = format!("bottoms of shapes {first} and {other} differ off axis {axis}");
                return Err(Error::Shape(why));
            }
            shape[axis] = shape[axis].saturating_add(other[axis]);
        }
        top[0].reshape(&shape)?;
        if let [only] = bottom {
            return self.alias.share(only, &mut top[0]);
        }
        let inner = first.count_range(axis + 1, first.len())?;
        let columns = bottom.iter().map(|bottom| bottom.shape()[axis] * inner);
        self.joint = ConcatLayout::new(first.count_range(0, axis)?, columns);
        Ok(())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        if bottom.len() == 1 {
            return Ok(());
        }
        let mut y = top[0].data_mut()?;
        for (i, bottom) in bottom.iter().enumerate() {
            self.joint.join(device, i, bottom.data()?.view(), y.view_mut())?;
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
        if let [only] = bottom {
            return SharedTop::backward(device, &top[0], propagate, only);
        }
        let dy = top[0].diff()?;
        for (i, bottom) in bottom.iter().enumerate().filter(|(i, _)| propagate.bottom[*i]) {
            self.joint.part(device, i, dy.view(), bottom.diff_mut()?.view_mut())?;
        }
        Ok(())
    }
}

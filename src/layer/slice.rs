//! Parts of a blob along an axis.

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

/// Parts its bottom along `axis`: before each `slice_point`, or equally if there is none. A lone
/// top is the bottom, uncopied.
pub struct SliceLayer {
    axis: isize,
    points: Vec<usize>,
    alias: SharedTop,
    /// For the bottom's present shape.
    joint: ConcatLayout,
}

impl SliceLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if both `axis` and `slice_dim` are given, or if there is not one
    /// `slice_point` less than there are tops.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let slice = param.slice_param.clone().unwrap_or_default();
        let axis = proto_shape::axis(slice.axis, ("slice_dim", slice.slice_dim))?;
        let (points, tops) = (slice.slice_point.len(), param.top.len());
        if points > 0 && points + 1 != tops {
            return Err(Error::InvalidData(format!("{points} slice points for {tops} tops")));
        }
        let points = slice.slice_point.iter().map(|&point| point as usize).collect();
        Ok(Self { axis, points, alias: SharedTop::new(param), joint: ConcatLayout::default() })
    }

    /// How much of an axis of this extent each of the tops gets.
    fn extents(&self, extent: usize, tops: usize) -> Result<Vec<usize>> {
        if self.points.is_empty() {
            if !extent.is_multiple_of(tops) {
                let why = format!("an axis of extent {extent} does not divide into {tops} tops");
                return Err(Error::Shape(why));
            }
            return Ok(vec![extent / tops; tops]);
        }
        let ends = self.points.iter().copied().chain([extent]);
        let mut start = 0;
        let part = |end: usize| match end.checked_sub(start) {
            Some(part) if part > 0 => {
                start = end;
                Ok(part)
            }
            _ => {
                let points = &self.points;
                let why = format!("slice points {points:?} do not rise within 0 and {extent}");
                Err(Error::Shape(why))
            }
        };
        ends.map(part).collect()
    }
}

impl<T: Element, D: Device> Layer<T, D> for SliceLayer {
    fn kind(&self) -> &'static str {
        "Slice"
    }

    fn arity(&self) -> Arity {
        Arity::between(1..=1, 1..=usize::MAX)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let shape = bottom[0].shape();
        let axis = shape.canonical_axis(self.axis)?;
        let extents = self.extents(shape[axis], top.len())?;
        for (top, &extent) in top.iter_mut().zip(&extents) {
            let mut part = shape.to_vec();
            part[axis] = extent;
            top.reshape(&part)?;
        }
        if let [only] = top {
            return self.alias.share(&bottom[0], only);
        }
        let inner = shape.count_range(axis + 1, shape.len())?;
        let columns = extents.into_iter().map(|extent| extent * inner);
        self.joint = ConcatLayout::new(shape.count_range(0, axis)?, columns);
        Ok(())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        if top.len() == 1 {
            return Ok(());
        }
        let x = bottom[0].data()?;
        for (i, top) in top.iter().enumerate() {
            self.joint.part(device, i, x.view(), top.data_mut()?.view_mut())?;
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
        if let [only] = top {
            return SharedTop::backward(device, only, propagate, &bottom[0]);
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let mut dx = bottom[0].diff_mut()?;
        for (i, top) in top.iter().enumerate() {
            self.joint.join(device, i, top.diff()?.view(), dx.view_mut())?;
        }
        Ok(())
    }
}

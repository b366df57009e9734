//! The same elements in another shape.

use super::{Layer, LayerContext, PropagateDown, shared_top::SharedTop};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::{LayerParameter, ReshapeParameter},
    shape::Shape,
};

/// Replaces `num_axes` axes (all if −1) from `axis` on by those of `shape`, without copying: an
/// extent of 0 copies the bottom's, one of −1 is what remains.
pub struct ReshapeLayer {
    param: ReshapeParameter,
    alias: SharedTop,
}

impl ReshapeLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for extents or a number of axes below −1, or several extents of −1.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let reshape = param.reshape_param.clone().unwrap_or_default();
        let dim = extents(&reshape);
        let invalid = |why: String| Err(Error::InvalidData(format!("reshape_param: {why}")));
        if reshape.num_axes() < -1 {
            return invalid(format!("num_axes is {}, below -1", reshape.num_axes()));
        }
        if dim.iter().any(|&dim| dim < -1) || dim.iter().filter(|&&dim| dim == -1).count() > 1 {
            return invalid(format!("extents {dim:?} have to be positive, 0, or once -1"));
        }
        Ok(Self { param: reshape, alias: SharedTop::new(param) })
    }

    /// The axes to replace: the first, and one past the last.
    fn replaced(&self, axes: usize) -> Result<(usize, usize)> {
        let (axis, count) = (self.param.axis() as isize, self.param.num_axes());
        // A negative axis may also mean the place after the last.
        let start = if axis < 0 { axis + axes as isize + 1 } else { axis };
        let start = usize::try_from(start).ok().filter(|&start| start <= axes);
        let start = start.ok_or(Error::Axis { axis, axes })?;
        let end = usize::try_from(count).map_or(axes, |count| start + count);
        if end > axes {
            return Err(Error::Shape(format!(
                "there are no {count} axes from {axis} on of {axes}"
            )));
        }
        Ok((start, end))
    }

    /// Extents of the top.
    fn output(&self, shape: &Shape) -> Result<Vec<usize>> {
        let (start, end) = self.replaced(shape.len())?;
        let mut output = shape[..start].to_vec();
        let mut inferred = None;
        for (i, &dim) in extents(&self.param).iter().enumerate() {
            output.push(match dim {
                -1 => {
                    inferred = Some(start + i);
                    1
                }
                0 => *shape.get(start + i).ok_or_else(|| {
                    Error::Shape(format!("extent {i} is 0, but {shape} has no axis to copy there"))
                })?,
                dim => dim as usize,
            });
        }
        output.extend(&shape[end..]);
        let (count, others) = (shape.count(), Shape::new(&output)?.count());
        match inferred {
            Some(at) if others > 0 && count.is_multiple_of(others) => output[at] = count / others,
            None if others == count => {}
            _ => {
                let dim = extents(&self.param);
                return Err(Error::Shape(format!("shape {shape} does not reshape to {dim:?}")));
            }
        }
        Ok(output)
    }
}

/// The extents as given.
fn extents(param: &ReshapeParameter) -> &[i64] {
    param.shape.as_ref().map_or(&[], |shape| &shape.dim)
}

impl<T: Element, D: Device> Layer<T, D> for ReshapeLayer {
    fn kind(&self) -> &'static str {
        "Reshape"
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        top[0].reshape(&self.output(bottom[0].shape())?)?;
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

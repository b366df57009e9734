//! The Reshape layer, which changes the shape of a blob without copying.

use super::{prelude::*, shared_top::SharedTop};
use crate::{proto::ReshapeParameter, shape::Shape};

/// Replaces `num_axes` axes of the bottom's shape, from `axis` on, by the axes of `shape`. A
/// `num_axes` of −1 stands for all axes from `axis` on. In `shape`, 0 stands for the extent of the
/// bottom at the same position, and −1 stands for an extent that is inferred from the number of
/// elements.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 4 } } }
///     layer { type: "Reshape" bottom: "x" top: "y"
///       reshape_param { shape { dim: 0 dim: 2 dim: -1 } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().shape().to_vec(), [2, 2, 6]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ReshapeLayer {
    param: ReshapeParameter,
    shared_top: SharedTop,
}

impl ReshapeLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if an extent or `num_axes` is below −1, or if two extents are
    /// −1.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let reshape = param.reshape_param.clone().unwrap_or_default();
        let dim = extents(&reshape);
        if reshape.num_axes() < -1 {
            let axes = reshape.num_axes();
            return invalid(format!("reshape_param: num_axes must be -1 or more, found {axes}"));
        }
        if dim.iter().any(|&dim| dim < -1) || dim.iter().filter(|&&dim| dim == -1).count() > 1 {
            return invalid(format!(
                "reshape_param: dim must hold positive values, 0, or -1 once, found {dim:?}"
            ));
        }
        Ok(Self { param: reshape, shared_top: SharedTop::new(param) })
    }

    /// Returns the index of the first axis to replace, and the index one past the last axis to
    /// replace.
    fn replaced_axes(&self, axes: usize) -> Result<(usize, usize)> {
        let (axis, count) = (self.param.axis() as isize, self.param.num_axes());
        // An `axis` of −1 stands for the position after the last axis.
        let start = if axis < 0 { axis + axes as isize + 1 } else { axis };
        let start = usize::try_from(start).ok().filter(|&start| start <= axes);
        let start = start.ok_or(Error::Axis { axis, axes })?;
        let end = usize::try_from(count).map_or(axes, |count| start + count);
        if end > axes {
            return wrong_shape(format!(
                "a shape of {axes} axes does not have {count} axes from axis {axis} on"
            ));
        }
        Ok((start, end))
    }

    fn output(&self, shape: &Shape) -> Result<Vec<usize>> {
        let (start, end) = self.replaced_axes(shape.len())?;
        let mut output = shape[..start].to_vec();
        let mut inferred_axis = None;
        for (i, &dim) in extents(&self.param).iter().enumerate() {
            output.push(match dim {
                -1 => {
                    inferred_axis = Some(start + i);
                    1
                }
                0 => *shape.get(start + i).ok_or_else(|| {
                    Error::Shape(format!("dim {i} is 0, but {shape} has no axis {}", start + i))
                })?,
                dim => dim as usize,
            });
        }
        output.extend(&shape[end..]);
        let (count, output_count) = (shape.count(), Shape::new(&output)?.count());
        match inferred_axis {
            Some(i) if output_count > 0 && count.is_multiple_of(output_count) => {
                output[i] = count / output_count;
            }
            None if output_count == count => {}
            _ => {
                let dim = extents(&self.param);
                return wrong_shape(format!("shape {shape} does not reshape to {dim:?}"));
            }
        }
        Ok(output)
    }
}

fn extents(param: &ReshapeParameter) -> &[i64] {
    param.shape.as_ref().map_or(&[], |shape| &shape.dim)
}

impl<T: Element> Layer<T> for ReshapeLayer {
    fn kind(&self) -> &'static str {
        "Reshape"
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        top[0].reshape(&self.output(bottom[0].shape())?)?;
        self.shared_top.share(&bottom[0], &mut top[0])
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], _: &[Blob<T>]) -> Result<()> {
        Ok(())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        SharedTop::backward(device, &top[0], &bottom[0])
    }
}

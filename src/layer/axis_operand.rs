//! The operand that the Scale and Bias layers broadcast over the first bottom.

use super::prelude::*;
use crate::{op::Axis, shape::Shape};

/// The axes of the first bottom that the operand covers, that is, along which the operand is not
/// broadcast.
#[derive(Clone, Copy)]
pub(super) struct AxisOperand {
    pub(super) axis: i32,
    /// The number of axes that a learned operand covers; −1 stands for all axes from `axis` on.
    pub(super) num_axes: i32,
}

impl AxisOperand {
    pub(super) fn shape<'a>(&self, x: &'a Shape) -> Result<&'a [usize]> {
        let (num_axes, start) = (self.num_axes, x.canonical_axis(self.axis as isize)?);
        let end = match usize::try_from(num_axes) {
            Ok(num_axes) => start + num_axes,
            Err(_) if num_axes == -1 => x.len(),
            Err(_) => {
                return invalid(format!("num_axes: expected -1 or more, found {num_axes}"));
            }
        };
        x.get(start..end).ok_or_else(|| {
            Error::Shape(format!("shape {x} does not have {num_axes} axes from axis {start} on"))
        })
    }

    /// Returns the axes of `x` that an operand of shape `operand` covers, as one merged axis.
    pub(super) fn axis(&self, x: &Shape, operand: &Shape) -> Result<Axis> {
        let start = if operand.is_empty() { 0 } else { x.canonical_axis(self.axis as isize)? };
        let end = start + operand.len();
        if x.get(start..end) != Some(&operand[..]) {
            return wrong_shape(format!(
                "operand of shape {operand} does not fit shape {x} at axis {start}"
            ));
        }
        let (outer, inner) = (x.count_range(0, start)?, x.count_range(end, x.len())?);
        Axis::new(outer, operand.count(), inner)
    }
}

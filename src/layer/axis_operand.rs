//! An operand along some axes of a layer's input: that of Scale and of Bias.

use crate::{
    error::{Error, Result},
    op::Axis,
    shape::Shape,
};

/// Which axes of the first bottom an operand lies along.
#[derive(Clone, Copy)]
pub(super) struct AxisOperand {
    /// The first of them.
    pub(super) axis: i32,
    /// How many, if the operand is learned; −1 for all there are.
    pub(super) num_axes: i32,
}

impl AxisOperand {
    /// The shape of an operand that is learned.
    pub(super) fn shape<'a>(&self, x: &'a Shape) -> Result<&'a [usize]> {
        let start = x.canonical_axis(self.axis as isize)?;
        let end = match self.num_axes {
            -1 => x.len(),
            num_axes => match usize::try_from(num_axes) {
                Ok(num_axes) => start + num_axes,
                Err(_) => {
                    return Err(Error::InvalidData(format!("num_axes {num_axes} is below -1")));
                }
            },
        };
        let beyond = || {
            let why = format!("{} axes from {start} on reach past shape {x}", self.num_axes);
            Error::Shape(why)
        };
        x.get(start..end).ok_or_else(beyond)
    }

    /// The axes as one, along which an operand of shape `operand` lies.
    pub(super) fn axis(&self, x: &Shape, operand: &Shape) -> Result<Axis> {
        let start = if operand.is_empty() { 0 } else { x.canonical_axis(self.axis as isize)? };
        let end = start + operand.len();
        if x.get(start..end) != Some(&operand[..]) {
            let why =
                format!("an operand of shape {operand} does not fit shape {x} at axis {start}");
            return Err(Error::Shape(why));
        }
        let (outer, inner) = (x.count_range(0, start)?, x.count_range(end, x.len())?);
        Axis::new(outer, operand.count(), inner)
    }
}

//! One axis of a shape, with what lies before and after it.

use crate::{
    error::{Error, Result},
    shape::Shape,
};

/// Operand viewed as `outer × extent × inner`, row-major: the axis a kernel works along, the
/// product of the axes before it and that of the axes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Product of the extents before the axis.
    pub outer: usize,
    /// Extent of the axis.
    pub extent: usize,
    /// Product of the extents after the axis.
    pub inner: usize,
}

impl Axis {
    /// From its three extents.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] if their product overflows.
    pub fn new(outer: usize, extent: usize, inner: usize) -> Result<Self> {
        Shape::new(&[outer, extent, inner])?;
        Ok(Self { outer, extent, inner })
    }

    /// Axis `axis` of `shape`; negative ones count from the end.
    ///
    /// # Errors
    /// [`Error::Axis`] if there is no such axis.
    pub fn of(shape: &Shape, axis: isize) -> Result<Self> {
        let (outer, extent, inner) = shape.split_at_axis(axis)?;
        Ok(Self { outer, extent, inner })
    }

    /// Elements in all: `outer · extent · inner`.
    pub fn count(&self) -> usize {
        self.outer * self.extent * self.inner
    }

    /// Elements that remain once the axis is reduced away: `outer · inner`.
    pub fn rest(&self) -> usize {
        self.outer * self.inner
    }

    /// As [`Axis::new`] but fails on an axis of extent zero, along which there is nothing to
    /// take a maximum of.
    pub(crate) fn expect_non_empty(&self, op: &'static str) -> Result<()> {
        if self.extent == 0 && self.rest() != 0 {
            return Err(Error::value(op, "the axis has no elements"));
        }
        Ok(())
    }
}

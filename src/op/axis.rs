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

    /// Elements in all: `outer · extent · inner`; of extents that [`new`](Self::new) refuses
    /// `usize::MAX`, which no operand has.
    pub fn count(&self) -> usize {
        if self.fits() { self.outer * self.extent * self.inner } else { usize::MAX }
    }

    /// Elements that remain once the axis is reduced away: `outer · inner`; `usize::MAX` as
    /// [`count`](Self::count).
    pub fn reduced_count(&self) -> usize {
        if self.fits() { self.outer * self.inner } else { usize::MAX }
    }

    /// Whether [`Shape::new`] would take the extents.
    fn fits(&self) -> bool {
        let [outer, extent, inner] = [self.outer, self.extent, self.inner].map(|by| by.max(1));
        let product = outer.checked_mul(extent).and_then(|product| product.checked_mul(inner));
        product.is_some_and(|product| product <= isize::MAX as usize / 16)
    }

    /// As [`Axis::new`] but fails on an axis of extent zero, along which there is nothing to
    /// take a maximum of.
    pub(crate) fn check_non_empty(&self, op: &'static str) -> Result<()> {
        if self.extent == 0 && self.reduced_count() != 0 {
            return Err(Error::invalid_input(op, "the axis has no elements"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_new_refuses_counts_more_than_any_operand_has() {
        for [outer, extent, inner] in
            [[1 << 32, 1 << 32, 1], [usize::MAX, 2, 0], [0, 1 << 40, 1 << 40], [1 << 60, 1, 1]]
        {
            assert!(Axis::new(outer, extent, inner).is_err());
            let axis = Axis { outer, extent, inner };
            assert_eq!((axis.count(), axis.reduced_count()), (usize::MAX, usize::MAX), "{axis:?}");
        }
        for [outer, extent, inner] in [[2, 3, 5], [1 << 58, 0, 1], [0, 7, 2], [1 << 57, 2, 1]] {
            let axis = Axis::new(outer, extent, inner).unwrap();
            assert_eq!(
                (axis.count(), axis.reduced_count()),
                (outer * extent * inner, outer * inner)
            );
        }
    }
}

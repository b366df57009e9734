//! One axis of a row-major shape, with the products of the extents of the axes before and after it.

use crate::{
    error::{Error, Result, check_len},
    shape::Shape,
};

/// View of a row-major operand as `outer × extent × inner`, for kernels that work along `extent`.
///
/// ```
/// use cortado::{Shape, op::Axis};
///
/// let images = Shape::new(&[2, 3, 4, 5])?; // batch × channels × height × width
/// let channels = Axis::of(&images, 1)?;
/// assert_eq!(channels, Axis { outer: 2, extent: 3, inner: 20 });
/// assert_eq!((channels.count(), channels.reduced_count()), (120, 40));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Product of the extents of the axes before this axis.
    pub outer: usize,
    /// Extent of the axis.
    pub extent: usize,
    /// Product of the extents of the axes after this axis.
    pub inner: usize,
}

impl Axis {
    /// Creates an `Axis` from the three factors of an operand's shape.
    ///
    /// # Errors
    /// Returns [`Error::ShapeOverflow`] if the product of the three factors overflows.
    pub fn new(outer: usize, extent: usize, inner: usize) -> Result<Self> {
        Shape::new(&[outer, extent, inner])?;
        Ok(Self { outer, extent, inner })
    }

    /// Returns the axis of `shape` with index `axis`. A negative index counts from the last axis.
    ///
    /// # Errors
    /// Returns [`Error::Axis`] if `shape` has no axis with this index.
    pub fn of(shape: &Shape, axis: isize) -> Result<Self> {
        let (outer, extent, inner) = shape.split_at_axis(axis)?;
        Ok(Self { outer, extent, inner })
    }

    /// Returns the number of elements of the operand, `outer · extent · inner`. If
    /// [`new`](Self::new) would reject the factors, returns `usize::MAX`, which no operand's length
    /// can equal.
    pub fn count(&self) -> usize {
        if self.has_valid_count() { self.outer * self.extent * self.inner } else { usize::MAX }
    }

    /// Returns the number of elements that are left after a reduction along the axis, `outer ·
    /// inner`. Returns `usize::MAX` in the same cases as [`count`](Self::count).
    pub fn reduced_count(&self) -> usize {
        if self.has_valid_count() { self.outer * self.inner } else { usize::MAX }
    }

    /// Returns whether [`Shape::new`] would accept `outer`, `extent` and `inner`.
    fn has_valid_count(&self) -> bool {
        let [outer, extent, inner] = [self.outer, self.extent, self.inner].map(|n| n.max(1));
        let product = outer.checked_mul(extent).and_then(|product| product.checked_mul(inner));
        product.is_some_and(|product| product <= isize::MAX as usize / 16)
    }

    /// Fails unless every operand in `operands` has `outer · extent · inner` elements.
    pub(crate) fn check_counts(
        &self,
        op: &'static str,
        operands: &[(&'static str, usize)],
    ) -> Result<()> {
        operands.iter().try_for_each(|&(name, len)| check_len(op, name, self.count(), len))
    }

    /// Fails unless every operand in `operands` has `extent` elements.
    pub(crate) fn check_extents(
        &self,
        op: &'static str,
        operands: &[(&'static str, usize)],
    ) -> Result<()> {
        operands.iter().try_for_each(|&(name, len)| check_len(op, name, self.extent, len))
    }

    /// Fails unless the operand lengths of the kernel `affine` match the axis. `x` is `None` for an
    /// in-place call.
    pub(crate) fn check_affine(
        &self,
        x: Option<usize>,
        scale: usize,
        shift: usize,
        y: usize,
    ) -> Result<()> {
        check_len("affine", "x", self.count(), x.unwrap_or(self.count()))?;
        self.check_extents("affine", &[("scale", scale), ("shift", shift)])?;
        check_len("affine", "y", self.count(), y)
    }

    /// Fails unless the operand lengths of the kernel `arg_max` match the axis. Also fails if the
    /// axis has extent 0 and `y` is not empty, or if the extent does not fit in a `u32`.
    pub(crate) fn check_arg_max(&self, x: usize, y: usize) -> Result<()> {
        check_len("arg_max", "x", self.count(), x)?;
        check_len("arg_max", "y", self.reduced_count(), y)?;
        self.check_non_empty("arg_max")?;
        if u32::try_from(self.extent).is_err() {
            let reason = format!("axis extent {} exceeds {}", self.extent, u32::MAX);
            return Err(Error::invalid_input("arg_max", reason));
        }
        Ok(())
    }

    /// Fails unless the operand lengths of the kernel `moments` match the axis. Also fails if
    /// `mean` is not empty, but each mean would be over zero elements.
    pub(crate) fn check_moments(&self, x: usize, mean: usize, variance: usize) -> Result<()> {
        check_len("moments", "x", self.count(), x)?;
        self.check_extents("moments", &[("mean", mean), ("variance", variance)])?;
        if self.extent != 0 && self.reduced_count() == 0 {
            return Err(Error::invalid_input("moments", "no elements to average"));
        }
        Ok(())
    }

    /// Fails if the axis has extent 0 and the result of the reduction along the axis is not empty,
    /// because zero elements have no maximum or minimum.
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
    fn the_count_of_an_axis_that_overflows_is_usize_max() {
        const BITS: u32 = usize::BITS;
        let (root, long) = (1 << (BITS / 2), 1 << (BITS / 2 + 8));
        for [outer, extent, inner] in
            [[root, root, 1], [usize::MAX, 2, 0], [0, long, long], [1 << (BITS - 4), 1, 1]]
        {
            assert!(Axis::new(outer, extent, inner).is_err());
            let axis = Axis { outer, extent, inner };
            assert_eq!((axis.count(), axis.reduced_count()), (usize::MAX, usize::MAX), "{axis:?}");
        }
        for [outer, extent, inner] in
            [[2, 3, 5], [1 << (BITS - 6), 0, 1], [0, 7, 2], [1 << (BITS - 7), 2, 1]]
        {
            let axis = Axis::new(outer, extent, inner).unwrap();
            assert_eq!(
                (axis.count(), axis.reduced_count()),
                (outer * extent * inner, outer * inner)
            );
        }
    }
}

//! Shapes of blobs, with overflow-checked counts, axes and offsets.

use crate::error::{Error, Result};
use std::{fmt, ops::Deref};

/// The maximum number of axes of a shape, as in Caffe.
pub const MAX_AXES: usize = 32;

/// The extents of a blob, outermost first. The product of a shape's extents never overflows.
///
/// A `Shape` dereferences to `[usize]`. A shape without axes has one element; a shape with an
/// extent of 0 has no elements.
///
/// ```
/// use cortado::Shape;
///
/// let images = Shape::new(&[64, 3, 28, 28])?;
/// assert_eq!((images.len(), images.count()), (4, 150_528));
/// assert_eq!(images.canonical_axis(-1)?, 3);
/// assert_eq!(images.offset(&[1, 0, 0, 2])?, 3 * 28 * 28 + 2);
/// assert_eq!(images.to_string(), "[64, 3, 28, 28]");
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    extents: Vec<usize>,
    count: usize,
}

impl Shape {
    /// Creates a shape with the given extents.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] for more than [`MAX_AXES`] axes, or if an array of this shape with
    /// 16-byte elements would exceed `isize::MAX` bytes.
    #[doc(alias = "Reshape")]
    pub fn new(extents: &[usize]) -> Result<Self> {
        let too_large_error = |reason| Error::ShapeOverflow { shape: extents.to_vec(), reason };
        if extents.len() > MAX_AXES {
            return Err(too_large_error("more than 32 axes"));
        }
        // The overflow check skips extents of 0, so that no partial product, such as a stride,
        // overflows either.
        let product = extents
            .iter()
            .filter(|&&extent| extent != 0)
            .try_fold(1usize, |product, &extent| product.checked_mul(extent))
            .filter(|&product| product <= isize::MAX as usize / 16)
            .ok_or_else(|| too_large_error("the number of elements overflows"))?;
        let count = if extents.contains(&0) { 0 } else { product };
        Ok(Self { extents: extents.to_vec(), count })
    }

    /// Returns the number of elements of a blob of this shape.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the product of the extents of the axes `start..end`; 1 for an empty range.
    ///
    /// # Errors
    /// [`Error::Range`] unless `start ≤ end ≤ axes`.
    pub fn count_range(&self, start: usize, end: usize) -> Result<usize> {
        let len = self.extents.len();
        let axes = self.extents.get(start..end);
        let axes = axes.ok_or(Error::Range { what: "a shape's axes", start, end, len })?;
        Ok(axes.iter().product())
    }

    /// Returns the non-negative index of `axis`. A negative `axis` counts from the end.
    ///
    /// # Errors
    /// [`Error::Axis`] unless `-axes ≤ axis < axes`.
    #[doc(alias = "CanonicalAxisIndex")]
    pub fn canonical_axis(&self, axis: isize) -> Result<usize> {
        let axes = self.extents.len();
        let index = if axis < 0 { axis + axes as isize } else { axis };
        match usize::try_from(index) {
            Ok(index) if index < axes => Ok(index),
            _ => Err(Error::Axis { axis, axes }),
        }
    }

    /// Returns the product of the extents before `axis`, the extent of `axis`, and the product of
    /// the extents after `axis`. A negative `axis` counts from the end.
    ///
    /// # Errors
    /// [`Error::Axis`] if `axis` is out of range.
    pub fn split_at_axis(&self, axis: isize) -> Result<(usize, usize, usize)> {
        let axis = self.canonical_axis(axis)?;
        let inner = self.extents[axis + 1..].iter().product();
        Ok((self.extents[..axis].iter().product(), self.extents[axis], inner))
    }

    /// Returns the offset of the element at `indices`; missing trailing indices count as 0.
    ///
    /// # Errors
    /// [`Error::Shape`] for too many indices, for an index that is not below the extent of the axis, or
    /// for a shape without elements.
    pub fn offset(&self, indices: &[usize]) -> Result<usize> {
        let is_inside = indices.len() <= self.extents.len()
            && !self.extents.contains(&0)
            && indices.iter().zip(&self.extents).all(|(&index, &extent)| index < extent);
        if !is_inside {
            return Err(Error::Shape(format!(
                "indices {indices:?} are out of range in shape {self}"
            )));
        }
        let padded_indices = indices.iter().copied().chain(std::iter::repeat(0));
        Ok(self
            .extents
            .iter()
            .zip(padded_indices)
            .fold(0, |sum, (&extent, index)| sum * extent + index))
    }

    /// Returns the extent of `axis` of a shape with at most four axes, or 1 if the axis is missing.
    /// Axes 0 to 3 are num, channels, height and width; axes −4 to −1 count from the end.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape has more than four axes; [`Error::Axis`] unless `-4 ≤ axis <
    /// 4`.
    #[doc(alias = "LegacyShape")]
    pub fn legacy(&self, axis: isize) -> Result<usize> {
        let axes = self.extents.len();
        if axes > 4 {
            return Err(Error::Shape(format!("shape {self} has more than 4 axes")));
        }
        if !(-4..4).contains(&axis) {
            return Err(Error::Axis { axis, axes: 4 });
        }
        Ok(self.canonical_axis(axis).map_or(1, |axis| self.extents[axis]))
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.extents
    }
}

impl fmt::Display for Shape {
    /// Formats a shape as the list of its extents, such as `[64, 1, 28, 28]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.extents)
    }
}

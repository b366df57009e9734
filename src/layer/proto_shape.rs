//! Shapes out of definitions.

use crate::{
    error::{Error, Result},
    proto::BlobShape,
    shape::Shape,
};

/// The shape that a message gives.
///
/// # Errors
/// [`Error::InvalidData`] for a negative extent; [`Error::ShapeOverflow`].
pub(super) fn shape(proto: &BlobShape) -> Result<Shape> {
    let negative = |_| Error::InvalidData(format!("negative extent in shape {:?}", proto.dim));
    let extents = proto.dim.iter().map(|&dim| usize::try_from(dim).map_err(negative));
    Shape::new(&extents.collect::<Result<Vec<_>>>()?)
}

/// The axis that either of two fields gives: `axis`, which may be negative, or an older one.
///
/// # Errors
/// [`Error::InvalidData`] if both are given.
pub(super) fn axis(axis: Option<i32>, (older, value): (&str, Option<u32>)) -> Result<isize> {
    match (axis, value) {
        (Some(_), Some(_)) => Err(Error::InvalidData(format!(
            "give either axis or {older}, which is older, not both"
        ))),
        (Some(axis), None) => Ok(axis as isize),
        (None, Some(value)) => Ok(value as isize),
        (None, None) => Ok(1),
    }
}

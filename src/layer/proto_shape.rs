//! Conversion of the shape and axis fields of layer parameters from protobuf messages.

use super::prelude::*;
use crate::{proto::BlobShape, shape::Shape};

/// Converts a `BlobShape` message to a shape.
///
/// # Errors
/// Returns [`Error::InvalidData`] if an extent is negative, and [`Error::ShapeOverflow`] if the
/// number of elements overflows.
pub(super) fn shape(proto: &BlobShape) -> Result<Shape> {
    let negative_extent =
        |_| Error::InvalidData(format!("negative extent in shape {:?}", proto.dim));
    let extents = proto.dim.iter().map(|&dim| usize::try_from(dim).map_err(negative_extent));
    Shape::new(&extents.collect::<Result<Vec<_>>>()?)
}

/// Returns `axis`, the value of the field `axis`, or `older`, the value of the older field that
/// Caffe calls `name`. The value of `axis` may be negative. Returns 1 if neither `axis` nor the
/// older field is set.
///
/// # Errors
/// Returns [`Error::InvalidData`] if both `axis` and the older field are set.
pub(super) fn axis(axis: Option<i32>, (name, older): (&str, Option<u32>)) -> Result<isize> {
    match (axis, older) {
        (Some(_), Some(_)) => invalid(format!("axis and the older {name} are mutually exclusive")),
        (Some(axis), None) => Ok(axis as isize),
        (None, Some(older)) => Ok(older as isize),
        (None, None) => Ok(1),
    }
}

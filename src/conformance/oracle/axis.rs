//! Indices of the elements along an axis of an operand, and of the elements at one position of the
//! axis.

use crate::op::Axis;

/// Returns, for each outer and inner index, the indices of the elements along the axis.
pub(super) fn lines(axis: &Axis) -> impl Iterator<Item = Vec<usize>> {
    let Axis { extent, inner, .. } = *axis;
    (0..axis.reduced_count()).map(move |line| {
        let start = line / inner * extent * inner + line % inner;
        (0..extent).map(|e| start + e * inner).collect()
    })
}

/// Returns the indices of the elements at position `e` of the axis, for all outer and inner
/// indices.
pub(super) fn slice(axis: &Axis, e: usize) -> impl Iterator<Item = usize> + Clone {
    let Axis { extent, inner, .. } = *axis;
    (0..axis.reduced_count()).map(move |line| (line / inner * extent + e) * inner + line % inner)
}

//! Plane lengths, task sizes and index ranges of windows, for the pooling kernels.

use crate::{
    error::{Error, Result},
    host::threads::Workers,
    op::Pool2d,
};
use std::ops::Range;

/// Approximate number of input elements in one pooling task, which consists of whole planes. With
/// fewer than `2 · GRAIN` elements, two threads are not faster than one.
pub(crate) const GRAIN: usize = 1 << 16;

/// Returns the number of elements of an input plane and of an output plane.
pub(crate) fn plane_lens(op: &Pool2d) -> (usize, usize) {
    let area = |[height, width]: [usize; 2]| height * width;
    (area(op.input), area(op.output()))
}

/// Returns the number of planes in one task. Tasks of this size divide the planes evenly among the
/// threads.
pub(crate) fn planes_per_task(workers: &Workers, op: &Pool2d) -> usize {
    workers.even_units(op.planes, plane_lens(op).0, GRAIN)
}

/// Fails unless every index of an input plane fits into the `i32` elements of the mask.
pub(crate) fn check_mask_range(name: &'static str, op: &Pool2d) -> Result<()> {
    let (len, max) = (plane_lens(op).0, i32::MAX);
    if i32::try_from(len).is_ok() {
        return Ok(());
    }
    Err(Error::invalid_input(
        name,
        format!("input plane has {len} elements, expected at most {max}"),
    ))
}

/// Returns the input elements of `window` as ranges of the input plane.
pub(crate) fn window_ranges(op: &Pool2d, window: usize) -> impl Iterator<Item = Range<usize>> {
    let clipped_range = |axis: usize, p: usize| {
        let start = p * op.stride[axis];
        let end =
            start.saturating_add(op.kernel[axis]).saturating_sub(op.pad[axis]).min(op.input[axis]);
        start.saturating_sub(op.pad[axis]).min(end)..end
    };
    let ([_, out_width], [_, width]) = (op.output(), op.input);
    let (rows, columns) =
        (clipped_range(0, window / out_width), clipped_range(1, window % out_width));
    // Consecutive rows that span the full width of the plane form one range.
    let (ranges, height) = match columns.len() == width {
        true => (usize::from(!rows.is_empty()), rows.len()),
        false => (rows.len(), 1),
    };
    (0..ranges).map(move |range| {
        let start = (rows.start + range) * width;
        start + columns.start..start + (height - 1) * width + columns.end
    })
}

//! Two-dimensional pooling.
//!
//! Many windows are computed at once, each tap by tap in row-major order: see [`PolyphasePlane`].

use crate::{
    element::Element,
    host::{
        cache::scratch::with_scratch,
        nn::polyphase::{LANES, PolyphasePlane},
        simd::accumulator::is_wide,
    },
    op::Pool2d,
};
use std::ops::Range;

/// Elements of one task: below twice this, a second thread costs more than it saves.
pub(crate) const GRAIN: usize = 1 << 16;

/// Elements of an input plane and of an output plane.
pub(crate) fn planes(op: &Pool2d) -> (usize, usize) {
    let area = |[height, width]: [usize; 2]| height * width;
    (area(op.input), area(op.output()))
}

pub(crate) fn planes_per_task(op: &Pool2d) -> usize {
    (GRAIN / planes(op).0.max(1)).max(1)
}

/// What window `window` covers of an input plane, as runs of it.
pub(crate) fn runs(op: &Pool2d, window: usize) -> impl Iterator<Item = Range<usize>> {
    let clipped = |axis: usize, p: usize| {
        let start = p * op.stride[axis];
        let end =
            start.saturating_add(op.kernel[axis]).saturating_sub(op.pad[axis]).min(op.input[axis]);
        start.saturating_sub(op.pad[axis]).min(end)..end
    };
    let ([_, out], [_, width]) = (op.output(), op.input);
    let (rows, columns) = (clipped(0, window / out), clipped(1, window % out));
    // Whole rows are one run.
    let (runs, height) = match columns.len() == width {
        true => (usize::from(!rows.is_empty()), rows.len()),
        false => (rows.len(), 1),
    };
    (0..runs).map(move |run| {
        let start = (rows.start + run) * width;
        start + columns.start..start + (height - 1) * width + columns.end
    })
}

/// Calls `body` with room to widen an input plane, where it must be, for a rearranged plane and
/// for a value of each window.
pub(crate) fn with_rooms<T: Element>(
    op: &Pool2d,
    tiling: &PolyphasePlane,
    body: impl FnOnce(&mut [T::Acc], &mut [T::Acc], &mut [T::Acc]),
) {
    let wide = if is_wide::<T>() { 0 } else { planes(op).0 };
    with_scratch(wide + tiling.len() + tiling.window_slots(), |room: &mut [T::Acc]| {
        let (room_x, room) = room.split_at_mut(wide);
        let (tiled, values) = room.split_at_mut(tiling.len());
        body(room_x, tiled, values);
    });
}

#[inline(always)]
pub(crate) fn lanes<A>(x: &[A], at: usize) -> &[A; LANES] {
    x[at..].first_chunk().expect("a tiling has room for whole lanes")
}

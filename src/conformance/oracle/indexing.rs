//! Moving elements about.

use crate::{
    conformance::values::Expected,
    op::{Copy2d, Permute, Tile},
};

/// `y` with the block of `x` copied into it.
pub(in crate::conformance) fn copy_2d<T: Copy>(op: &Copy2d, x: &[T], y: &[T]) -> Vec<T> {
    let mut y = y.to_vec();
    for (r, c) in (0..op.rows).flat_map(|r| (0..op.columns).map(move |c| (r, c))) {
        y[r * op.ldy + c] = x[r * op.ldx + c];
    }
    y
}

/// The rows of `table` that `indices` name.
pub(in crate::conformance) fn gather<T: Copy>(
    table: &[T],
    width: usize,
    indices: &[u32],
) -> Vec<T> {
    let row = |&row: &u32| table[row as usize * width..][..width].iter().copied();
    indices.iter().flat_map(row).collect()
}

/// `table` with the rows of `y` added in order, each sum rounded by `round`.
pub(in crate::conformance) fn scatter_add(
    table: &[f64],
    width: usize,
    indices: &[u32],
    y: &[f64],
    round: impl Fn(f64) -> f64,
) -> Vec<f64> {
    let mut table = table.to_vec();
    for (i, &y) in y.iter().enumerate() {
        let at = indices[i / width] as usize * width + i % width;
        table[at] = round(table[at] + y);
    }
    table
}

/// `x` with its axes in another order.
pub(in crate::conformance) fn permute<T: Copy>(op: &Permute, x: &[T]) -> Vec<T> {
    let extents = op.output();
    let source = |mut at: usize| {
        let mut index = vec![0; extents.len()];
        for (axis, &extent) in extents.iter().enumerate().rev() {
            index[op.order()[axis]] = at % extent;
            at /= extent;
        }
        index.iter().zip(op.shape().iter()).fold(0, |place, (&i, &extent)| place * extent + i)
    };
    (0..x.len()).map(|at| x[source(at)]).collect()
}

/// Place in `x` of element `at` of its repetition.
fn tiled(op: &Tile, at: usize) -> usize {
    at / (op.tiles * op.inner) * op.inner + at % op.inner
}

/// `x` repeated.
pub(in crate::conformance) fn tile<T: Copy>(op: &Tile, x: &[T]) -> Vec<T> {
    (0..op.outer * op.tiles * op.inner).map(|at| x[tiled(op, at)]).collect()
}

/// `dy` summed over its repetitions.
pub(in crate::conformance) fn tile_backward(op: &Tile, dy: &[f64]) -> Vec<Expected> {
    let mut dx = vec![Expected::none(); op.outer * op.inner];
    dy.iter().enumerate().for_each(|(at, &dy)| dx[tiled(op, at)].add(dy));
    dx
}

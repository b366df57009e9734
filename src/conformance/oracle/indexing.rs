//! Oracles for copies, gather and scatter, permutation and tiling.

use crate::{
    conformance::expected::Expected,
    op::{Copy2d, Permute, Tile},
};

/// Returns a copy of `y` into which a block of `x` has been copied.
pub(crate) fn copy_2d<T: Copy>(op: &Copy2d, x: &[T], y: &[T]) -> Vec<T> {
    let mut y = y.to_vec();
    for (r, c) in (0..op.rows).flat_map(|r| (0..op.columns).map(move |c| (r, c))) {
        y[r * op.ldy + c] = x[r * op.ldx + c];
    }
    y
}

/// Returns the rows of `table` at `indices`.
pub(crate) fn gather<T: Copy>(table: &[T], width: usize, indices: &[u32]) -> Vec<T> {
    let row = |&row: &u32| table[row as usize * width..][..width].iter().copied();
    indices.iter().flat_map(row).collect()
}

/// Returns `table` after the rows of `y` have been added, in order, to the rows that `indices`
/// name. `round` rounds each sum to the element type.
pub(crate) fn scatter_add(
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

/// Returns `x` with its axes permuted.
pub(crate) fn permute<T: Copy>(op: &Permute, x: &[T]) -> Vec<T> {
    let extents = op.output();
    let source = |mut at: usize| {
        let mut index = vec![0; extents.len()];
        for (axis, &extent) in extents.iter().enumerate().rev() {
            index[op.order()[axis]] = at % extent;
            at /= extent;
        }
        index.iter().zip(op.shape().iter()).fold(0, |source, (&i, &extent)| source * extent + i)
    };
    (0..x.len()).map(|at| x[source(at)]).collect()
}

/// Returns the index in `x` of the element that `tile` copies to index `at` of the output.
fn tile_source(op: &Tile, at: usize) -> usize {
    at / (op.tiles * op.inner) * op.inner + at % op.inner
}

/// Returns `x` with each run of `inner` elements repeated `tiles` times.
pub(crate) fn tile<T: Copy>(op: &Tile, x: &[T]) -> Vec<T> {
    (0..op.outer * op.tiles * op.inner).map(|at| x[tile_source(op, at)]).collect()
}

/// Returns the gradient of `tile`, in which each element is the sum of `dy` over the element's
/// repetitions.
pub(crate) fn tile_backward(op: &Tile, dy: &[f64]) -> Vec<Expected> {
    let mut dx = vec![Expected::zero(); op.outer * op.inner];
    dy.iter().enumerate().for_each(|(at, &dy)| dx[tile_source(op, at)].add(dy));
    dx
}

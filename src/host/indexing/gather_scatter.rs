//! Copies of matrix blocks, gather and scatter of rows, and tiling.

use crate::{
    element::Element,
    error::{Error, Result, check_len},
    host::{
        blas::level1,
        cache::nontemporal::bypasses_cache,
        indexing::permute::GRAIN,
        simd::{
            accumulator::{
                AccumulatorBuffer, CHUNK, accumulator_buffer, overwrite_widened, update_widened,
                widened,
            },
            vectorized,
        },
        threads::Workers,
    },
    op::{Copy2d, RowIndexing, Tile},
};
use num_traits::Zero;

/// Largest number of tasks of [`scatter_add`]. With more tasks, `scatter_add` would not be faster,
/// because each task reads all indices.
const MAX_SCATTER_TASKS: usize = 8;

/// Number of contiguous elements below which [`tile_backward`] computes one element of `dx` at a
/// time.
const SHORT_RUN: usize = 16;

/// `y[r·ldy + c] ← x[r·ldx + c]` for every row `r` and column `c` of the block.
///
/// Elements of `y` outside the block do not change.
///
/// # Errors
/// [`Error::Length`] if an operand is too short; [`Error::InvalidInput`] if rows of one operand
/// overlap.
#[doc(alias = "caffe_copy")]
pub(crate) fn copy_2d<T: Element>(
    workers: &Workers,
    op: &Copy2d,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check(x.len(), y.len())?;
    let &Copy2d { rows, columns, ldx, ldy } = op;
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    if rows == 1
        || rows < workers.count()
        || bypasses_cache(2 * size_of_val(&y[..columns]), workers.count())
    {
        return (0..rows).try_for_each(|r| {
            level1::copy(workers, &x[r * ldx..][..columns], &mut y[r * ldy..][..columns])
        });
    }
    let rows_per_task = workers.even_chunk_len(rows, rows_per_task(columns), 1);
    let y = &mut y[..(rows - 1) * ldy + columns];
    workers.for_each_chunk(y, rows_per_task * ldy, |task, y| {
        for (r, y) in y.chunks_mut(ldy).enumerate() {
            y[..columns].copy_from_slice(&x[(task * rows_per_task + r) * ldx..][..columns]);
        }
    });
    Ok(())
}

/// `y[i, :] ← table[indices[i], :]`.
///
/// # Errors
/// [`Error::Length`] if an operand has the wrong length; [`Error::InvalidInput`] if an index is
/// beyond the end of the table. After an error, `y` is unchanged.
pub(crate) fn gather<T: Element>(
    workers: &Workers,
    op: &RowIndexing,
    table: &[T],
    indices: &[u32],
    y: &mut [T],
) -> Result<()> {
    let lens = (table.len(), indices.len(), y.len());
    op.check("gather", ("table", lens.0), ("indices", lens.1), ("y", lens.2))?;
    check_indices("gather", op, indices)?;
    let width = op.width;
    if width == 0 {
        return Ok(());
    }
    let rows_per_task = rows_per_task(width);
    workers.for_each_chunk(y, rows_per_task * width, |task, y| {
        for (y, &row) in y.chunks_exact_mut(width).zip(&indices[task * rows_per_task..]) {
            y.copy_from_slice(&table[row as usize * width..][..width]);
        }
    });
    Ok(())
}

/// `table[indices[i], :] ← table[indices[i], :] + y[i, :]`, for `i` in ascending order.
///
/// Each sum is computed in `T::Acc` and rounded to `T` before the next term is added. If an index
/// occurs more than once, its additions take place in ascending order of `i`.
///
/// # Errors
/// [`Error::Length`] if an operand has the wrong length; [`Error::InvalidInput`] if an index is
/// beyond the end of the table. After an error, `table` is unchanged.
pub(crate) fn scatter_add<T: Element>(
    workers: &Workers,
    op: &RowIndexing,
    y: &[T],
    indices: &[u32],
    table: &mut [T],
) -> Result<()> {
    let lens = (table.len(), indices.len(), y.len());
    op.check("scatter_add", ("table", lens.0), ("indices", lens.1), ("y", lens.2))?;
    check_indices("scatter_add", op, indices)?;
    let width = op.width;
    if width == 0 {
        return Ok(());
    }
    // Each task updates a separate range of table rows, so that the additions to a row take place
    // in the order in which `indices` lists the row.
    let tasks = (y.len() / GRAIN).clamp(1, MAX_SCATTER_TASKS);
    let rows_per_task = op.table.div_ceil(tasks);
    workers.for_each_chunk(table, rows_per_task * width, |task, table| {
        let first_row = task * rows_per_task;
        vectorized(
            #[inline(always)]
            |_| {
                let mut buffers = (accumulator_buffer(), accumulator_buffer());
                for (&row, y) in indices.iter().zip(y.chunks_exact(width)) {
                    let start = (row as usize).wrapping_sub(first_row).saturating_mul(width);
                    if let Some(row) = table.get_mut(start..start.saturating_add(width)) {
                        add(y, row, &mut buffers);
                    }
                }
            },
        );
    });
    Ok(())
}

/// `yᵢ ← xᵢ`: converts labels `x`, which must be integers in `0..bound`, to indices.
///
/// # Errors
/// [`Error::Length`] if an operand has the wrong length; [`Error::InvalidInput`] names the first
/// element of `x` that is not an integer in `0..bound`.
pub(crate) fn to_indices<T: Element>(
    _: &Workers,
    bound: u32,
    x: &[T],
    y: &mut [u32],
) -> Result<()> {
    check_len("to_indices", "y", x.len(), y.len())?;
    for (i, (y, x)) in y.iter_mut().zip(x).enumerate() {
        let value = x.to_f64();
        if !(value >= 0.0 && value < f64::from(bound) && value.fract() == 0.0) {
            let reason = format!("x[{i}] is {value}, expected an integer in 0..{bound}");
            return Err(Error::invalid_input("to_indices", reason));
        }
        *y = value as u32;
    }
    Ok(())
}

/// `y[o, t, i] ← x[o, i]` for every tile `t`.
///
/// # Errors
/// [`Error::Length`] if an operand has the wrong length.
pub(crate) fn tile<T: Element>(workers: &Workers, op: &Tile, x: &[T], y: &mut [T]) -> Result<()> {
    op.check("tile", ("x", x.len()), ("y", y.len()))?;
    let &Tile { inner, tiles, .. } = op;
    if y.is_empty() {
        return Ok(());
    }
    if inner == 1 {
        let rows_per_task = rows_per_task(tiles);
        workers.for_each_chunk(y, rows_per_task * tiles, |task, y| {
            y.chunks_exact_mut(tiles).zip(&x[task * rows_per_task..]).for_each(|(y, &x)| y.fill(x));
        });
        return Ok(());
    }
    let rows_per_task = rows_per_task(inner);
    workers.for_each_chunk(y, rows_per_task * inner, |task, y| {
        for (run, y) in y.chunks_exact_mut(inner).enumerate() {
            y.copy_from_slice(&x[(task * rows_per_task + run) / tiles * inner..][..inner]);
        }
    });
    Ok(())
}

/// `dx[o, i] ← Σ_t dy[o, t, i]`, added in `T::Acc` in the order of the tiles `t`. If the number of
/// tiles is 0, `dx` is 0.
///
/// # Errors
/// [`Error::Length`] if an operand has the wrong length.
pub(crate) fn tile_backward<T: Element>(
    workers: &Workers,
    op: &Tile,
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    op.check("tile_backward", ("dx", dx.len()), ("dy", dy.len()))?;
    let &Tile { inner, tiles, .. } = op;
    // A task computes a range of elements of `dx`. A task's range may begin and end within a run of
    // `inner` contiguous elements.
    let task_len = (GRAIN / tiles.max(1)).max(CHUNK);
    workers.for_each_chunk(dx, task_len, |task, dx| {
        vectorized(
            #[inline(always)]
            |_| {
                let mut buffers = (accumulator_buffer(), accumulator_buffer());
                let mut summed_len = 0;
                while summed_len < dx.len() {
                    let (outer, i) = (
                        (task * task_len + summed_len) / inner,
                        (task * task_len + summed_len) % inner,
                    );
                    let len = (inner - i).min(CHUNK).min(dx.len() - summed_len);
                    let dy = &dy[outer * tiles * inner..][..tiles * inner];
                    sum_tiles(dy, inner, i, &mut dx[summed_len..][..len], &mut buffers);
                    summed_len += len;
                }
            },
        );
    });
    Ok(())
}

/// `dx[j] ← Σ_t dy[t·inner + i + j]`, for at most [`CHUNK`] elements of a run of `inner` contiguous
/// elements.
#[inline(always)]
fn sum_tiles<T: Element>(
    dy: &[T],
    inner: usize,
    i: usize,
    dx: &mut [T],
    buffers: &mut (AccumulatorBuffer<T::Acc>, AccumulatorBuffer<T::Acc>),
) {
    let len = dx.len();
    if len < SHORT_RUN {
        for (j, dx) in dx.iter_mut().enumerate() {
            let tiles = dy[..].chunks_exact(inner);
            *dx = T::from_acc(tiles.fold(T::Acc::zero(), |sum, dy| sum + dy[i + j].to_acc()));
        }
        return;
    }
    overwrite_widened(dx, &mut buffers.0, |dx| {
        dx.fill(T::Acc::zero());
        for dy in dy.chunks_exact(inner) {
            let dy = widened(&dy[i..][..len], &mut buffers.1);
            dx.iter_mut().zip(dy).for_each(|(dx, &dy)| *dx = *dx + dy);
        }
    });
}

/// `y ← y + x`. `x` and `y` have the same length.
#[inline(always)]
fn add<T: Element>(
    x: &[T],
    y: &mut [T],
    buffers: &mut (AccumulatorBuffer<T::Acc>, AccumulatorBuffer<T::Acc>),
) {
    for (x, y) in x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)) {
        let x = widened(x, &mut buffers.0);
        update_widened(y, &mut buffers.1, |y| y.iter_mut().zip(x).for_each(|(y, &x)| *y = *y + x));
    }
}

/// Returns the number of rows, of `width` elements each, that one task processes.
fn rows_per_task(width: usize) -> usize {
    (GRAIN / width).max(1)
}

/// Fails unless every index is less than the number of table rows.
fn check_indices(name: &'static str, op: &RowIndexing, indices: &[u32]) -> Result<()> {
    let invalid_index = indices.iter().enumerate().find(|(_, row)| **row as usize >= op.table);
    invalid_index.map_or(Ok(()), |(i, row)| {
        let reason = format!("indices[{i}] is {row}, but the table has {} rows", op.table);
        Err(Error::invalid_input(name, reason))
    })
}

#[cfg(test)]
mod tests;

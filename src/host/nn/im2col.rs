//! Images to columns and back.
//!
//! A row of the columns holds what one tap of the kernel sees at every position: along the last
//! axis that is a run of the image, or every stride-th element of one. So rows are copied in such
//! runs, two axes at a time; further axes count up around them.

use crate::{
    element::Element,
    error::Result,
    host::{
        nn::tap_range::{PARALLEL_MIN_LEN, TapPlane, WindowTaps},
        simd::vectorized,
        threads::Workers,
    },
    op::Window,
};

/// Columns of the image `x`: row (c, tap…), column (position…); zero where a tap lies outside.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x` holds the image and `columns` its columns.
pub fn im2col<T: Element>(
    workers: &Workers,
    window: &Window,
    x: &[T],
    columns: &mut [T],
) -> Result<()> {
    window.check("im2col", ("x", x.len()), ("columns", columns.len()))?;
    if columns.is_empty() {
        return Ok(());
    }
    let reaches = WindowTaps::of(window);
    im2col_channels(workers, &reaches, x, columns, window.positions());
    Ok(())
}

/// Writes the columns of whole channels, rows `ld` elements apart.
pub(crate) fn im2col_channels<T: Element>(
    workers: &Workers,
    reaches: &WindowTaps,
    x: &[T],
    columns: &mut [T],
    ld: usize,
) {
    let (taps, plane) = (reaches.taps(), reaches.plane());
    if reaches.positions() == 0 {
        return;
    }
    if plane == 0 {
        columns.chunks_mut(ld.max(1)).for_each(|row| {
            let len = reaches.positions().min(row.len());
            row[..len].fill(T::default());
        });
        return;
    }
    let channels = if columns.len() < PARALLEL_MIN_LEN { x.len() / plane } else { 1 };
    workers.for_each_chunk(columns, channels * taps * ld, |i, columns| {
        let x = x[i * channels * plane..].chunks_exact(plane).take(channels);
        vectorized(
            #[inline(always)]
            || {
                for (x, columns) in x.zip(columns.chunks_mut(taps * ld)) {
                    reaches.visit(
                        #[inline(always)]
                        |tap, at| gather(at, x, &mut columns[tap * ld..]),
                    );
                }
            },
        );
    });
}

/// One tap's positions in two axes: from the image to the columns.
#[inline(always)]
fn gather<T: Element>(at: TapPlane, x: &[T], columns: &mut [T]) {
    let columns = &mut columns[at.position..][..at.height * at.width];
    let Some(x_at) = at.image else { return columns.fill(T::default()) };
    let TapPlane { rows, run, width, .. } = at;
    let len = run.end - run.start;
    if (rows.end - rows.start) * len < columns.len() {
        clear_outside(at, columns);
    }
    if rows.start == rows.end || len == 0 {
        return;
    }
    let x = &x[x_at + rows.first * at.pitch + run.first..];
    let y = &mut columns[rows.start * width + run.start..rows.end * width];
    let step = rows.stride * at.pitch;
    match (run.stride, len) {
        (1, 1) => copy_runs::<T, 1>(x, step, y, width, len),
        (1, 2..=3) => copy_runs::<T, 2>(x, step, y, width, len),
        (1, 4..=7) => copy_runs::<T, 4>(x, step, y, width, len),
        (1, 8..=16) => copy_runs::<T, 8>(x, step, y, width, len),
        (1, 17..=32) => copy_runs::<T, 16>(x, step, y, width, len),
        (1, 33..=64) => copy_runs::<T, 32>(x, step, y, width, len),
        (1, _) => {
            for (i, y) in y.chunks_mut(width).enumerate() {
                y[..len].copy_from_slice(&x[i * step..][..len]);
            }
        }
        (stride, _) => {
            for (i, y) in y.chunks_mut(width).enumerate() {
                let x = x[i * step..].iter().step_by(stride);
                y[..len].iter_mut().zip(x).for_each(|(y, &x)| *y = x);
            }
        }
    }
}

/// Zeros where a tap lies outside the image.
#[inline(never)]
fn clear_outside<T: Element>(at: TapPlane, columns: &mut [T]) {
    let TapPlane { rows, run, width, .. } = at;
    columns[..rows.start * width].fill(T::default());
    columns[rows.end * width..].fill(T::default());
    for row in columns[rows.start * width..rows.end * width].chunks_exact_mut(width) {
        row[..run.start].fill(T::default());
        row[run.end..].fill(T::default());
    }
}

/// Copies runs of `N` to `2·N` elements, from `step` elements apart to `width` apart: the first
/// `N` and the last `N` of each, which may overlap. Runs are mostly short, and a call of a copy
/// of any length would cost more than the copy.
#[inline(always)]
fn copy_runs<T: Element, const N: usize>(
    x: &[T],
    step: usize,
    y: &mut [T],
    width: usize,
    len: usize,
) {
    for (i, y) in y.chunks_mut(width).enumerate() {
        let (x, y) = (&x[i * step..][..len], &mut y[..len]);
        if let (Some(x), Some(y)) = (x.first_chunk::<N>(), y.first_chunk_mut::<N>()) {
            *y = *x;
        }
        if let (Some(x), Some(y)) = (x.last_chunk::<N>(), y.last_chunk_mut::<N>()) {
            *y = *x;
        }
    }
}

#[cfg(test)]
mod tests;

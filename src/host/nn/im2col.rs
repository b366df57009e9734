//! im2col: copies an image to a matrix with a row per tap and a column per position.
//!
//! A row of the im2col matrix holds the elements that one tap reads at all positions. Along the
//! last axis, one tap reads a run of consecutive image elements, or every `stride`-th element of a
//! run. The rows of the im2col matrix are copied run by run. Each step of the copy covers one plane
//! of positions along the last two axes.

use crate::{
    element::Element,
    error::Result,
    host::{
        nn::tap_range::{PARALLEL_MIN_LEN, PlaneTaps, TapRange, WindowTaps},
        simd::vectorized,
        threads::Workers,
    },
    op::Window,
};

/// Writes the im2col matrix of image `x`, with a row per tap of each channel and a column per
/// position. Elements of the matrix are zero where a tap lies outside the image.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if the length of `x` or `columns` differs from the
/// number of elements of the image or of the matrix.
pub(crate) fn im2col<T: Element>(
    workers: &Workers,
    window: &Window,
    x: &[T],
    columns: &mut [T],
) -> Result<()> {
    window.check("im2col", ("x", x.len()), ("columns", columns.len()))?;
    if !columns.is_empty() {
        im2col_channels(workers, &WindowTaps::of(window), x, columns, window.positions());
    }
    Ok(())
}

/// Writes the im2col matrix of whole channels of an image to `columns`, with leading dimension
/// `ld`.
pub(crate) fn im2col_channels<T: Element>(
    workers: &Workers,
    window_taps: &WindowTaps,
    x: &[T],
    columns: &mut [T],
    ld: usize,
) {
    let (taps, channel_len) = (window_taps.taps(), window_taps.channel_len());
    if window_taps.positions() == 0 {
        return;
    }
    if channel_len == 0 {
        columns.chunks_mut(ld.max(1)).for_each(|row| {
            let len = window_taps.positions().min(row.len());
            row[..len].fill(T::default());
        });
        return;
    }
    let channels = if columns.len() < PARALLEL_MIN_LEN { x.len() / channel_len } else { 1 };
    workers.for_each_chunk(columns, channels * taps * ld, |i, columns| {
        let x = x[i * channels * channel_len..].chunks_exact(channel_len).take(channels);
        vectorized(
            #[inline(always)]
            |_| {
                for (x, columns) in x.zip(columns.chunks_mut(taps * ld)) {
                    window_taps.visit_planes(
                        #[inline(always)]
                        |plane| {
                            plane.visit(
                                #[inline(always)]
                                |tap, rows, range| {
                                    gather_tap(&plane, rows, range, x, &mut columns[tap * ld..])
                                },
                            )
                        },
                    );
                }
            },
        );
    });
}

/// Copies the image elements that one tap reads at all positions of a plane.
#[inline(always)]
fn gather_tap<T: Element>(
    plane: &PlaneTaps,
    rows: TapRange,
    columns: TapRange,
    x: &[T],
    y: &mut [T],
) {
    let width = plane.width;
    let y = &mut y[plane.position..][..plane.height * width];
    let Some(image) = plane.image else { return y.fill(T::default()) };
    let len = columns.end - columns.start;
    if (rows.end - rows.start) * len < y.len() {
        clear_outside(rows, columns, width, y);
    }
    if rows.start == rows.end || len == 0 {
        return;
    }
    let x = &x[image + rows.first * plane.row_stride + columns.first..];
    let y = &mut y[rows.start * width + columns.start..rows.end * width];
    let step = rows.stride * plane.row_stride;
    match (columns.stride, len) {
        (1, 8) => copy_whole::<T, 8>(x, step, y, width),
        (1, 16) => copy_whole::<T, 16>(x, step, y, width),
        (1, 24) => copy_whole::<T, 24>(x, step, y, width),
        (1, 32) => copy_whole::<T, 32>(x, step, y, width),
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

/// Writes zeros to `y` at the positions where the tap lies outside the image plane.
#[inline(never)]
fn clear_outside<T: Element>(rows: TapRange, columns: TapRange, width: usize, y: &mut [T]) {
    y[..rows.start * width].fill(T::default());
    y[rows.end * width..].fill(T::default());
    for row in y[rows.start * width..rows.end * width].chunks_exact_mut(width) {
        row[..columns.start].fill(T::default());
        row[columns.end..].fill(T::default());
    }
}

/// Copies runs of exactly `N` image elements like [`copy_runs`], but each element once.
#[inline(always)]
fn copy_whole<T: Element, const N: usize>(x: &[T], step: usize, y: &mut [T], width: usize) {
    for (i, y) in y.chunks_mut(width).enumerate() {
        if let (Some(x), Some(y)) = (x[i * step..].first_chunk::<N>(), y.first_chunk_mut::<N>()) {
            *y = *x;
        }
    }
}

/// Copies runs of `N` to `2·N` image elements to rows of the im2col matrix. Successive runs start
/// `step` elements apart in `x` and `width` elements apart in `y`.
///
/// The function copies the first `N` and the last `N` elements of each run; the two copies may
/// overlap. Most runs are so short that the overhead of calling `memcpy` would exceed the time of
/// the copy.
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

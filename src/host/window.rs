//! Columns of an image, and back.

#[cfg(test)]
mod tests;

use super::{
    scratch::with_scratch,
    widen::{narrow, widen},
    workers::Workers,
};
use crate::{
    element::Element,
    error::Result,
    op::{Extent, Window},
};
use std::ops::Range;

/// Elements of columns below which one thread is faster than several.
const SHARED: usize = 1 << 16;

/// `columns ← the windows of x`, one a column; padding reads as zero.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length).
#[doc(alias = "im2col_cpu")]
#[doc(alias = "im2col_nd_cpu")]
pub fn im2col<T: Element>(
    workers: &Workers,
    op: &Window,
    x: &[T],
    columns: &mut [T],
) -> Result<()> {
    op.check("im2col", ("x", x.len()), ("columns", columns.len()))?;
    let positions = op.positions();
    let channel = op.taps() * positions;
    if columns.is_empty() {
        return Ok(());
    }
    let together = (SHARED / channel).max(1);
    let traces = traces(op);
    workers.chunks(columns, together * channel, |task, columns| {
        let first = task * together;
        for (c, columns) in (first..).zip(columns.chunks_exact_mut(channel)) {
            gather(op, &traces, &x[c * op.plane()..][..op.plane()], columns, positions);
        }
    });
    Ok(())
}

/// `x ← the sum of the columns' elements that come from each place`, summed in the accumulator
/// type.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length).
#[doc(alias = "col2im_cpu")]
#[doc(alias = "col2im_nd_cpu")]
pub fn col2im<T: Element>(
    workers: &Workers,
    op: &Window,
    columns: &[T],
    x: &mut [T],
) -> Result<()> {
    op.check("col2im", ("x", x.len()), ("columns", columns.len()))?;
    let (plane, positions) = (op.plane(), op.positions());
    if x.is_empty() {
        return Ok(());
    }
    let channel = op.taps() * positions;
    let together = (SHARED / channel.max(1)).max(1);
    let traces = traces(op);
    workers.chunks(x, together * plane, |task, x| {
        let first = task * together;
        with_scratch(channel, |wide: &mut [T::Acc]| {
            for (c, x) in (first..).zip(x.chunks_exact_mut(plane)) {
                widen(&columns[c * channel..][..channel], wide);
                scatter(op, &traces, wide, positions, x);
            }
        });
    });
    Ok(())
}

/// Where one tap looks along one axis: the windows whose tap is inside the input, and the place
/// that the first of them sees.
#[derive(Clone)]
pub(super) struct Trace {
    inside: Range<usize>,
    start: usize,
    stride: usize,
}

impl Trace {
    /// Of tap `tap`, over `output` windows.
    fn new(axis: &Extent, output: usize, tap: usize) -> Self {
        let &Extent { input, stride, pad, dilation, .. } = axis;
        let shift = tap * dilation;
        // Window w sees place w·stride + shift − pad.
        let first = pad.saturating_sub(shift).div_ceil(stride);
        let end = (input + pad).saturating_sub(shift).div_ceil(stride).min(output);
        let inside = first.min(end)..end;
        Self { start: (inside.start * stride + shift).saturating_sub(pad), inside, stride }
    }

    fn place(&self, window: usize) -> usize {
        self.start + (window - self.inside.start) * self.stride
    }
}

/// The traces of all taps, axis by axis.
pub(super) fn traces(op: &Window) -> Vec<Vec<Trace>> {
    let axes = op.axes().iter().zip(op.output());
    axes.map(|(axis, &output)| (0..axis.kernel).map(|tap| Trace::new(axis, output, tap)).collect())
        .collect()
}

/// The columns of one channel: a row of `columns`, each `ld` after the last, for each tap.
pub(super) fn gather<T: Element>(
    op: &Window,
    traces: &[Vec<Trace>],
    plane: &[T],
    columns: &mut [T],
    ld: usize,
) {
    for tap in 0..op.taps() {
        let row = &mut columns[tap * ld..][..op.positions()];
        row.fill(T::default());
        runs(op, traces, tap, |windows, place, stride| {
            let row = &mut row[windows];
            if stride == 1 {
                row.copy_from_slice(&plane[place..][..row.len()]);
            } else {
                let seen = plane[place..].iter().step_by(stride);
                row.iter_mut().zip(seen).for_each(|(y, x)| *y = *x);
            }
        });
    }
}

/// Adds the columns of one channel up into its plane.
pub(super) fn scatter<T: Element>(
    op: &Window,
    traces: &[Vec<Trace>],
    columns: &[T::Acc],
    ld: usize,
    plane: &mut [T],
) {
    with_scratch(plane.len(), |sums: &mut [T::Acc]| {
        sums.fill(<T::Acc>::default());
        for tap in 0..op.taps() {
            let row = &columns[tap * ld..][..op.positions()];
            runs(op, traces, tap, |windows, place, stride| {
                let row = &row[windows];
                if stride == 1 {
                    let sums = &mut sums[place..][..row.len()];
                    sums.iter_mut().zip(row).for_each(|(y, x)| *y = *y + *x);
                } else {
                    let seen = sums[place..].iter_mut().step_by(stride);
                    seen.zip(row).for_each(|(y, x)| *y = *y + *x);
                }
            });
        }
        narrow(sums, plane);
    });
}

/// Calls `body(windows, place, stride)` for each run of windows along the last axis whose tap is
/// inside the plane: the first of them sees `place`, the next `stride` further.
#[inline]
fn runs(
    op: &Window,
    traces: &[Vec<Trace>],
    tap: usize,
    mut body: impl FnMut(Range<usize>, usize, usize),
) {
    let Some((inner, outer)) = op.axes().split_last() else { return body(0..1, 0, 1) };
    let last = &traces[outer.len()][tap % inner.kernel];
    if last.inside.is_empty() {
        return;
    }
    let width = op.output()[outer.len()];
    let lines: usize = op.output()[..outer.len()].iter().product();
    let mut place = |line: usize, start: usize| {
        let from = line * width;
        body(from + last.inside.start..from + last.inside.end, start + last.start, last.stride);
    };
    if let [axis] = outer {
        // Two axes, as images have.
        let trace = &traces[0][tap / inner.kernel % axis.kernel];
        trace.inside.clone().for_each(|line| place(line, trace.place(line) * inner.input));
        return;
    }
    for line in 0..lines {
        if let Some(start) = line_start(op, traces, tap, line) {
            place(line, start);
        }
    }
}

/// Where in the plane the line of places begins that a tap sees from a line of windows, unless it
/// is padding.
fn line_start(op: &Window, traces: &[Vec<Trace>], tap: usize, line: usize) -> Option<usize> {
    let last = op.axes().len() - 1;
    let (mut tap, mut line) = (tap / op.axes()[last].kernel, line);
    let (mut start, mut step) = (0, op.axes()[last].input);
    for axis in (0..last).rev() {
        let extent = &op.axes()[axis];
        let (window, output) = (line % op.output()[axis], op.output()[axis]);
        let trace = &traces[axis][tap % extent.kernel];
        if !trace.inside.contains(&window) {
            return None;
        }
        start += trace.place(window) * step;
        step *= extent.input;
        tap /= extent.kernel;
        line /= output;
    }
    Some(start)
}

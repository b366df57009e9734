//! Convolution: columns and a matrix product, images side by side where they are small.
//!
//! Everything between operands and results is in the accumulator type: columns are widened as
//! they are gathered, and results are rounded once.

#[cfg(test)]
mod tests;

use super::{
    gemm::gemm,
    level1::axpy,
    scratch::with_scratch,
    widen::{is_wide, narrow, widen, widened},
    window::{Trace, gather, scatter, traces},
    workers::Workers,
};
use crate::{
    element::Element,
    error::{Result, expect_len},
    op::{Convolution, Gemm, Transpose, Window},
};
use parking_lot::Mutex;

/// Columns at which a matrix product runs at full speed: smaller images are joined up to it.
const WIDE: usize = 256;

/// Partial sums of the filters' gradient, over parts of the batch.
const PARTS: usize = 8;

/// Elements that all partial sums together may take.
const PARTIAL: usize = 1 << 22;

/// `y ← x ∗ filters + bias`, as [`Convolution`] says.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length).
pub fn convolve<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T],
    bias: Option<&[T]>,
    y: &mut [T],
) -> Result<()> {
    op.check("convolve", ("x", x.len()), ("filters", filters.len()), ("y", y.len()))?;
    if let Some(bias) = bias {
        expect_len("convolve", "bias", op.outputs(), bias.len())?;
    }
    if y.is_empty() {
        return Ok(());
    }
    let pass = Pass::new(workers, op);
    let positions = op.window().positions();
    with_scratch(filters.len(), |room| {
        let filters = widened(filters, room);
        pass.chunks(y, op.outputs() * positions, |first, y| {
            let images = y.len() / (op.outputs() * positions);
            let ld = images * positions;
            pass.with_columns(&x[first * op.window().image()..], images, |columns| {
                with_scratch(op.outputs() * ld, |sums: &mut [T::Acc]| {
                    pass.each_group(|g| {
                        let filters = &filters[pass.filters(g)];
                        let gemm_op = Gemm::new(pass.outputs, ld, pass.rows);
                        let sums = &mut sums[g * pass.outputs * ld..][..pass.outputs * ld];
                        let columns = &columns[g * pass.rows * ld..][..pass.rows * ld];
                        gemm(&pass.inner, &gemm_op, filters, columns, sums)
                    })?;
                    for (o, sums) in sums.chunks_exact_mut(ld).enumerate() {
                        if let Some(bias) = bias {
                            let bias = bias[o].to_acc();
                            sums.iter_mut().for_each(|sum| *sum = *sum + bias);
                        }
                        for (i, sums) in sums.chunks_exact(positions).enumerate() {
                            narrow(sums, &mut y[(i * op.outputs() + o) * positions..][..positions]);
                        }
                    }
                    Ok(())
                })
            })
        })
    })
}

/// `dx ← the gradient of x`, given that of `y`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length).
pub fn convolve_backward_input<T: Element>(
    workers: &Workers,
    op: &Convolution,
    filters: &[T],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    const OP: &str = "convolve_backward_input";
    op.check(OP, ("dx", dx.len()), ("filters", filters.len()), ("dy", dy.len()))?;
    if dx.is_empty() {
        return Ok(());
    }
    let pass = Pass::new(workers, op);
    let image = op.window().image();
    with_scratch(filters.len(), |room| {
        let filters = widened(filters, room);
        pass.chunks(dx, image, |first, dx| {
            let images = dx.len() / image;
            let ld = images * op.window().positions();
            pass.with_outputs(dy, first, images, |dy| {
                with_scratch(op.window().rows() * ld, |columns: &mut [T::Acc]| {
                    pass.each_group(|g| {
                        let (no, yes) = (Transpose::No, Transpose::Yes);
                        let gemm_op = Gemm::with(yes, no, pass.rows, ld, pass.outputs);
                        let dy = &dy[g * pass.outputs * ld..][..pass.outputs * ld];
                        let columns = &mut columns[g * pass.rows * ld..][..pass.rows * ld];
                        gemm(&pass.inner, &gemm_op, &filters[pass.filters(g)], dy, columns)
                    })?;
                    pass.add_up(columns, dx);
                    Ok(())
                })
            })
        })
    })
}

/// `dfilters ← dfilters + the gradient of the filters`, given that of `y`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length).
pub fn convolve_backward_filters<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    dy: &[T],
    dfilters: &mut [T],
) -> Result<()> {
    const OP: &str = "convolve_backward_filters";
    op.check(OP, ("x", x.len()), ("dfilters", dfilters.len()), ("dy", dy.len()))?;
    if dfilters.is_empty() || op.batch() == 0 {
        return Ok(());
    }
    let pass = Pass::new(workers, op);
    let len = dfilters.len();
    // Parts of the batch depend on sizes alone, so that the sum's order does too.
    let parts = pass.steps().min(PARTS).min((PARTIAL / len).max(1));
    let steps = pass.steps().div_ceil(parts);
    with_scratch(parts * len, |sums: &mut [T::Acc]| {
        let each = if parts == 1 { &Workers::sequential() } else { workers };
        try_chunks(each, sums, len, |part, sum| {
            sum.fill(<T::Acc>::default());
            let last = pass.steps().min((part + 1) * steps);
            (part * steps..last).try_for_each(|step| {
                let first = step * pass.joined;
                let images = pass.joined.min(op.batch() - first);
                pass.add_filters(&x[first * op.window().image()..], dy, first, images, sum)
            })
        })?;
        let (total, rest) = sums.split_at_mut(len);
        for part in rest.chunks_exact(len) {
            axpy(workers, T::acc(1.0), part, total)?;
        }
        with_scratch(len, |wide: &mut [T::Acc]| {
            widen(dfilters, wide);
            axpy(workers, T::acc(1.0), total, wide)?;
            narrow(wide, dfilters);
            Ok(())
        })
    })
}

/// What the passes over one batch have in common.
struct Pass<'a> {
    op: &'a Convolution,
    traces: Vec<Vec<Trace>>,
    /// Threads over images, and inside the products of one step.
    outer: Workers,
    inner: Workers,
    /// Images whose columns stand side by side.
    joined: usize,
    /// Outputs, and rows of columns, of one group.
    outputs: usize,
    rows: usize,
}

impl<'a> Pass<'a> {
    fn new(workers: &Workers, op: &'a Convolution) -> Self {
        let window = op.window();
        let joined = WIDE.div_ceil(window.positions().max(1)).min(op.batch().max(1));
        // One step leaves nothing to share out but the products themselves.
        let alone = op.batch() <= joined;
        let (outer, inner) = match alone {
            true => (Workers::sequential(), workers.clone()),
            false => (workers.clone(), Workers::sequential()),
        };
        let (outputs, rows) = (op.outputs() / op.groups(), window.rows() / op.groups());
        Self { op, traces: traces(window), outer, inner, joined, outputs, rows }
    }

    fn window(&self) -> &Window {
        self.op.window()
    }

    /// Runs of joined images in the batch.
    fn steps(&self) -> usize {
        self.op.batch().div_ceil(self.joined)
    }

    fn each_group(&self, body: impl FnMut(usize) -> Result<()>) -> Result<()> {
        (0..self.op.groups()).try_for_each(body)
    }

    /// Where the filters of a group are.
    fn filters(&self, g: usize) -> std::ops::Range<usize> {
        let len = self.outputs * self.rows;
        g * len..(g + 1) * len
    }

    /// Calls `body(first image, results)` for each run of joined images; one image's results are
    /// `size` elements.
    fn chunks<T: Element>(
        &self,
        results: &mut [T],
        size: usize,
        body: impl Fn(usize, &mut [T]) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let joined = self.joined;
        try_chunks(&self.outer, results, joined * size, |step, y| body(step * joined, y))
    }

    /// The columns of the first images of `x`, side by side.
    fn with_columns<T: Element, R>(
        &self,
        x: &[T],
        images: usize,
        body: impl FnOnce(&[T::Acc]) -> R,
    ) -> R {
        let window = self.window();
        let (plane, positions, taps) = (window.plane(), window.positions(), window.taps());
        if images == 1 && window.is_identity() && is_wide::<T>() {
            return body(bytemuck::cast_slice(&x[..window.image()]));
        }
        let ld = images * positions;
        with_scratch(window.rows() * ld, |columns: &mut [T::Acc]| {
            with_scratch(plane, |room| {
                let channels = window.channels();
                for (i, c) in (0..images).flat_map(|i| (0..channels).map(move |c| (i, c))) {
                    let x = &x[(i * channels + c) * plane..][..plane];
                    let columns = &mut columns[c * taps * ld + i * positions..];
                    gather(window, &self.traces, widened(x, room), columns, ld);
                }
            });
            body(columns)
        })
    }

    /// The gradients of some images' results, side by side: outputs × images × positions.
    fn with_outputs<T: Element, R>(
        &self,
        dy: &[T],
        first: usize,
        images: usize,
        body: impl FnOnce(&[T::Acc]) -> R,
    ) -> R {
        let (outputs, positions) = (self.op.outputs(), self.window().positions());
        let dy = &dy[first * outputs * positions..][..images * outputs * positions];
        if images == 1 && is_wide::<T>() {
            return body(bytemuck::cast_slice(dy));
        }
        let ld = images * positions;
        with_scratch(dy.len(), |joined: &mut [T::Acc]| {
            for (at, dy) in dy.chunks_exact(positions).enumerate() {
                let (i, o) = (at / outputs, at % outputs);
                widen(dy, &mut joined[o * ld + i * positions..][..positions]);
            }
            body(joined)
        })
    }

    /// Adds columns side by side up into their images.
    fn add_up<T: Element>(&self, columns: &[T::Acc], dx: &mut [T]) {
        let window = self.window();
        let (image, plane) = (window.image(), window.plane());
        let ld = dx.len() / image * window.positions();
        for (i, dx) in dx.chunks_exact_mut(image).enumerate() {
            for (c, dx) in dx.chunks_exact_mut(plane).enumerate() {
                let columns = &columns[c * window.taps() * ld + i * window.positions()..];
                scatter(window, &self.traces, columns, ld, dx);
            }
        }
    }

    /// Adds the gradient of the filters over some images to `sum`.
    fn add_filters<T: Element>(
        &self,
        x: &[T],
        dy: &[T],
        first: usize,
        images: usize,
        sum: &mut [T::Acc],
    ) -> Result<()> {
        let ld = images * self.window().positions();
        self.with_columns(x, images, |columns| {
            self.with_outputs(dy, first, images, |dy| {
                self.each_group(|g| {
                    let (no, yes) = (Transpose::No, Transpose::Yes);
                    let op = Gemm::with(no, yes, self.outputs, self.rows, ld).accumulate();
                    let dy = &dy[g * self.outputs * ld..][..self.outputs * ld];
                    let columns = &columns[g * self.rows * ld..][..self.rows * ld];
                    gemm(&self.inner, &op, dy, columns, &mut sum[self.filters(g)])
                })
            })
        })
    }
}

/// [`Workers::chunks`] for a body that may fail; one of the errors is returned.
fn try_chunks<T: Send>(
    workers: &Workers,
    y: &mut [T],
    size: usize,
    body: impl Fn(usize, &mut [T]) -> Result<()> + Send + Sync,
) -> Result<()> {
    let failed = Mutex::new(Ok(()));
    workers.chunks(y, size, |i, y| {
        if let Err(error) = body(i, y) {
            *failed.lock() = Err(error);
        }
    });
    failed.into_inner()
}

//! Convolutions as matrix products: the filters times the columns of the images.
//!
//! - Columns are never there: a product packs its panels from the images (see `slab`), small
//!   ones side by side. Which, depends on the shapes alone.
//! - Gradients of the images are a convolution of those of the results, with the filters mirrored;
//!   where strides or borders would waste much of it, columns are made and added up.
//! - Images are shared among threads; where there are too few, threads share each product, which
//!   has the same bits on any number of them.
//! - Gradients of the filters are summed over a fixed number of runs of images, and the sums of
//!   runs are added in order.
//! - Depthwise convolutions are no products: see `depthwise`.
//! - 16-bit images are widened as they are taken up, and results rounded once.

mod backward_input;
mod depthwise;
mod slab;

use super::{
    gemm::{gemm, gemm_indirect},
    scratch::with_scratch,
    widen::{is_wide, overwrite, update, widened},
    window::room_for,
    workers::Workers,
};
use crate::{
    element::Element,
    error::{Result, expect_len},
    op::{Convolution, Gemm, Transpose},
};
use depthwise::Depthwise;
use num_traits::Float;
use slab::{Slab, Slabs};

/// Floating-point operations below which one thread is faster than several.
const SHARED: u64 = 2_000_000;

/// Most runs of images whose gradients are summed apart.
const RUNS: usize = 8;

static ALONE: Workers = Workers::sequential();

/// `y ← filters ∗ x + bias`: every image's every window, times every filter of its group.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x` holds the images, `filters` the filters,
/// `bias` one element for each output plane and `y` the results.
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
    let bias: Option<Vec<_>> = bias.map(|bias| bias.iter().map(|b| b.to_acc()).collect());
    if let Some(depthwise) = Depthwise::of(op) {
        let (workers, _) = levels(workers, op, usize::MAX);
        with_scratch(room_for::<T>(filters.len()), |room| {
            depthwise.convolve(workers, x, widened(filters, room), bias.as_deref(), y);
        });
        return Ok(());
    }
    with_scratch(room_for::<T>(filters.len()), |room| {
        multiply_all(workers, op, x, widened(filters, room), bias.as_deref(), y)
    })
}

/// Gradient of the images: `dx ← filtersᵀ ∗ dy`; overwrites `dx`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `filters` holds the filters, `dy` gradients of
/// the results and `dx` those of the images.
pub fn convolve_backward_input<T: Element>(
    workers: &Workers,
    op: &Convolution,
    filters: &[T],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    let name = "convolve_backward_input";
    op.check(name, ("dx", dx.len()), ("filters", filters.len()), ("dy", dy.len()))?;
    with_scratch(room_for::<T>(filters.len()), |room| {
        let filters = widened(filters, room);
        if let Some(depthwise) = Depthwise::of(op) {
            let (workers, _) = levels(workers, op, usize::MAX);
            depthwise.backward_input(workers, filters, dy, dx);
            return Ok(());
        }
        match backward_input::mirrored(op)? {
            Some(mirrored) => with_scratch(filters.len(), |flipped| {
                backward_input::mirror(op, filters, flipped);
                multiply_all(workers, &mirrored, dy, flipped, None, dx)
            }),
            None => backward_input::by_columns(workers, op, filters, dy, dx),
        }
    })
}

/// Gradient of the filters, added to what `dfilters` holds: `dfilters ← dfilters + dy ∗ x`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x` holds the images, `dy` gradients of the
/// results and `dfilters` those of the filters.
pub fn convolve_backward_filters<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    dy: &[T],
    dfilters: &mut [T],
) -> Result<()> {
    let name = "convolve_backward_filters";
    op.check(name, ("x", x.len()), ("dfilters", dfilters.len()), ("dy", dy.len()))?;
    if x.is_empty() || dy.is_empty() || dfilters.is_empty() {
        return Ok(());
    }
    // A run has to be worth the sums it keeps apart.
    let runs = (op.batch() * op.window().positions() / 1024).clamp(1, RUNS.min(op.batch()));
    let images = op.batch().div_ceil(runs);
    let runs = op.batch().div_ceil(images);
    let (image, result) = (op.window().image(), op.outputs() * op.window().positions());
    let (len, part) = (dfilters.len(), dfilters.len() / op.groups());
    with_scratch(runs * len, |sums: &mut [T::Acc]| {
        if let Some(depthwise) = Depthwise::of(op) {
            let (workers, _) = levels(workers, op, usize::MAX);
            depthwise.correlate(workers, images, x, dy, sums);
            add_runs(sums, dfilters);
            return Ok(());
        }
        let slabs = Slabs::of_filters(op)?;
        let (outer, inner) = levels(workers, op, runs * op.groups());
        outer.try_chunks(sums, part, |task, sums| {
            let (run, group) = (task / op.groups(), task % op.groups());
            let (start, end) = (run * images, op.batch().min((run + 1) * images));
            let (x, dy) = (&x[start * image..end * image], &dy[start * result..end * result]);
            with_scratch(room_for::<T>(x.len()), |room_x| {
                with_scratch(room_for::<T>(dy.len()), |room_y| {
                    let (x, dy) = (widened(x, room_x), widened(dy, room_y));
                    let mut first = true;
                    slabs.try_each_of(group, end - start, |slab| {
                        let overwrites = std::mem::take(&mut first);
                        correlate(inner, &slabs, slab, x, dy, overwrites, sums)
                    })
                })
            })
        })?;
        add_runs(sums, dfilters);
        Ok(())
    })
}

/// Threads for tasks and threads within each: the one or the other.
fn levels<'a>(workers: &'a Workers, op: &Convolution, tasks: usize) -> (&'a Workers, &'a Workers) {
    if op.flops() < SHARED {
        (&ALONE, &ALONE)
    } else if tasks >= workers.count() {
        (workers, &ALONE)
    } else {
        (&ALONE, workers)
    }
}

/// `y ← filters·columns + bias` for all images.
fn multiply_all<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T::Acc],
    bias: Option<&[T::Acc]>,
    y: &mut [T],
) -> Result<()> {
    let slabs = Slabs::of_results(op)?;
    let (image, result) = (op.window().image(), op.outputs() * op.window().positions());
    let (outer, inner) = levels(workers, op, slabs.tasks());
    outer.try_chunks(y, slabs.images() * result, |task, y| {
        let images = y.len() / result;
        let x = &x[task * slabs.images() * image..][..images * image];
        with_scratch(room_for::<T>(x.len()), |room_x| {
            with_scratch(room_for::<T>(y.len()), |room_y| {
                let x = widened(x, room_x);
                let mut done = Ok(());
                overwrite(y, room_y, |y| {
                    done = slabs.try_each(images, |slab| {
                        multiply(inner, &slabs, slab, x, filters, bias, y)
                    });
                });
                done
            })
        })
    })
}

/// `y ← filters·columns + bias` for one slab.
fn multiply<A: Element<Acc = A> + Float>(
    workers: &Workers,
    slabs: &Slabs,
    slab: &Slab,
    x: &[A],
    filters: &[A],
    bias: Option<&[A]>,
    y: &mut [A],
) -> Result<()> {
    let (m, k, n) = (slabs.outputs(), slabs.rows(), slab.columns());
    let filters = &filters[slab.group() * m * k..][..m * k];
    let op = Gemm::<A>::new(m, n, k);
    let bias = bias.map(|bias| &bias[slab.group() * m..][..m]);
    let product = |y: &mut [A]| {
        match slabs.identity(slab, x) {
            Some(x) => gemm(workers, &op, filters, x, y)?,
            None => slabs.with_columns(workers, slab, Transpose::No, x, |columns| {
                gemm_indirect(workers, &op, filters, columns, y)
            })?,
        }
        slab::add_bias(bias, y, n);
        Ok(())
    };
    if let Some(plane) = slabs.result_mut(slab, y) {
        return product(plane);
    }
    with_scratch(m * n, |side: &mut [A]| {
        product(side)?;
        slabs.scatter_results(slab, side, y);
        Ok(())
    })
}

/// `sums ← dy·columnsᵀ`, or added to them, for one slab.
fn correlate<A: Element<Acc = A> + Float>(
    workers: &Workers,
    slabs: &Slabs,
    slab: &Slab,
    x: &[A],
    dy: &[A],
    overwrites: bool,
    sums: &mut [A],
) -> Result<()> {
    let (m, n, k) = (slabs.outputs(), slabs.rows(), slab.columns());
    let op = Gemm::<A>::with(Transpose::No, Transpose::Yes, m, n, k);
    let op = op.beta(if overwrites { A::zero() } else { A::one() });
    slabs.with_results(slab, dy, |dy, ld| {
        let op = op.leading(ld, op.ldb, n);
        match slabs.identity(slab, x) {
            Some(x) => gemm(workers, &op, dy, x, sums),
            None => slabs.with_columns(workers, slab, Transpose::Yes, x, |columns| {
                gemm_indirect(workers, &op, dy, columns, sums)
            }),
        }
    })
}

/// `dfilters ← dfilters + Σ runs`, in order.
fn add_runs<T: Element>(sums: &mut [T::Acc], dfilters: &mut [T]) {
    let len = dfilters.len();
    let (first, rest) = sums.split_at_mut(len);
    for run in rest.chunks(len) {
        first.iter_mut().zip(run).for_each(|(sum, &run)| *sum = *sum + run);
    }
    with_scratch(if is_wide::<T>() { 0 } else { len }, |room| {
        update(dfilters, room, |d| d.iter_mut().zip(&*first).for_each(|(d, &sum)| *d = *d + sum));
    });
}

#[cfg(test)]
mod slab_tests;
#[cfg(test)]
mod tests;

//! Convolutions as matrix products: the filters times the columns of the images.
//!
//! - Columns are never there: a product packs its panels from the images (see `slab`), small
//!   ones side by side. Which, depends on the shapes alone.
//! - Gradients of the images are a convolution of those of the results, with the filters mirrored;
//!   where strides or borders would waste much of it, columns are made and added up.
//! - Images are shared among threads; where there are too few, threads share each product, which
//!   has the same bits on any number of them.
//! - For gradients of the filters, threads share the taps. Of few taps, gradients are summed over a
//!   fixed number of runs of images, and the sums of runs added in order.
//! - Depthwise convolutions are no products: see `depthwise`.
//! - 16-bit images are widened as they are taken up, and results rounded once.
//! - A function of the results is applied to those of a task at once, while they are in a cache.

pub(crate) mod backward_filters;
pub(crate) mod backward_input;
pub(crate) mod depthwise;
pub(crate) mod forward;
pub(crate) mod implicit_gemm;

use crate::host::simd::accumulator::accumulator_len;
use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        cache::scratch::with_scratch, elementwise::map::unary_in_place,
        nn::convolution::depthwise::Depthwise, simd::accumulator::widened, threads::Workers,
    },
    op::{Convolution, Unary},
};

/// Floating-point operations below which one thread is faster than several.
const PARALLEL_MIN_FLOPS: u64 = 2_000_000;

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
    convolve_then(workers, op, x, filters, bias, None, y)
}

/// `y ← function(filters ∗ x + bias)`: the bits of [`convolve`], then
/// [`unary_in_place`](crate::host::unary_in_place).
///
/// # Errors
/// As [`convolve`].
pub fn convolve_with_activation<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T],
    bias: Option<&[T]>,
    function: Unary<T::Acc>,
    y: &mut [T],
) -> Result<()> {
    convolve_then(workers, op, x, filters, bias, Some(function), y)
}

/// A convolution, and a function of its results if there is one.
fn convolve_then<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T],
    bias: Option<&[T]>,
    function: Option<Unary<T::Acc>>,
    y: &mut [T],
) -> Result<()> {
    op.check("convolve", ("x", x.len()), ("filters", filters.len()), ("y", y.len()))?;
    if let Some(bias) = bias {
        check_len("convolve", "bias", op.outputs(), bias.len())?;
    }
    if filters.is_empty() || y.is_empty() {
        let planes = y.chunks_mut(op.window().positions()).enumerate();
        let bias = |plane| bias.map_or(T::default(), |bias| bias[plane % op.outputs()]);
        planes.for_each(|(plane, y)| y.fill(bias(plane)));
        return activate(workers, function, y);
    }
    let bias: Option<Vec<_>> = bias.map(|bias| bias.iter().map(|b| b.to_acc()).collect());
    with_scratch(accumulator_len::<T>(filters.len()), |room| {
        let (filters, bias) = (widened(filters, room), bias.as_deref());
        match Depthwise::of(op) {
            Some(depthwise) => {
                depthwise.convolve(share(workers, op), x, filters, bias, function, y)
            }
            None => forward::by_slabs(workers, op, x, filters, bias, function, y),
        }
    })
}

/// `y ← function(y)`, if there is one.
fn activate<T: Element>(
    workers: &Workers,
    function: Option<Unary<T::Acc>>,
    y: &mut [T],
) -> Result<()> {
    function.map_or(Ok(()), |function| unary_in_place(workers, function, y))
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
    if filters.is_empty() || dx.is_empty() {
        dx.fill(T::default());
        return Ok(());
    }
    with_scratch(accumulator_len::<T>(filters.len()), |room| {
        let filters = widened(filters, room);
        match Depthwise::of(op) {
            Some(depthwise) => depthwise.backward_input(share(workers, op), filters, dy, dx),
            None => return backward_input::by_slabs(workers, op, filters, dy, dx),
        }
        Ok(())
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
    match Depthwise::of(op) {
        Some(depthwise) => backward_filters::depthwise(workers, op, &depthwise, x, dy, dfilters),
        None => return backward_filters::by_slabs(workers, op, x, dy, dfilters),
    }
    Ok(())
}

/// Threads for work in many parts, if it is worth any.
fn share<'a>(workers: &'a Workers, op: &Convolution) -> &'a Workers {
    levels(workers, op, usize::MAX).0
}

/// Threads for tasks and threads within each: the one or the other.
fn levels<'a>(workers: &'a Workers, op: &Convolution, tasks: usize) -> (&'a Workers, &'a Workers) {
    if op.flops() < PARALLEL_MIN_FLOPS {
        (&ALONE, &ALONE)
    } else if tasks >= workers.count() {
        (workers, &ALONE)
    } else {
        (&ALONE, workers)
    }
}

#[cfg(test)]
mod tests;

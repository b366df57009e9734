//! Convolution with groups, in any number of axes: forward pass and both gradients.
//!
//! A convolution is the GEMM `y = filters · columns`, where the im2col matrix `columns` has a row
//! per tap and a column per window. The public functions check the operands, widen 16-bit filters
//! to the accumulator type, and choose a module by the shapes alone:
//!
//! - `depthwise` computes convolutions in one or two axes whose groups are single channels with at
//!   most four filters. Depthwise kernels sum over a polyphase layout of each plane and need no
//!   GEMM.
//! - `forward` computes all other convolutions by a GEMM that reads the images through address
//!   tables, which `implicit_gemm` builds. If a convolution has padding or strides above 1, each
//!   image is first copied to a padded polyphase layout. If images have few positions, several
//!   images share one GEMM.
//! - `winograd` computes convolutions with 3×3 or 5×5 filters and a stride of 1 by 16 or 36 smaller
//!   GEMMs of transformed tiles, if these are faster than the implicit GEMM. `forward` and
//!   `backward_input` call `winograd` for all types with the accumulator `f32`, and
//!   `backward_filters` only for `f32`.
//! - `backward_input` runs `forward` on `dy` with flipped filters. If the image is much larger than
//!   the output, `winograd` computes the gradient where it can. Otherwise, and with a stride above 1,
//!   a GEMM computes the gradient of the im2col matrix in blocks of channels. `col2im` adds each
//!   block of the im2col matrix's gradient to the image.
//! - `backward_filters` multiplies `dy` by the transposed im2col matrix, and distributes the rows
//!   of the im2col matrix among threads. If the im2col matrix has few rows, the batch is also split
//!   into at most eight parts, whose partial sums are added in order.
//! - `schedule` decides which threads run tasks, and which threads share one GEMM.
//!
//! Each task of a convolution widens 16-bit images, rounds results once, and applies the activation
//! while the outputs are in cache. Results are bit-identical on any number of threads.

pub(crate) mod backward_filters;
pub(crate) mod backward_input;
pub(crate) mod depthwise;
pub(crate) mod forward;
pub(crate) mod implicit_gemm;
pub(crate) mod schedule;
pub(crate) mod winograd;

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        cache::scratch::with_scratch,
        nn::convolution::{
            depthwise::Depthwise,
            schedule::{activate, task_workers},
        },
        simd::accumulator::{accumulator_len, widened},
        threads::Workers,
    },
    op::{Convolution, Unary},
};

/// `y ← filters ∗ x + bias`: computes the dot product of each window of each image with each filter
/// of the window's channel group.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if the length of `x`, `filters`, `bias` or `y` differs
/// from the number of elements of the images, the filters, the output planes' bias or the outputs.
pub(crate) fn convolve<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T],
    bias: Option<&[T]>,
    y: &mut [T],
) -> Result<()> {
    convolve_then(workers, op, x, filters, bias, None, y)
}

/// `y ← activation(filters ∗ x + bias)`, bit-identical to [`convolve`] followed by
/// [`unary_in_place`](crate::host::unary_in_place).
///
/// # Errors
/// Returns any error from [`convolve`].
pub(crate) fn convolve_with_activation<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T],
    bias: Option<&[T]>,
    activation: Unary<T::Acc>,
    y: &mut [T],
) -> Result<()> {
    convolve_then(workers, op, x, filters, bias, Some(activation), y)
}

fn convolve_then<T: Element>(
    workers: &Workers,
    op: &Convolution,
    x: &[T],
    filters: &[T],
    bias: Option<&[T]>,
    activation: Option<Unary<T::Acc>>,
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
        return activate(workers, activation, y);
    }
    let bias: Option<Vec<_>> = bias.map(|bias| bias.iter().map(|b| b.to_acc()).collect());
    with_scratch(accumulator_len::<T>(filters.len()), |scratch| {
        let (filters, bias) = (widened(filters, scratch), bias.as_deref());
        match Depthwise::new(op) {
            Some(depthwise) => {
                depthwise.forward(task_workers(workers, op), x, filters, bias, activation, y)
            }
            None => forward::by_gemm(workers, op, x, filters, bias, activation, y),
        }
    })
}

/// Input gradient of a convolution: `dx ← filtersᵀ ∗ dy`. Overwrites `dx`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if the length of `filters`, `dy` or `dx` differs from the
/// number of elements of the filters, the output gradients or the image gradients.
pub(crate) fn convolve_backward_input<T: Element>(
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
    with_scratch(accumulator_len::<T>(filters.len()), |scratch| {
        let filters = widened(filters, scratch);
        match Depthwise::new(op) {
            Some(depthwise) => depthwise.backward_input(task_workers(workers, op), filters, dy, dx),
            None => return backward_input::by_gemm(workers, op, filters, dy, dx),
        }
        Ok(())
    })
}

/// Filter gradient of a convolution, added to `dfilters`: `dfilters ← dfilters + dy ∗ x`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if the length of `x`, `dy` or `dfilters` differs from the
/// number of elements of the images, the output gradients or the filter gradients.
pub(crate) fn convolve_backward_filters<T: Element>(
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
    match Depthwise::new(op) {
        Some(depthwise) => backward_filters::by_depthwise(workers, op, &depthwise, x, dy, dfilters),
        None => return backward_filters::by_gemm(workers, op, x, dy, dfilters),
    }
    Ok(())
}

#[cfg(test)]
mod tests;

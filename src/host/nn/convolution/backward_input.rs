//! Input gradient of a convolution. The gradient is computed by a convolution of `dy` with flipped
//! filters, or by a GEMM followed by `col2im`.

use crate::{
    element::{Element, is_same},
    error::Result,
    host::{
        blas::gemm::gemm,
        cache::scratch::with_scratch,
        nn::{
            col2im::col2im_accumulate,
            convolution::{
                forward,
                schedule::{task_workers, try_for_each_task},
                winograd::Winograd,
            },
            tap_range::WindowTaps,
        },
        simd::accumulator::{accumulator_len, overwrite_widened, widened},
        threads::Workers,
    },
    op::{Convolution, Gemm, SpatialAxis, Transpose, Window},
};
use num_traits::Float;

/// Number of elements of the im2col matrix that stay in L1 from the GEMM until `col2im` adds them
/// to the images.
const L1_COLUMNS_LEN: usize = 1 << 14;

/// Smallest number of rows of the im2col matrix for which a GEMM is efficient.
const MIN_M: usize = 96;

/// Number of channels whose filters one task of `flip_filters` flips: more than one, so that the
/// task reads contiguous taps.
const CHANNELS_PER_BLOCK: usize = 16;

/// `dx ← filtersᵀ ∗ dy`
pub(crate) fn by_gemm<T: Element>(
    workers: &Workers,
    op: &Convolution,
    filters: &[T::Acc],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    match flipped_convolution(op)? {
        Some(flipped_op) => with_scratch(filters.len(), |flipped: &mut [T::Acc]| {
            flip_filters(task_workers(workers, op), op, filters, flipped);
            forward::by_gemm(workers, &flipped_op, dy, flipped, None, None, dx)
        }),
        None => {
            if const { is_same::<T::Acc, f32>() }
                && let Some(winograd) = Winograd::if_input_gradient_is_faster(op)
            {
                return winograd.convolve_backward_input(workers, filters, dy, dx);
            }
            by_columns(workers, op, filters, dy, dx)
        }
    }
}

/// Returns the convolution that computes `dx` from `dy` and the flipped filters.
///
/// Returns `None` for strides above 1, and for padding at least as wide as the dilated kernel. Also
/// returns `None` if the number of image elements exceeds the number of windows by more than 25 %,
/// because [`by_columns`] is then faster. The GEMM of [`by_columns`] computes one column per
/// window, but the flipped convolution computes one output per image element.
fn flipped_convolution(op: &Convolution) -> Result<Option<Convolution>> {
    let window = op.window();
    let flipped_axis = |(axis, &output): (&SpatialAxis, &usize)| {
        let pad = (axis.dilation * (axis.kernel - 1)).checked_sub(axis.pad)?;
        (axis.stride == 1).then_some(SpatialAxis { input: output, pad, ..*axis })
    };
    let axes: Option<Vec<_>> =
        window.axes().iter().zip(window.output()).map(flipped_axis).collect();
    match axes {
        Some(axes) if (1..=5 * window.positions()).contains(&(4 * window.plane_len())) => {
            let window = Window::new(op.outputs(), &axes)?;
            Convolution::new(op.batch(), op.window().channels(), op.groups(), window).map(Some)
        }
        _ => Ok(None),
    }
}

/// Writes `filters` to `flipped` with the taps reversed and the input and output channels swapped,
/// as [`flipped_convolution`] requires.
///
/// The flipped convolution has one filter per input channel of `op`. The filter for channel `c`
/// holds, for each output channel of the group, the taps with which the filter of that output
/// channel reads `c`, in reverse order.
fn flip_filters<A: Element>(workers: &Workers, op: &Convolution, filters: &[A], flipped: &mut [A]) {
    let (taps, rows) = (op.window().taps(), op.window().column_rows() / op.groups());
    let (channels, outputs) = (rows / taps.max(1), op.outputs() / op.groups());
    let (group_len, flipped_len) = (outputs * rows, outputs * taps);
    if group_len == 0 {
        return;
    }
    for (from, to) in filters.chunks(group_len).zip(flipped.chunks_mut(group_len)) {
        workers.for_each_chunk(to, CHANNELS_PER_BLOCK.min(channels) * flipped_len, |block, to| {
            let first = block * CHANNELS_PER_BLOCK;
            for o in 0..outputs {
                for (c, to) in (first..).zip(to.chunks_exact_mut(flipped_len)) {
                    let from = &from[o * rows + c * taps..][..taps];
                    let to = &mut to[o * taps..][..taps];
                    to.iter_mut().zip(from.iter().rev()).for_each(|(to, &from)| *to = from);
                }
            }
        });
    }
}

/// Computes the gradient of the im2col matrix, `filtersᵀ · dy`, in blocks of channels, and adds
/// each block to the images with `col2im`.
fn by_columns<T: Element>(
    workers: &Workers,
    op: &Convolution,
    filters: &[T::Acc],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    let window = op.window();
    let (image_len, output_len) = (window.image_len(), op.outputs() * window.positions());
    let window_taps = WindowTaps::of(window);
    let gemm_flops = op.flops() / (op.batch() * op.groups()).max(1) as u64;
    try_for_each_task(workers, op, gemm_flops, dx, image_len, |gemm_workers, i, dx| {
        let dy = &dy[i * output_len..][..output_len];
        with_scratch(accumulator_len::<T>(dy.len()), |dy_scratch| {
            with_scratch(accumulator_len::<T>(dx.len()), |dx_scratch| {
                let dy = widened(dy, dy_scratch);
                let mut result = Ok(());
                overwrite_widened(dx, dx_scratch, |dx| {
                    result = backward_one_image(gemm_workers, op, &window_taps, filters, dy, dx);
                });
                result
            })
        })
    })
}

/// Computes `dx` like [`by_columns`], but for one image.
fn backward_one_image<A: Element<Acc = A> + Float>(
    workers: &Workers,
    op: &Convolution,
    window_taps: &WindowTaps,
    filters: &[A],
    dy: &[A],
    dx: &mut [A],
) -> Result<()> {
    let window = op.window();
    let (taps, plane_len, n) = (window.taps(), window.plane_len(), window.positions());
    let channels = window.channels() / op.groups();
    let (rows, k) = (channels * taps, op.outputs() / op.groups());
    let block = match n {
        // A GEMM with one column and few rows adds products in a different order from larger GEMMs.
        // Run one GEMM for all channels, so that results do not depend on the number of threads.
        1 => channels.max(1),
        _ => {
            // Threads that share a GEMM compute all channels at once, so that each thread has
            // enough work. A single thread computes as many channels of the im2col matrix at a time
            // as fit in L1.
            let l1_channels = (L1_COLUMNS_LEN / (taps * n).max(1)).max(MIN_M.div_ceil(taps));
            let max = if workers.count() > 1 { channels } else { l1_channels };
            // All blocks have about the same number of channels, because the GEMM of a small last
            // block could have only one row, and would then add products in a different order.
            channels.div_ceil(channels.div_ceil(max.clamp(1, channels.max(1))))
        }
    };
    for group in 0..op.groups() {
        let (filters, dy) = (&filters[group * k * rows..][..k * rows], &dy[group * k * n..]);
        for first in (0..channels).step_by(block) {
            let count = block.min(channels - first);
            let (row, m) = (first * taps, count * taps);
            let gemm_op = Gemm::<A>::new(m, n, k)
                .transpose(Transpose::Yes, Transpose::No)
                .leading_dims(rows, n, n);
            with_scratch(m * n, |columns: &mut [A]| {
                gemm(workers, &gemm_op, &filters[row.min(filters.len())..], dy, columns)?;
                let dx = &mut dx[(group * channels + first) * plane_len..][..count * plane_len];
                col2im_accumulate(workers, window_taps, columns, n, dx);
                Ok(())
            })?;
        }
    }
    Ok(())
}

//! Gradients of the images: two ways to compute them.

use crate::host::simd::accumulator::accumulator_len;
use crate::{
    element::Element,
    error::Result,
    host::{
        blas::gemm::gemm,
        cache::scratch::with_scratch,
        nn::{
            col2im::col2im_accumulate,
            convolution::{forward, levels, share},
            tap_range::WindowTaps,
        },
        simd::accumulator::{overwrite_widened, widened},
        threads::Workers,
    },
    op::{Convolution, Gemm, SpatialAxis, Transpose, Window},
};
use num_traits::Float;

/// Elements of columns that stay in a first-level cache, or nearly, until they are added up.
const RESIDENT: usize = 1 << 14;

/// Rows of columns below which a product is too low to be fast.
const MIN_M: usize = 96;

/// `dx ← filtersᵀ ∗ dy`
pub(crate) fn by_slabs<T: Element>(
    workers: &Workers,
    op: &Convolution,
    filters: &[T::Acc],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    match mirrored(op)? {
        Some(mirrored) => with_scratch(filters.len(), |turned: &mut [T::Acc]| {
            mirror(share(workers, op), op, filters, turned);
            forward::by_slabs(workers, &mirrored, dy, turned, None, None, dx)
        }),
        None => by_columns(workers, op, filters, dy, dx),
    }
}

/// Channels whose filters are mirrored side by side.
const CHANNELS_PER_BLOCK: usize = 16;

/// The convolution of the gradients of the results, with mirrored filters, that gives those of the
/// images: where every window is one step from the next, and not much more is computed than by
/// [`by_columns`], for elements of the image than for windows.
fn mirrored(op: &Convolution) -> Result<Option<Convolution>> {
    let window = op.window();
    let mirrored = |(axis, &output): (&SpatialAxis, &usize)| {
        let pad = (axis.dilation * (axis.kernel - 1)).checked_sub(axis.pad)?;
        (axis.stride == 1).then_some(SpatialAxis { input: output, pad, ..*axis })
    };
    let axes: Option<Vec<_>> = window.axes().iter().zip(window.output()).map(mirrored).collect();
    match axes {
        Some(axes) if (1..=5 * window.positions()).contains(&(4 * window.plane_len())) => {
            let window = Window::new(op.outputs(), &axes)?;
            Convolution::new(op.batch(), op.window().channels(), op.groups(), window).map(Some)
        }
        _ => Ok(None),
    }
}

/// Filters of the [`mirrored`] convolution: of one input plane for all output planes of its group,
/// their taps in reverse.
fn mirror<A: Element>(workers: &Workers, op: &Convolution, filters: &[A], mirrored: &mut [A]) {
    let (taps, rows) = (op.window().taps(), op.window().column_rows() / op.groups());
    let (channels, outputs) = (rows / taps.max(1), op.outputs() / op.groups());
    let (part, channel) = (outputs * rows, outputs * taps);
    if part == 0 {
        return;
    }
    for (from, to) in filters.chunks(part).zip(mirrored.chunks_mut(part)) {
        // A few channels at a time: both sides are then read and written in runs, or nearly.
        workers.for_each_chunk(to, CHANNELS_PER_BLOCK.min(channels) * channel, |block, to| {
            for o in 0..outputs {
                for (c, to) in (block * CHANNELS_PER_BLOCK..).zip(to.chunks_exact_mut(channel)) {
                    let from = &from[o * rows + c * taps..][..taps];
                    let to = &mut to[o * taps..][..taps];
                    to.iter_mut().zip(from.iter().rev()).for_each(|(to, &from)| *to = from);
                }
            }
        });
    }
}

/// The columns `filtersᵀ·dy`, a few channels at a time, added to the images they stem from.
fn by_columns<T: Element>(
    workers: &Workers,
    op: &Convolution,
    filters: &[T::Acc],
    dy: &[T],
    dx: &mut [T],
) -> Result<()> {
    let window = op.window();
    let (image, result) = (window.image_len(), op.outputs() * window.positions());
    let reaches = WindowTaps::of(window);
    let (outer, inner) = levels(workers, op, op.batch());
    outer.try_for_each_chunk(dx, image, |i, dx| {
        let dy = &dy[i * result..][..result];
        with_scratch(accumulator_len::<T>(dy.len()), |room_y| {
            with_scratch(accumulator_len::<T>(dx.len()), |room_x| {
                let dy = widened(dy, room_y);
                let mut done = Ok(());
                overwrite_widened(dx, room_x, |dx| {
                    done = one_image(inner, op, &reaches, filters, dy, dx);
                });
                done
            })
        })
    })
}

/// `dx ← filtersᵀ ∗ dy`
fn one_image<A: Element<Acc = A> + Float>(
    workers: &Workers,
    op: &Convolution,
    reaches: &WindowTaps,
    filters: &[A],
    dy: &[A],
    dx: &mut [A],
) -> Result<()> {
    let window = op.window();
    let (taps, plane, n) = (window.taps(), window.plane_len(), window.positions());
    let channels = window.channels() / op.groups();
    let (rows, k) = (channels * taps, op.outputs() / op.groups());
    // Threads that share a product want all of it at once.
    let few = (RESIDENT / (taps * n).max(1)).max(MIN_M.div_ceil(taps));
    let most = if workers.count() > 1 { channels } else { few }.clamp(1, channels.max(1));
    // Alike: products of one row or, if there is but one position, of few are summed otherwise.
    let most = if n == 1 { channels.max(1) } else { channels.div_ceil(channels.div_ceil(most)) };
    for group in 0..op.groups() {
        let (filters, dy) = (&filters[group * k * rows..][..k * rows], &dy[group * k * n..]);
        for first in (0..channels).step_by(most) {
            let count = most.min(channels - first);
            let (row, m) = (first * taps, count * taps);
            let product = Gemm::<A>::with_transpose(Transpose::Yes, Transpose::No, m, n, k);
            with_scratch(m * n, |columns: &mut [A]| {
                gemm(
                    workers,
                    &product.leading_dims(rows, n, n),
                    &filters[row.min(filters.len())..],
                    dy,
                    columns,
                )?;
                let dx = &mut dx[(group * channels + first) * plane..][..count * plane];
                col2im_accumulate(workers, reaches, columns, n, dx);
                Ok(())
            })?;
        }
    }
    Ok(())
}

//! Elementwise functions of a full-size operand and of smaller operands that are broadcast along
//! all axes but one.

use crate::{
    element::Element,
    error::Result,
    host::{
        cache::cache_line::CHUNK_ALIGN,
        elementwise::map::{binary_run, binary_run_in_place},
        simd::{
            accumulator::{
                CHUNK, accumulator_buffer, is_wide, overwrite_widened, update_widened, widen,
                widened,
            },
            vectorized,
        },
        threads::Workers,
    },
    op::{Axis, Binary},
};
use num_traits::Zero;
use std::borrow::Cow;

/// Number of elements of the result that one task computes. With fewer than `2 · GRAIN` elements,
/// two threads are not faster than one.
const GRAIN: usize = 1 << 17;

/// `y[o, e, i] ← f(a[o, e, i], b[e])`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `a` and `y` have `axis.count()` elements and `b`
/// has `axis.extent` elements.
pub(crate) fn broadcast<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    axis: &Axis,
    a: &[T],
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check_broadcast(axis, Some(a.len()), b.len(), y.len())?;
    for_broadcast_chunks(workers, axis, [&wide(b)], y, |start, [b], y, buffer_y| {
        let mut buffer_a = accumulator_buffer();
        let a = widened(&a[start..][..y.len()], &mut buffer_a);
        overwrite_widened(y, buffer_y, |y| binary_run(op, a, b, y));
    });
    Ok(())
}

/// `y[o, e, i] ← f(y[o, e, i], b[e])`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` has `axis.count()` elements and `b` has
/// `axis.extent` elements.
pub(crate) fn broadcast_in_place<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    axis: &Axis,
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check_broadcast(axis, None, b.len(), y.len())?;
    for_broadcast_chunks(workers, axis, [&wide(b)], y, |_, [b], y, buffer_y| {
        update_widened(y, buffer_y, |y| binary_run_in_place(op, b, y));
    });
    Ok(())
}

/// `y[o, e, i] ← x[o, e, i] · scale[e] + shift[e]`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x` and `y` have `axis.count()` elements, and
/// `scale` and `shift` have `axis.extent` elements.
pub(crate) fn affine<T: Element>(
    workers: &Workers,
    axis: &Axis,
    x: &[T],
    scale: &[T],
    shift: &[T],
    y: &mut [T],
) -> Result<()> {
    axis.check_affine(Some(x.len()), scale.len(), shift.len(), y.len())?;
    for_broadcast_chunks(
        workers,
        axis,
        [&wide(scale), &wide(shift)],
        y,
        |start, [scale, shift], y, buffer_y| {
            let mut buffer_x = accumulator_buffer();
            let x = widened(&x[start..][..y.len()], &mut buffer_x);
            overwrite_widened(y, buffer_y, |y| {
                vectorized(
                    #[inline(always)]
                    |_| {
                        for (((y, &x), &scale), &shift) in y.iter_mut().zip(x).zip(scale).zip(shift)
                        {
                            *y = x * scale + shift;
                        }
                    },
                );
            });
        },
    );
    Ok(())
}

/// `y[o, e, i] ← y[o, e, i] · scale[e] + shift[e]`.
///
/// # Errors
/// Returns any error from [`affine`].
pub(crate) fn affine_in_place<T: Element>(
    workers: &Workers,
    axis: &Axis,
    scale: &[T],
    shift: &[T],
    y: &mut [T],
) -> Result<()> {
    axis.check_affine(None, scale.len(), shift.len(), y.len())?;
    for_broadcast_chunks(
        workers,
        axis,
        [&wide(scale), &wide(shift)],
        y,
        |_, [scale, shift], y, buffer_y| {
            update_widened(y, buffer_y, |y| {
                vectorized(
                    #[inline(always)]
                    |_| {
                        for ((y, &scale), &shift) in y.iter_mut().zip(scale).zip(shift) {
                            *y = *y * scale + shift;
                        }
                    },
                );
            });
        },
    );
    Ok(())
}

/// Calls `body(start, operands, chunk, buffer)` for chunks of `y`. `start` is the index in `y` of
/// the chunk's first element, `operands` are broadcast to the chunk's length, and `buffer` can hold
/// a chunk.
pub(crate) fn for_broadcast_chunks<T: Element, const N: usize>(
    workers: &Workers,
    axis: &Axis,
    operands: [&[T::Acc]; N],
    y: &mut [T],
    body: impl Fn(usize, [&[T::Acc]; N], &mut [T], &mut [T::Acc]) + Send + Sync,
) {
    let period = axis.extent * axis.inner;
    if period == 0 {
        return;
    }
    // Broadcast operands repeat with a period of `extent · inner` elements. If the chunk length is
    // a multiple of the period, all chunks use the same broadcast operands.
    let repeats = period <= CHUNK;
    let step = if repeats { CHUNK / period * period } else { CHUNK };
    let chunk_len = workers.even_chunk_len(y.len(), GRAIN, CHUNK_ALIGN);
    workers.for_each_chunk(y, chunk_len, |task, y| {
        let (mut repeated, mut buffer) = ([accumulator_buffer(); N], accumulator_buffer());
        for (i, y) in y.chunks_mut(step).enumerate() {
            let start = task * chunk_len + i * step;
            if i == 0 || !repeats {
                for (operand, repeated) in operands.iter().zip(&mut repeated) {
                    repeat(operand, axis.inner, start, &mut repeated[..y.len()]);
                }
            }
            body(start, repeated.each_ref().map(|operand| &operand[..y.len()]), y, &mut buffer);
        }
    });
}

/// `y[j] ← b[(start + j) / inner mod extent]`
fn repeat<A: Copy>(b: &[A], inner: usize, start: usize, y: &mut [A]) {
    let period = b.len() * inner;
    let mut position = start % period;
    let mut filled_len = 0;
    while filled_len < y.len().min(period) {
        let e = position / inner;
        let len = if inner == 1 { b.len() - e } else { inner - position % inner };
        let len = len.min(y.len().min(period) - filled_len);
        match inner {
            1 => y[filled_len..][..len].copy_from_slice(&b[e..][..len]),
            _ => y[filled_len..][..len].fill(b[e]),
        }
        (filled_len, position) = (filled_len + len, (position + len) % period);
    }
    // Fill the rest of `y` with copies of the first period.
    while filled_len < y.len() {
        let len = filled_len.min(y.len() - filled_len);
        y.copy_within(..len, filled_len);
        filled_len += len;
    }
}

fn wide<T: Element>(x: &[T]) -> Cow<'_, [T::Acc]> {
    if const { is_wide::<T>() } {
        return Cow::Borrowed(crate::cast::cast_slice(x));
    }
    let mut widened_x = vec![T::Acc::zero(); x.len()];
    widen(x, &mut widened_x);
    Cow::Owned(widened_x)
}

//! Stochastic pooling, which draws an element of each window at random.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        nn::pooling::planes::{check_mask_range, plane_lens, planes_per_task, window_ranges},
        threads::Workers,
    },
    op::Pool2d,
};

/// Draws an element of each window with a probability proportional to the element's value. Writes
/// the drawn element to `y`, and its index in the input plane to `mask`. Negative elements and NaN
/// count as zero in the sums.
///
/// Every device must draw the same element: the first element at which the running sum over the
/// window exceeds `u` times the total sum of the window. The running sum and the total sum are
/// computed in row-major order and in `f64`. If no running sum is large enough, for example in a
/// window without positive elements, the first element of the window is drawn. A window without
/// elements yields 0 and a mask of −1. Zeiler and Fergus (2013) introduced stochastic pooling.
///
/// # Errors
/// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has the
/// wrong length. Returns [`Error::InvalidInput`](crate::Error::InvalidInput) for an input plane
/// with too many elements for the indices in `mask`.
pub(crate) fn stochastic_pool<T: Element>(
    workers: &Workers,
    op: &Pool2d,
    x: &[T],
    u: &[f32],
    y: &mut [T],
    mask: &mut [i32],
) -> Result<()> {
    op.check("stochastic_pool", ("x", x.len()), ("y", y.len()))?;
    check_len("stochastic_pool", "u", op.output_len(), u.len())?;
    check_len("stochastic_pool", "mask", op.output_len(), mask.len())?;
    check_mask_range("stochastic_pool", op)?;
    if y.is_empty() {
        return Ok(());
    }
    let (in_len, out_len) = plane_lens(op);
    let task_len = planes_per_task(workers, op) * out_len;
    workers.for_each_chunk_pair((y, task_len), (mask, task_len), |task, y, mask| {
        for (j, (y, mask)) in (task * task_len..).zip(y.iter_mut().zip(mask)) {
            let x = &x[j / out_len * in_len..][..in_len];
            let index = draw(op, j % out_len, x, u[j].into());
            *y = index.map_or(T::default(), |index| x[index]);
            *mask = index.map_or(-1, |index| index as i32);
        }
    });
    Ok(())
}

/// Returns the index in plane `x` of the element drawn for `window`, or `None` if the window is
/// empty.
fn draw<T: Element>(op: &Pool2d, window: usize, x: &[T], u: f64) -> Option<usize> {
    let running_sums = || {
        window_ranges(op, window).flatten().scan(0.0, |sum, i| {
            *sum += x[i].to_f64().max(0.0);
            Some((i, *sum))
        })
    };
    let (_, total) = running_sums().last()?;
    let drawn_element = running_sums().find(|&(_, sum)| sum > u * total);
    drawn_element.or_else(|| running_sums().next()).map(|(i, _)| i)
}

//! Elements of windows, drawn at random.

use crate::{
    element::Element,
    error::{Error, Result, check_len},
    host::{
        Workers,
        nn::pooling::planes::{planes, planes_per_task, runs},
    },
    op::Pool2d,
};

/// `y ← an element of each window`, drawn with probability in proportion to it, and in `mask`
/// where it was found; negative elements and NaN count as zero.
///
/// What every device has to reproduce: elements are added up in row-major order, in `f64`; drawn
/// is the first whose sum exceeds `u` of the window times the sum of all. If none does, as where
/// none is positive, it is the first of the window. A window that holds nothing yields 0 and a
/// mask of −1. Source: Zeiler, Fergus 2013.
///
/// # Errors
/// [`Error::Length`] names the operand; [`Error::InvalidInput`] if a plane has more elements than a mask
/// can tell apart.
pub fn stochastic_pool<T: Element>(
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
    let ((from, to), per_task) = (planes(op), planes_per_task(op));
    if i32::try_from(from).is_err() {
        return Err(Error::invalid_input("stochastic_pool", format!("a plane of {from} elements")));
    }
    if y.is_empty() {
        return Ok(());
    }
    workers.for_each_chunk_pair((y, per_task * to), (mask, per_task * to), |i, y, mask| {
        for (j, (y, mask)) in (i * per_task * to..).zip(y.iter_mut().zip(mask)) {
            let x = &x[j / to * from..][..from];
            let place = drawn(op, j % to, x, u[j].into());
            *y = place.map_or(T::default(), |place| x[place]);
            *mask = place.map_or(-1, |place| place as i32);
        }
    });
    Ok(())
}

/// The element of plane `x` drawn of a window; `None` if it holds nothing.
fn drawn<T: Element>(op: &Pool2d, window: usize, x: &[T], u: f64) -> Option<usize> {
    let sums = || {
        runs(op, window).flatten().scan(0.0, |sum, at| {
            *sum += x[at].to_f64().max(0.0);
            Some((at, *sum))
        })
    };
    let (_, total) = sums().last()?;
    let found = sums().find(|&(_, sum)| sum > u * total).or_else(|| sums().next());
    found.map(|(at, _)| at)
}

//! The `k` greatest elements along an axis.

use crate::{element::Element, error::Result, host::threads::Workers, op::TopK};
use std::cmp::Ordering;

/// Approximate number of elements of `x` that one task reads, rounded to whole blocks of
/// `extent × inner` elements.
const GRAIN: usize = 1 << 14;

/// Sets `values[o, j, i]` to the j-th greatest element of `x[o, :, i]`, and `places[o, j, i]` to
/// the index of that element along the axis. [`TopK`] defines the order of equal elements and NaN.
/// Indices are stored in the element type, which represents integers exactly up to 2048 for `f16`
/// and up to 256 for `bf16`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if the length of an operand is wrong;
/// [`Error::InvalidInput`](crate::Error::InvalidInput) if the axis has fewer than `k` elements.
pub(crate) fn top_k<T: Element>(
    workers: &Workers,
    op: &TopK,
    x: &[T],
    values: &mut [T],
    places: &mut [T],
) -> Result<()> {
    op.check(x.len(), values.len(), places.len())?;
    let (axis, k) = (op.axis, op.k);
    let (x_block_len, y_block_len) = (axis.extent * axis.inner, k * axis.inner);
    if y_block_len == 0 {
        return Ok(());
    }
    let blocks_per_task = (GRAIN / x_block_len).max(1);
    let y_chunk_len = blocks_per_task * y_block_len;
    workers.for_each_chunk_pair(
        (values, y_chunk_len),
        (places, y_chunk_len),
        |task, values, places| {
            let mut run = Vec::with_capacity(axis.extent);
            let blocks =
                values.chunks_exact_mut(y_block_len).zip(places.chunks_exact_mut(y_block_len));
            for (o, (values, places)) in (task * blocks_per_task..).zip(blocks) {
                for i in 0..axis.inner {
                    let x = x[o * x_block_len + i..].iter().step_by(axis.inner).take(axis.extent);
                    run.clear();
                    run.extend(x.enumerate().map(|(e, &x)| (x, e)));
                    for (j, (value, e)) in select_greatest(&mut run, k).iter().enumerate() {
                        values[j * axis.inner + i] = *value;
                        places[j * axis.inner + i] = T::from_f64(*e as f64);
                    }
                }
            }
        },
    );
    Ok(())
}

/// Returns the `k` greatest elements in descending order, where `1 ≤ k ≤ run.len()`.
fn select_greatest<T: Element>(run: &mut [(T, usize)], k: usize) -> &[(T, usize)] {
    run.select_nth_unstable_by(k - 1, compare_ranks);
    run[..k].sort_unstable_by(compare_ranks);
    &run[..k]
}

/// Compares two elements with their indices: greater elements come before smaller elements, numbers
/// come before NaN, and among equal elements, the element with the larger index comes first.
fn compare_ranks<T: Element>(a: &(T, usize), b: &(T, usize)) -> Ordering {
    let (x, y) = (a.0.to_f64(), b.0.to_f64());
    let order = y.partial_cmp(&x).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()));
    order.then(b.1.cmp(&a.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{host::testing::operand, op::Axis};

    fn run_top_k(axis: [usize; 3], k: usize, x: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let axis = Axis::new(axis[0], axis[1], axis[2]).unwrap();
        let mut values = vec![f32::NAN; k * axis.reduced_count()];
        let mut places = values.clone();
        let op = TopK { axis, k };
        top_k(&Workers::sequential(), &op, x, &mut values, &mut places).unwrap();
        (values, places)
    }

    #[test]
    fn top_k_puts_the_later_of_equal_elements_first() {
        let x = [3.0, 5.0, 5.0, 1.0];
        assert_eq!(run_top_k([1, 4, 1], 3, &x), (vec![5.0, 5.0, 3.0], vec![2.0, 1.0, 0.0]));
        assert_eq!(run_top_k([1, 4, 1], 4, &[0.0, -0.0, 0.0, 0.0]).1, [3.0, 2.0, 1.0, 0.0]);
        assert_eq!(
            run_top_k([2, 2, 2], 1, &[1.0, 8.0, 2.0, 7.0, 4.0, 5.0, 3.0, 6.0]).1,
            [1.0, 0.0, 0.0, 1.0]
        );
    }

    #[test]
    fn top_k_puts_nan_last() {
        let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
        assert_eq!(run_top_k([1, 4, 1], 2, &[nan, 1.0, nan, low]).1, [1.0, 3.0]);
        assert_eq!(run_top_k([1, 2, 1], 1, &[nan, nan]).1, [1.0]);
    }

    #[test]
    fn top_k_does_not_depend_on_the_number_of_threads() {
        let op = TopK { axis: Axis::new(700, 90, 2).unwrap(), k: 3 };
        let x: Vec<f32> = (0..op.axis.count()).map(|i| (i * 7919 % 613) as f32).collect();
        let run = |workers: Workers| {
            let (mut values, mut places) = (vec![0.0; 4200], vec![0.0; 4200]);
            top_k(&workers, &op, &x, &mut values, &mut places).unwrap();
            (values, places)
        };
        assert_eq!(run(Workers::sequential()), run(Workers::new(3).unwrap()));
    }

    #[test]
    fn top_k_operands_of_wrong_length_are_errors() {
        let op = |k| TopK { axis: Axis::new(2, 3, 1).unwrap(), k };
        let (w, x, four, six) = (&Workers::sequential(), [0f32; 6], &mut [0.0; 4], &mut [0.0; 6]);
        assert_eq!(operand(top_k(w, &op(2), &x[1..], four, &mut [0.0; 4])), ("top_k", "x"));
        assert_eq!(operand(top_k(w, &op(2), &x, six, four)), ("top_k", "values"));
        assert_eq!(operand(top_k(w, &op(2), &x, four, six)), ("top_k", "places"));
        assert!(top_k(w, &op(4), &x, &mut [0.0; 8], &mut [0.0; 8]).is_err());
    }
}

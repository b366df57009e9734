use super::*;
use crate::{
    error::Error,
    host::{
        simd::level::with_each_simd_level,
        testing::{for_each_element, fractions, operand, threads, wide},
    },
};

const EMPTY: [(usize, usize, usize); 4] =
    [(0, 3, 2), (2, 0, 2), (2, 3, 0), (1 << (usize::BITS - 14), 3, 0)];

/// Returns the elements `x[o, :, i]` for each pair of `o` and `i`.
fn runs(axis: &Axis, x: &[f64]) -> Vec<Vec<f64>> {
    let (e, i) = (axis.extent, axis.inner);
    let run = |j| (0..e).map(|k| x[(j / i * e + k) * i + j % i]).collect();
    (0..axis.reduced_count()).map(run).collect()
}

/// Sums must not depend on the number of threads, and must be close to sums computed in `f64`.
fn reductions_do_not_depend_on_the_number_of_threads<T: Element>() {
    let large_axes = [(1, 2 * GRAIN + 100, 1), (200, 700, 1), (26, 11, 500), (2, 80, 900)];
    for (outer, extent, inner) in large_axes {
        let axis = Axis::new(outer, extent, inner).unwrap();
        let x = fractions::<T>(5, axis.count());
        let results = threads().map(|workers| {
            let (mut y, mut z) =
                (vec![T::default(); axis.reduced_count()], vec![T::default(); extent]);
            let mut indices = vec![0; axis.reduced_count()];
            reduce(&workers, Reduce::Sum, &axis, &x, &mut y).unwrap();
            sum_to_axis(&workers, &axis, T::acc(0.0), &x, &mut z).unwrap();
            arg_max(&workers, &axis, &x, &mut indices).unwrap();
            (wide(&y), wide(&z), indices)
        });
        assert!(results[0] == results[1] && results[0] == results[2]);
        let half_ulp = if T::DTYPE.size() == 2 { 2f64.powi(-8) } else { 0.0 };
        for (y, run) in results[0].0.iter().zip(runs(&axis, &wide(&x))) {
            let sum: f64 = run.iter().sum();
            let size: f64 = run.iter().map(|x| x.abs()).sum();
            assert!((y - sum).abs() <= half_ulp * sum.abs() + 1e-6 * size);
        }
    }
}

for_each_element!(reductions_do_not_depend_on_the_number_of_threads);

/// A sum of 100,000 elements of 0.1 in a single `f32` accumulator would be wrong by more than 1.
#[test]
fn long_sums_are_accurate() {
    let n = 100_000;
    let x = vec![0.1f32; 2 * n];
    let want = n as f64 * f64::from(0.1f32);
    for (axis, len) in [(Axis::new(2, n, 1), 2), (Axis::new(1, n, 2), 2)] {
        let mut y = vec![0.0; len];
        reduce(&Workers::sequential(), Reduce::Sum, &axis.unwrap(), &x, &mut y).unwrap();
        assert!(y.iter().all(|&y| (f64::from(y) - want).abs() < 5e-3), "{y:?} {want}");
    }
}

/// Compares results of `x86::row_sums` and of the portable loop of `reduce_rows` with results of
/// `reduce_slice`. Rows begin at different offsets in a cache line, and the number of rows is not
/// always a multiple of the group size.
#[test]
fn sums_of_rows_are_bit_identical_to_sums_of_slices() {
    with_each_simd_level(check_sums_of_rows);
}

fn check_sums_of_rows() {
    let w = Workers::sequential();
    let elements = fractions::<f32>(6, 40_000);
    for (extent, rows) in [(1, 40), (7, 19), (15, 33), (33, 5), (96, 16), (256, 37), (1000, 20)] {
        for start in [0, 1, 4, 13] {
            let x = &elements[start..][..extent * rows];
            let axis = Axis::new(rows, extent, 1).unwrap();
            for (op, map) in [
                (Reduce::Sum, (|x| x) as fn(f32) -> f32),
                (Reduce::AbsSum, f32::abs),
                (Reduce::SumSq, |x| x * x),
            ] {
                let mut y = vec![f32::NAN; rows];
                reduce(&w, op, &axis, x, &mut y).unwrap();
                for (row, y) in x.chunks(extent).zip(y) {
                    let slice = sum_reducer(map).reduce_slice(row);
                    assert_eq!(
                        y.to_bits(),
                        slice.to_bits(),
                        "{op:?} of {rows} rows of {extent} elements"
                    );
                }
            }
        }
    }
}

#[test]
fn reduction_along_an_empty_axis_gives_the_identity_or_an_error() {
    let w = Workers::sequential();
    for (outer, extent, inner) in EMPTY {
        let axis = Axis::new(outer, extent, inner).unwrap();
        let (x, mut y) = (vec![0.0f32; 0], vec![f32::NAN; axis.reduced_count()]);
        reduce(&w, Reduce::Sum, &axis, &x, &mut y).unwrap();
        assert!(y.iter().all(|&y| y == 0.0));
        reduce(&w, Reduce::Mean, &axis, &x, &mut y).unwrap();
        assert!(y.iter().all(|y| y.is_nan()));
        let mut z = vec![3.0; extent];
        sum_to_axis(&w, &axis, 2.0, &x, &mut z).unwrap();
        assert!(z.iter().all(|&z| z == 6.0));
        let result = reduce(&w, Reduce::Max, &axis, &x, &mut y);
        assert_eq!(
            matches!(result, Err(Error::InvalidInput { op: "reduce_max", .. })),
            extent == 0
        );
        let result = arg_max(&w, &axis, &x, &mut vec![0; axis.reduced_count()]);
        assert_eq!(matches!(result, Err(Error::InvalidInput { op: "arg_max", .. })), extent == 0);
    }
}

#[test]
fn reduction_errors_name_the_operand() {
    let (w, x, mut y) = (Workers::sequential(), [1.0f32; 12], [0.0; 12]);
    let axis = Axis::new(2, 3, 2).unwrap();
    assert_eq!(operand(reduce(&w, Reduce::Min, &axis, &x[1..], &mut y)), ("reduce_min", "x"));
    assert_eq!(operand(reduce(&w, Reduce::Min, &axis, &x, &mut y)), ("reduce_min", "y"));
    assert_eq!(operand(sum_to_axis(&w, &axis, 1.0, &x[1..], &mut y)), ("sum_to_axis", "x"));
    assert_eq!(operand(sum_to_axis(&w, &axis, 1.0, &x, &mut y)), ("sum_to_axis", "y"));
    assert_eq!(operand(arg_max(&w, &axis, &x[1..], &mut [0; 4])), ("arg_max", "x"));
    assert_eq!(operand(arg_max(&w, &axis, &x, &mut [0; 3])), ("arg_max", "y"));
}

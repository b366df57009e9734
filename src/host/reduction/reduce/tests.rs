use super::*;
use crate::{
    error::Error,
    host::{
        simd::level::with_each_simd_level,
        testing::{for_each_element, fractions, integers, operand, threads, wide},
    },
};

const AXES: [(usize, usize, usize); 13] = [
    (1, 1, 1),
    (3, 5, 1),
    (2, 1100, 1),
    (1, 33, 1),
    (64, 10, 1),
    (2, 3, 4),
    (3, 130, 5),
    (2, 7, 300),
    (1, 200, 17),
    (70, 300, 1),
    (5, 1, 64),
    (70, 3, 16),
    (65, 130, 2),
];

const EMPTY: [(usize, usize, usize); 4] = [(0, 3, 2), (2, 0, 2), (2, 3, 0), (1 << 50, 3, 0)];

fn axes() -> impl Iterator<Item = Axis> {
    AXES.into_iter().map(|(outer, extent, inner)| Axis::new(outer, extent, inner).unwrap())
}

/// Returns the elements `x[o, :, i]` for each pair of `o` and `i`.
fn runs(axis: &Axis, x: &[f64]) -> Vec<Vec<f64>> {
    let (e, i) = (axis.extent, axis.inner);
    let run = |j| (0..e).map(|k| x[(j / i * e + k) * i + j % i]).collect();
    (0..axis.reduced_count()).map(run).collect()
}

/// Returns the elements `x[:, e, :]` for each `e`.
fn channels(axis: &Axis, x: &[f64]) -> Vec<Vec<f64>> {
    let channel = |e| {
        let at_e = |(j, x): (usize, &f64)| (j / axis.inner % axis.extent == e).then_some(*x);
        x.iter().enumerate().filter_map(at_e).collect()
    };
    (0..axis.extent).map(channel).collect()
}

fn naive(op: Reduce, run: &[f64]) -> f64 {
    match op {
        Reduce::Sum => run.iter().sum(),
        Reduce::Mean => run.iter().sum::<f64>() / run.len() as f64,
        Reduce::Max => run.iter().copied().reduce(f64::max).unwrap(),
        Reduce::Min => run.iter().copied().reduce(f64::min).unwrap(),
        Reduce::AbsSum => run.iter().map(|x| x.abs()).sum(),
        Reduce::SumSq => run.iter().map(|x| x * x).sum(),
    }
}

const OPS: [Reduce; 6] =
    [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min, Reduce::AbsSum, Reduce::SumSq];

/// Rounds to the accumulator type, in which sums of integers are exact, and from there to `T`.
fn stored<T: Element>(v: f64) -> f64 {
    T::from_acc(T::acc(v)).to_f64()
}

fn reductions_of_integers_are_exact<T: Element>() {
    for axis in axes() {
        let x = integers::<T>(1, axis.count());
        let runs = runs(&axis, &wide(&x));
        for op in OPS {
            let want: Vec<_> = runs.iter().map(|run| stored::<T>(naive(op, run))).collect();
            let mut y = vec![T::from_f64(f64::NAN); axis.reduced_count()];
            reduce(&Workers::sequential(), op, &axis, &x, &mut y).unwrap();
            let close = |(y, want): (f64, f64)| match op {
                Reduce::Mean => (y - want).abs() <= 2f64.powi(-8) * want.abs(),
                _ => y == want,
            };
            assert!(wide(&y).into_iter().zip(want).all(close), "{op:?} {axis:?}");
        }
        let first_max = |run: &Vec<f64>| {
            let max = run.iter().copied().reduce(f64::max).unwrap();
            run.iter().position(|&x| x == max).unwrap() as u32
        };
        let mut y = vec![u32::MAX; axis.reduced_count()];
        arg_max(&Workers::sequential(), &axis, &x, &mut y).unwrap();
        assert_eq!(y, runs.iter().map(first_max).collect::<Vec<_>>(), "{axis:?}");
    }
}

fn channel_sums_of_integers_are_exact<T: Element>() {
    for axis in axes() {
        let (x, y0) = (integers::<T>(2, axis.count()), integers::<T>(3, axis.extent));
        let sums = channels(&axis, &wide(&x)).into_iter().map(|x| x.into_iter().sum::<f64>());
        let sums: Vec<_> = sums.collect();
        for beta in [0.0, 1.0, -0.5] {
            let start = |y: &T| if beta == 0.0 { T::from_f64(f64::NAN) } else { *y };
            let mut y: Vec<T> = y0.iter().map(start).collect();
            sum_to_axis(&Workers::sequential(), &axis, T::acc(beta), &x, &mut y).unwrap();
            let pairs = sums.iter().zip(wide(&y0));
            let want: Vec<_> = pairs.map(|(sum, y)| stored::<T>(sum + beta * y)).collect();
            assert_eq!(wide(&y), want, "{axis:?}");
        }
    }
}

fn nan_is_ignored_by_extremes<T: Element>() {
    let nan = T::from_f64(f64::NAN);
    for axis in axes().filter(|axis| axis.extent > 1) {
        let mut x = integers::<T>(4, axis.count());
        for (j, x) in x.iter_mut().enumerate() {
            // NaN replaces all of the first run, and every third element of the others.
            let (o, e, i) =
                (j / axis.inner / axis.extent, j / axis.inner % axis.extent, j % axis.inner);
            if o == 0 && i == 0 || (o + e + i) % 3 == 0 {
                *x = nan;
            }
        }
        let runs = runs(&axis, &wide(&x));
        let numbers = |run: &[f64]| run.iter().copied().filter(|x| !x.is_nan()).collect();
        let mut indices = vec![7; axis.reduced_count()];
        arg_max(&Workers::sequential(), &axis, &x, &mut indices).unwrap();
        for op in [Reduce::Max, Reduce::Min] {
            let mut y = vec![T::from_f64(9.0); axis.reduced_count()];
            reduce(&Workers::sequential(), op, &axis, &x, &mut y).unwrap();
            for ((y, run), &index) in y.iter().zip(&runs).zip(&indices) {
                let numbers: Vec<f64> = numbers(run);
                if numbers.is_empty() {
                    assert!(y.to_f64().is_nan() && index == 0);
                } else {
                    assert_eq!(y.to_f64(), naive(op, &numbers));
                    assert!(op == Reduce::Min || run[index as usize] == y.to_f64());
                }
            }
        }
    }
}

/// Also checks that sums are close to those in `f64`.
fn results_do_not_depend_on_the_number_of_threads<T: Element>() {
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

for_each_element!(
    reductions_of_integers_are_exact,
    channel_sums_of_integers_are_exact,
    nan_is_ignored_by_extremes,
    results_do_not_depend_on_the_number_of_threads
);

/// Sums 100,000 tenths, for which a single `f32` accumulator would be wrong by more than 1.
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

/// Compares `x86::row_sums` and the portable loop of `reduce_rows` with `reduce_slice`. Rows begin
/// anywhere in a cache line, and some groups of rows are incomplete.
#[test]
fn sums_of_rows_are_bit_identical_to_sums_of_slices() {
    with_each_simd_level(check_sums_of_rows);
}

fn check_sums_of_rows() {
    let w = Workers::sequential();
    let all = fractions::<f32>(6, 40_000);
    for (extent, rows) in [(1, 40), (7, 19), (15, 33), (33, 5), (96, 16), (256, 37), (1000, 20)] {
        for start in [0, 1, 4, 13] {
            let x = &all[start..][..extent * rows];
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
                    assert_eq!(y.to_bits(), slice.to_bits(), "{op:?} of {rows} × {extent}");
                }
            }
        }
    }
}

#[test]
fn empty_axes_give_the_identity_or_an_error() {
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
        let extreme = reduce(&w, Reduce::Max, &axis, &x, &mut y);
        assert_eq!(matches!(extreme, Err(Error::InvalidInput { op: "max", .. })), extent == 0);
        let result = arg_max(&w, &axis, &x, &mut vec![0; axis.reduced_count()]);
        assert_eq!(matches!(result, Err(Error::InvalidInput { op: "arg_max", .. })), extent == 0);
    }
}

#[test]
fn errors_name_the_operand() {
    let (w, x, mut y) = (Workers::sequential(), [1.0f32; 12], [0.0; 12]);
    let axis = Axis::new(2, 3, 2).unwrap();
    assert_eq!(operand(reduce(&w, Reduce::Min, &axis, &x[1..], &mut y)), ("min", "x"));
    assert_eq!(operand(reduce(&w, Reduce::Min, &axis, &x, &mut y)), ("min", "y"));
    assert_eq!(operand(sum_to_axis(&w, &axis, 1.0, &x[1..], &mut y)), ("sum_to_axis", "x"));
    assert_eq!(operand(sum_to_axis(&w, &axis, 1.0, &x, &mut y)), ("sum_to_axis", "y"));
    assert_eq!(operand(arg_max(&w, &axis, &x[1..], &mut [0; 4])), ("arg_max", "x"));
    assert_eq!(operand(arg_max(&w, &axis, &x, &mut [0; 3])), ("arg_max", "y"));
}

use super::*;
use crate::host::testing::{for_each_element, fractions, integers, operand, threads, wide};

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

/// The elements that belong to each `o` and `i`.
fn lines(axis: &Axis, x: &[f64]) -> Vec<Vec<f64>> {
    let (e, i) = (axis.extent, axis.inner);
    let line = |at| (0..e).map(|k| x[(at / i * e + k) * i + at % i]).collect();
    (0..axis.reduced_count()).map(line).collect()
}

/// The elements that belong to each `e`.
fn channels(axis: &Axis, x: &[f64]) -> Vec<Vec<f64>> {
    let of = |e| {
        let mine = |(j, x): (usize, &f64)| (j / axis.inner % axis.extent == e).then_some(*x);
        x.iter().enumerate().filter_map(mine).collect()
    };
    (0..axis.extent).map(of).collect()
}

fn naive(op: Reduce, line: &[f64]) -> f64 {
    match op {
        Reduce::Sum => line.iter().sum(),
        Reduce::Mean => line.iter().sum::<f64>() / line.len() as f64,
        Reduce::Max => line.iter().copied().reduce(f64::max).unwrap(),
        Reduce::Min => line.iter().copied().reduce(f64::min).unwrap(),
        Reduce::AbsSum => line.iter().map(|x| x.abs()).sum(),
        Reduce::SumSq => line.iter().map(|x| x * x).sum(),
    }
}

const OPS: [Reduce; 6] =
    [Reduce::Sum, Reduce::Mean, Reduce::Max, Reduce::Min, Reduce::AbsSum, Reduce::SumSq];

/// In `T`, through its type of sums: integers are exact up to there.
fn stored<T: Element>(v: f64) -> f64 {
    T::from_acc(T::acc(v)).to_f64()
}

fn integers_are_exact<T: Element>() {
    for axis in axes() {
        let x = integers::<T>(1, axis.count());
        let lines = lines(&axis, &wide(&x));
        for op in OPS {
            let want: Vec<_> = lines.iter().map(|line| stored::<T>(naive(op, line))).collect();
            let mut y = vec![T::from_f64(f64::NAN); axis.reduced_count()];
            reduce(&Workers::sequential(), op, &axis, &x, &mut y).unwrap();
            let close = |(y, want): (f64, f64)| match op {
                Reduce::Mean => (y - want).abs() <= 2f64.powi(-8) * want.abs(),
                _ => y == want,
            };
            assert!(wide(&y).into_iter().zip(want).all(close), "{op:?} {axis:?}");
        }
        let first_max = |line: &Vec<f64>| {
            let max = line.iter().copied().reduce(f64::max).unwrap();
            line.iter().position(|&x| x == max).unwrap() as u32
        };
        let mut y = vec![u32::MAX; axis.reduced_count()];
        arg_max(&Workers::sequential(), &axis, &x, &mut y).unwrap();
        assert_eq!(y, lines.iter().map(first_max).collect::<Vec<_>>(), "{axis:?}");
    }
}

fn channel_sums_are_exact<T: Element>() {
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

fn nan_is_passed_over<T: Element>() {
    let nan = T::from_f64(f64::NAN);
    for axis in axes().filter(|axis| axis.extent > 1) {
        let mut x = integers::<T>(4, axis.count());
        for (j, x) in x.iter_mut().enumerate() {
            // All of the first line, and every third element of the others.
            let (o, e, i) =
                (j / axis.inner / axis.extent, j / axis.inner % axis.extent, j % axis.inner);
            if o == 0 && i == 0 || (o + e + i) % 3 == 0 {
                *x = nan;
            }
        }
        let lines = lines(&axis, &wide(&x));
        let numbers = |line: &[f64]| line.iter().copied().filter(|x| !x.is_nan()).collect();
        let mut at = vec![7; axis.reduced_count()];
        arg_max(&Workers::sequential(), &axis, &x, &mut at).unwrap();
        for op in [Reduce::Max, Reduce::Min] {
            let mut y = vec![T::from_f64(9.0); axis.reduced_count()];
            reduce(&Workers::sequential(), op, &axis, &x, &mut y).unwrap();
            for ((y, line), &at) in y.iter().zip(&lines).zip(&at) {
                let numbers: Vec<f64> = numbers(line);
                if numbers.is_empty() {
                    assert!(y.to_f64().is_nan() && at == 0);
                } else {
                    assert_eq!(y.to_f64(), naive(op, &numbers));
                    assert!(op == Reduce::Min || line[at as usize] == y.to_f64());
                }
            }
        }
    }
}

/// Whatever the threads do, and close to the sum in `f64`.
fn any_number_of_threads<T: Element>() {
    let big = [(1, 2 * GRAIN + 100, 1), (200, 700, 1), (26, 11, 500), (2, 80, 900)];
    for (outer, extent, inner) in big {
        let axis = Axis::new(outer, extent, inner).unwrap();
        let x = fractions::<T>(5, axis.count());
        let results = threads().map(|workers| {
            let (mut y, mut z) =
                (vec![T::default(); axis.reduced_count()], vec![T::default(); extent]);
            let mut at = vec![0; axis.reduced_count()];
            reduce(&workers, Reduce::Sum, &axis, &x, &mut y).unwrap();
            sum_to_axis(&workers, &axis, T::acc(0.0), &x, &mut z).unwrap();
            arg_max(&workers, &axis, &x, &mut at).unwrap();
            (wide(&y), wide(&z), at)
        });
        assert!(results[0] == results[1] && results[0] == results[2]);
        let half_ulp = if T::DTYPE.size() == 2 { 2f64.powi(-8) } else { 0.0 };
        for (y, line) in results[0].0.iter().zip(lines(&axis, &wide(&x))) {
            let sum: f64 = line.iter().sum();
            let size: f64 = line.iter().map(|x| x.abs()).sum();
            assert!((y - sum).abs() <= half_ulp * sum.abs() + 1e-6 * size);
        }
    }
}

for_each_element!(
    integers_are_exact,
    channel_sums_are_exact,
    nan_is_passed_over,
    any_number_of_threads
);

/// A hundred thousand tenths: added one by one, `f32` would be off by more than 1.
#[test]
fn long_sums_stay_accurate() {
    let n = 100_000;
    let x = vec![0.1f32; 2 * n];
    let want = n as f64 * f64::from(0.1f32);
    for (axis, len) in [(Axis::new(2, n, 1), 2), (Axis::new(1, n, 2), 2)] {
        let mut y = vec![0.0; len];
        reduce(&Workers::sequential(), Reduce::Sum, &axis.unwrap(), &x, &mut y).unwrap();
        assert!(y.iter().all(|&y| (f64::from(y) - want).abs() < 5e-3), "{y:?} {want}");
    }
}

/// Wherever rows begin in a cache line, and however many of a group there are.
#[test]
fn sums_of_rows_have_the_bits_of_each() {
    let w = Workers::sequential();
    let all = fractions::<f32>(6, 40_000);
    for (extent, rows) in [(1, 40), (7, 19), (15, 33), (33, 5), (96, 16), (256, 37), (1000, 20)] {
        for start in [0, 1, 4, 13] {
            let x = &all[start..][..extent * rows];
            let axis = Axis::new(rows, extent, 1).unwrap();
            for (op, fold) in [
                (Reduce::Sum, (|x| x) as fn(f32) -> f32),
                (Reduce::AbsSum, f32::abs),
                (Reduce::SumSq, |x| x * x),
            ] {
                let mut y = vec![f32::NAN; rows];
                reduce(&w, op, &axis, x, &mut y).unwrap();
                for (row, y) in x.chunks(extent).zip(y) {
                    let alone = reduce_slice(row, sum_reducer(fold));
                    assert_eq!(y.to_bits(), alone.to_bits(), "{op:?} of {rows} × {extent}");
                }
            }
        }
    }
}

#[test]
fn nothing_to_reduce() {
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
        let at = arg_max(&w, &axis, &x, &mut vec![0; axis.reduced_count()]);
        assert_eq!(matches!(at, Err(Error::InvalidInput { op: "arg_max", .. })), extent == 0);
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

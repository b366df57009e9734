//! Tests of LRN against its definition and finite differences.

use super::*;
use crate::{
    element::DType,
    host::{
        nn::testing::{expect_close, expect_length_errors, numeric_gradient},
        testing::{for_each_element, fractions, threads, wide},
    },
};
use LrnRegion::{AcrossChannels, WithinChannel};

fn op(region: LrnRegion, shape: [usize; 4], size: usize, alpha: f64, beta: f64, k: f64) -> Lrn {
    let [batch, channels, height, width] = shape;
    Lrn { region, batch, channels, plane: [height, width], size, alpha, beta, k }
}

fn ops() -> Vec<Lrn> {
    vec![
        op(AcrossChannels, [2, 7, 3, 4], 5, 0.9, 0.75, 2.0),
        op(AcrossChannels, [1, 3, 1, 1], 9, 1.3, 0.6, 1.0),
        op(AcrossChannels, [2, 40, 25, 27], 5, 0.5, 0.75, 1.0),
        op(AcrossChannels, [3, 2, 2, 5], usize::MAX, 1e19, 0.75, 1.5),
        op(WithinChannel, [2, 3, 5, 4], 3, 1.0, 0.75, 7.0),
        op(WithinChannel, [1, 2, 6, 2], 7, 2.0, 1.1, 1.0),
        op(WithinChannel, [1, 1, 2, 1100], 5, 1.5, 0.75, 1.0),
        op(WithinChannel, [2, 1, 150, 250], 3, 1.0, 0.75, 1.0),
        op(WithinChannel, [1, 3, 1, 1], 3, 1.0, 0.75, 1.0),
    ]
}

/// Returns, for each element, its region, the factor of the region's sum of squares, and `k`.
///
/// Within a channel, Caffe composes LRN of a square, an average pooling and a power layer.
fn regions(op: &Lrn) -> Vec<(Vec<usize>, f64, f64)> {
    let [height, width] = op.plane;
    let (size, pad) = (op.size as i128, (op.size as i128 - 1) / 2);
    let index = |n, c, h, w| ((n * op.channels + c) * height + h) * width + w;
    // Start and end of the region in the padded input.
    let span = |position: usize, extent: usize| {
        let start = position as i128 - pad;
        (start, (start + size).min(extent as i128 + pad))
    };
    let inside = |(start, end): (i128, i128), extent: usize| {
        start.max(0) as usize..end.min(extent as i128) as usize
    };
    let region = |i| {
        let (w, h) = (i % width, i / width % height);
        let (c, n) = (i / width / height % op.channels, i / width / height / op.channels);
        if op.region == AcrossChannels {
            let channels = (0..op.channels).filter(|d| d.abs_diff(c) <= op.size / 2);
            let region = channels.map(|c| index(n, c, h, w)).collect();
            return (region, op.alpha / op.size as f64, op.k);
        }
        let (rows, columns) = (span(h, height), span(w, width));
        let area = (rows.1 - rows.0) * (columns.1 - columns.0);
        let row = |h| inside(columns, width).map(move |w| index(n, c, h, w));
        (inside(rows, height).flat_map(row).collect(), op.alpha / area as f64, 1.0)
    };
    (0..op.count()).map(region).collect()
}

/// Returns `scale` and `y` by the definition.
fn reference(op: &Lrn, x: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let scale: Vec<f64> = regions(op)
        .iter()
        .map(|(region, factor, k)| k + factor * region.iter().map(|&j| x[j] * x[j]).sum::<f64>())
        .collect();
    let y = x.iter().zip(&scale).map(|(x, s)| x * s.powf(-op.beta)).collect();
    (scale, y)
}

/// Returns the gradient by the definition: sums of the derivatives of each `y` by each element of
/// its region.
fn reference_backward(op: &Lrn, x: &[f64], dy: &[f64]) -> Vec<f64> {
    let scale = reference(op, x).0;
    let mut dx = vec![0.0; x.len()];
    for (i, (region, factor, _)) in regions(op).iter().enumerate() {
        dx[i] += dy[i] * scale[i].powf(-op.beta);
        for &j in region {
            let ds = 2.0 * factor * x[j];
            dx[j] -= dy[i] * x[i] * op.beta * scale[i].powf(-op.beta - 1.0) * ds;
        }
    }
    dx
}

/// Returns `scale`, `y` and `dx`. Results must be bit-identical on one, two and three threads.
fn run<T: Element>(op: &Lrn, x: &[T], dy: &[T]) -> [Vec<f64>; 3] {
    let got = threads().map(|w| {
        let nan = || vec![T::from_f64(f64::NAN); x.len()];
        let (mut scale, mut y, mut dx) = (nan(), nan(), nan());
        lrn(&w, op, x, &mut scale, &mut y).unwrap();
        lrn_backward(&w, op, x, &y, &scale, dy, &mut dx).unwrap();
        [wide(&scale), wide(&y), wide(&dx)]
    });
    assert!(got.iter().all(|one| *one == got[0]), "{op:?}");
    let [first, ..] = got;
    first
}

/// Returns the largest relative error of one rounding.
fn unit_roundoff<T: Element>() -> f64 {
    let larger = |e: &f64| T::from_f64(1.0 + e).to_f64() > 1.0;
    (1..60).map(|n| 0.5f64.powi(n)).take_while(larger).last().unwrap() / 2.0
}

fn both_directions_follow_the_definition<T: Element>() {
    for op in ops() {
        let (x, dy) = (fractions::<T>(1, op.count()), fractions::<T>(2, op.count()));
        let [scale, y, dx] = run(&op, &x, &dy);
        let want = reference(&op, &wide(&x));
        let rtol = unit_roundoff::<T>() + 16.0 * unit_roundoff::<T::Acc>();
        let what = format!("{op:?}");
        expect_close(&scale, &want.0, 0.0, rtol, &what);
        let atol = if T::DTYPE == DType::F16 { 3e-8 } else { 1e-30 }; // subnormal results
        expect_close(&y, &want.1, atol, rtol, &what);
        // The gradient is computed from rounded `y` and `scale`, and its terms may cancel.
        let bound = 8.0 * unit_roundoff::<T>() + 16.0 * unit_roundoff::<T::Acc>();
        expect_close(&dx, &reference_backward(&op, &wide(&x), &wide(&dy)), bound, bound, &what);
    }
}

/// If s = 16, then s^(−¾) = ⅛, and nothing is rounded.
fn powers_of_two_give_exact_results<T: Element>() {
    let single = op(AcrossChannels, [1, 2, 1, 2], 1, 1.0, 0.75, 0.0);
    let x = [4.0, -4.0, -4.0, 4.0].map(T::from_f64);
    let [scale, y, dx] = run(&single, &x, &[1.0, -2.0, 4.0, 0.0].map(T::from_f64));
    assert_eq!((scale, y), (vec![16.0; 4], vec![0.5, -0.5, -0.5, 0.5]));
    // dy/8 − 3/2 · x · dy·y/16
    assert_eq!(dx, [-0.0625, 0.125, -0.25, 0.0]);
    let three = op(AcrossChannels, [1, 3, 1, 1], 3, 3.0, 0.75, 7.0);
    let [scale, y, _] = run(&three, &[0.0, 3.0, 0.0].map(T::from_f64), &[T::default(); 3]);
    assert_eq!((scale, y), (vec![16.0; 3], vec![0.0, 0.375, 0.0]));
}

fn empty_operands_are_accepted<T: Element>() {
    for region in [AcrossChannels, WithinChannel] {
        for shape in [[0, 3, 2, 2], [2, 0, 2, 2], [2, 3, 0, 2], [2, 3, 2, 0]] {
            run::<T>(&op(region, shape, 3, 1.0, 0.75, 1.0), &[], &[]);
        }
    }
}

for_each_element!(
    both_directions_follow_the_definition,
    powers_of_two_give_exact_results,
    empty_operands_are_accepted
);

#[test]
fn backward_is_the_numeric_gradient() {
    for op in ops().into_iter().filter(|op| op.count() < 1000) {
        let (x, dy) = (fractions::<f64>(3, op.count()), fractions::<f64>(4, op.count()));
        let want = numeric_gradient(&x, 1e-5, |x| {
            let (mut scale, mut y) = (vec![0.0; x.len()], vec![0.0; x.len()]);
            lrn(&Workers::sequential(), &op, x, &mut scale, &mut y).unwrap();
            y.iter().zip(&dy).map(|(y, dy)| y * dy).sum()
        });
        expect_close(&run(&op, &x, &dy)[2], &want, 1e-8, 1e-8, &format!("{op:?}"));
    }
}

#[test]
fn errors_name_the_operand_or_size() {
    let (w, mut op) = (&Workers::sequential(), op(AcrossChannels, [1, 2, 1, 1], 3, 1.0, 0.75, 1.0));
    let operands = [("x", 2), ("scale", 2), ("y", 2)];
    expect_length_errors("lrn", operands, |[x, mut scale, mut y]| {
        lrn(w, &op, &x, &mut scale, &mut y)
    });
    let operands = [("x", 2), ("y", 2), ("scale", 2), ("dy", 2), ("dx", 2)];
    expect_length_errors("lrn_backward", operands, |[x, y, scale, dy, mut dx]| {
        lrn_backward(w, &op, &x, &y, &scale, &dy, &mut dx)
    });
    op.size = 4;
    let x = [1.0f32; 2];
    assert!(lrn(w, &op, &x, &mut [0.0; 2], &mut [0.0; 2]).is_err());
    assert!(lrn_backward(w, &op, &x, &x, &x, &x, &mut [0.0; 2]).is_err());
}

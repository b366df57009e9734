//! Tests of LRN. The conformance kit compares it with its definition.

use super::*;
use crate::host::{
    nn::testing::expect_length_errors,
    testing::{for_each_element, fractions, threads, wide},
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

fn results_are_bit_identical_on_any_number_of_threads<T: Element>() {
    for op in ops() {
        run(&op, &fractions::<T>(1, op.count()), &fractions::<T>(2, op.count()));
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
    results_are_bit_identical_on_any_number_of_threads,
    powers_of_two_give_exact_results,
    empty_operands_are_accepted
);

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

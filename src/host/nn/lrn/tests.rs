//! Tests of LRN on several threads and of LRN errors. The conformance kit compares the results with
//! the definition of LRN.

use super::*;
use crate::host::{
    nn::testing::expect_length_errors,
    testing::{for_each_element, fractions, nan, threads},
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

fn lrn_is_bit_identical_on_any_number_of_threads<T: Element>() {
    for op in ops() {
        let (x, dy) = (fractions::<T>(1, op.count()), fractions::<T>(2, op.count()));
        let results = threads().map(|w| {
            let (mut scale, mut y, mut dx) = (nan(x.len()), nan(x.len()), nan(x.len()));
            lrn(&w, &op, &x, &mut scale, &mut y).unwrap();
            lrn_backward(&w, &op, &x, &y, &scale, &dy, &mut dx).unwrap();
            (scale, y, dx)
        });
        assert!(results[0] == results[1] && results[0] == results[2], "{op:?}");
    }
}

for_each_element!(lrn_is_bit_identical_on_any_number_of_threads);

#[test]
fn lrn_errors_name_the_operand_or_size() {
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

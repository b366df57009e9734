//! Tests of pooling on several threads, of pooling errors and of special values. The conformance
//! kit compares the results with the definition of pooling.

use crate::{
    element::Element,
    error::Error,
    host::{
        nn::{
            pooling::{planes::GRAIN, *},
            testing::expect_length_errors,
        },
        testing::{for_each_element, fractions, integers, nan, threads},
        threads::Workers,
    },
    op::{Pool2d, PoolRounding},
};

/// Returns integers with many duplicates, but replaces every fifth element by NaN, an infinity or a
/// zero of either sign.
fn special_values<T: Element>(op: &Pool2d) -> Vec<T> {
    let special = [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -0.0, 0.0];
    let mut x = integers::<T>(1, op.input_len());
    for (i, x) in x.iter_mut().enumerate().filter(|(i, _)| i % 5 == 2) {
        *x = T::from_f64(special[i / 5 % 5]);
    }
    x
}

fn pooling_is_bit_identical_on_any_number_of_threads<T: Element>() {
    for (kernel, stride, pad) in [(2, 2, 0), (3, 2, 1), (20, 1, 0)] {
        let planes = 2 * GRAIN / 400 + 5;
        let [kernel, stride, pad] = [kernel, stride, pad].map(|v| [v, v]);
        let op = Pool2d::new(planes, [20, 20], kernel, stride, pad, PoolRounding::Ceil).unwrap();
        let x = special_values::<T>(&op);
        let dy = integers::<T>(5, op.output_len());
        let u = fractions::<f32>(7, op.output_len());
        let results = threads().map(|workers| {
            let [mut max, mut mean, mut drawn] = [(); 3].map(|()| nan(op.output_len()));
            let [mut max_dx, mut mean_dx] = [(); 2].map(|()| nan(op.input_len()));
            let [mut mask, mut drawn_mask] = [(); 2].map(|()| vec![0; op.output_len()]);
            max_pool(&workers, &op, &x, &mut max, &mut mask).unwrap();
            max_pool_backward(&workers, &op, &dy, &mask, &mut max_dx).unwrap();
            average_pool(&workers, &op, &max_dx, &mut mean).unwrap();
            average_pool_backward(&workers, &op, &dy, &mut mean_dx).unwrap();
            stochastic_pool(&workers, &op, &max_dx, &u, &mut drawn, &mut drawn_mask).unwrap();
            let all_results: [&[T]; 5] = [&max, &max_dx, &mean, &mean_dx, &drawn];
            (all_results.map(|v| crate::cast::cast_slice::<T, u8>(v).to_vec()), mask, drawn_mask)
        });
        assert!(results[0] == results[1] && results[0] == results[2]);
    }
}

for_each_element!(pooling_is_bit_identical_on_any_number_of_threads);

#[test]
fn pooling_errors_name_the_operand_or_mask() {
    let w = &Workers::sequential();
    let op = &Pool2d::new(2, [4, 4], [2, 2], [2, 2], [0, 0], PoolRounding::Ceil).unwrap();
    let mask_of = |mask: Vec<f32>| vec![0; mask.len()];
    expect_length_errors("max_pool", [("x", 32), ("y", 8), ("mask", 8)], |[x, mut y, mask]| {
        max_pool(w, op, &x, &mut y, &mut mask_of(mask))
    });
    let operands = [("dy", 8), ("mask", 8), ("dx", 32)];
    expect_length_errors("max_pool_backward", operands, |[dy, mask, mut dx]| {
        max_pool_backward(w, op, &dy, &mask_of(mask), &mut dx)
    });
    expect_length_errors("average_pool", [("x", 32), ("y", 8)], |[x, mut y]| {
        average_pool(w, op, &x, &mut y)
    });
    expect_length_errors("average_pool_backward", [("dy", 8), ("dx", 32)], |[dy, mut dx]| {
        average_pool_backward(w, op, &dy, &mut dx)
    });
    let operands = [("x", 32), ("u", 8), ("y", 8), ("mask", 8)];
    expect_length_errors("stochastic_pool", operands, |[x, u, mut y, mask]| {
        stochastic_pool(w, op, &x, &u, &mut y, &mut mask_of(mask))
    });
    for bad in [16, -2, i32::MAX, i32::MIN] {
        let mask = [0, 15, -1, 3, 0, bad, 99, 0];
        let result = max_pool_backward(w, op, &[1.0f32; 8], &mask, &mut [0.0; 32]);
        let Err(Error::InvalidInput { op: "max_pool_backward", reason }) = result else { panic!() };
        assert!(reason.contains(&format!("mask {bad} ")), "{reason}");
    }
}

#[test]
fn pooling_accepts_empty_operands() {
    let w = Workers::sequential();
    let op = Pool2d::new(0, [4, 4], [2, 2], [2, 2], [0, 0], PoolRounding::Ceil).unwrap();
    max_pool::<f32>(&w, &op, &[], &mut [], &mut []).unwrap();
    max_pool_backward::<f32>(&w, &op, &[], &[], &mut []).unwrap();
    average_pool::<f32>(&w, &op, &[], &mut []).unwrap();
    average_pool_backward::<f32>(&w, &op, &[], &mut []).unwrap();
    let op = Pool2d::new(2, [0, 3], [2, 1], [2, 2], [1, 0], PoolRounding::Ceil).unwrap();
    let (mut y, mut mask) = (vec![0.0; op.output_len()], vec![0; op.output_len()]);
    max_pool::<f32>(&w, &op, &[], &mut y, &mut mask).unwrap();
    assert!(y.iter().all(|&y| y == f32::MIN) && mask.iter().all(|&mask| mask == -1));
    // A batch without images or channels has no planes, although a single plane of these extents
    // would exceed memory.
    let extent = 1 << (usize::BITS / 2 - 4);
    let plane = [extent; 2];
    for (input, kernel, pad) in [([1; 2], [extent + 1; 2], plane), (plane, [extent / 2; 2], [0; 2])]
    {
        let op = Pool2d::new(0, input, kernel, [1; 2], pad, PoolRounding::Ceil).unwrap();
        let _ = max_pool::<f32>(&w, &op, &[], &mut [], &mut []);
        max_pool_backward::<f32>(&w, &op, &[], &[], &mut []).unwrap();
        average_pool::<f32>(&w, &op, &[], &mut []).unwrap();
        average_pool_backward::<f32>(&w, &op, &[], &mut []).unwrap();
        let _ = stochastic_pool::<f32>(&w, &op, &[], &[], &mut [], &mut []);
    }
}

#[test]
fn pooling_with_an_inconsistent_descriptor_is_an_error() {
    let valid_op = Pool2d::new(2, [4, 4], [2, 2], [2, 2], [0, 0], PoolRounding::Ceil).unwrap();
    let (w, x) = (&Workers::sequential(), &[1.0f32; 32][..]);
    let (mut y, mut mask) = ([0.0; 8], [0; 8]);
    let inconsistent_changes: [fn(&mut Pool2d); 5] = [
        |op| op.stride = [0, 2],
        |op| op.kernel = [5, 5],
        |op| op.input = [8, 2],
        |op| op.pad = [2, 2],
        |op| op.planes = usize::MAX,
    ];
    for change in inconsistent_changes {
        let mut op = valid_op;
        change(&mut op);
        assert!(max_pool(w, &op, x, &mut y, &mut mask).is_err(), "{op:?}");
        assert!(average_pool(w, &op, x, &mut y).is_err(), "{op:?}");
    }
    let mut op = valid_op;
    op.kernel = [3, 3];
    max_pool(w, &op, x, &mut y, &mut mask).unwrap();
}

#[test]
fn pooling_stride_that_overflows_is_an_error() {
    let (input, stride) = (usize::MAX - 10, usize::MAX / 2 + 1);
    assert!(Pool2d::new(1, [input, 1], [2, 1], [stride, 1], [1, 0], PoolRounding::Ceil).is_err());
}

#[test]
fn stochastic_pooling_draws_in_proportion_to_the_elements() {
    let op = Pool2d::new(1, [2, 3], [2, 3], [1, 1], [0, 0], PoolRounding::Floor).unwrap();
    let x = [1.0f32, -5.0, 3.0, 0.0, f32::NAN, 4.0];
    let mut counts = [0; 6];
    for i in 0..800 {
        let (u, mut y, mut mask) = ([i as f32 / 800.0], [0.0], [0]);
        stochastic_pool(&Workers::sequential(), &op, &x, &u, &mut y, &mut mask).unwrap();
        let index = usize::try_from(mask[0]).unwrap();
        assert_eq!(y[0], x[index]);
        counts[index] += 1;
    }
    assert_eq!(counts, [100, 0, 300, 0, 0, 400]);
}

#[test]
fn stochastic_pooling_without_positive_elements_draws_the_first_or_zero() {
    let op = Pool2d::new(1, [1, 4], [1, 2], [1, 3], [0, 0], PoolRounding::Ceil).unwrap();
    let (mut y, mut mask) = ([9.0f64; 2], [9; 2]);
    let x = [-1.0, 0.0, 5.0, -7.0];
    stochastic_pool(&Workers::sequential(), &op, &x, &[0.9; 2], &mut y, &mut mask).unwrap();
    assert_eq!((y, mask), ([-1.0, -7.0], [0, 3]));
    let op = Pool2d::new(1, [1, 4], [1, 1], [1, 4], [0, 0], PoolRounding::Ceil).unwrap();
    assert_eq!(op.output(), [1, 2]);
    stochastic_pool(&Workers::sequential(), &op, &x, &[0.9; 2], &mut y, &mut mask).unwrap();
    assert_eq!((y, mask), ([-1.0, 0.0], [0, -1]));
}

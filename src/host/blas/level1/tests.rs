use super::*;
use crate::host::{
    simd::level::with_each_simd_level,
    testing::{fractions, integers, operand, threads},
};

/// BLAS level 1 updates use software prefetch and non-temporal stores for operands that exceed the
/// caches.
#[test]
fn level1_updates_of_large_operands_are_exact() {
    let len = (8 << 20) / size_of::<f32>() + 77;
    let (x, y0) = (integers::<f32>(10, len), integers::<f32>(11, len));
    let map = |f: fn(f32, f32) -> f32| x.iter().zip(&y0).map(|(&x, &y)| f(x, y)).collect();
    let expected: [Vec<f32>; 3] =
        [map(|_, y| -2.0 * y), map(|x, y| 3.0 * x + y), map(|x, y| 2.0 * x + 4.0 * y)];
    for (w, start) in threads().iter().zip([0, 3, 16]) {
        let padded_y = [vec![7.0; start], y0.clone()].concat();
        for (i, expected) in expected.iter().enumerate() {
            let mut padded_y = padded_y.clone();
            let y = &mut padded_y[start..];
            match i {
                0 => scal(w, -2.0, y),
                1 => axpy(w, 3.0, &x, y),
                _ => axpby(w, 2.0, &x, 4.0, y),
            }
            .unwrap();
            assert!(y == expected, "update {i} from {start}");
            assert!(padded_y[..start].iter().all(|&before| before == 7.0));
        }
    }
}

#[test]
fn updates_are_bit_identical_at_each_simd_level() {
    let (x, y0) = (fractions::<f32>(8, 9008), fractions::<f32>(10, 9100));
    let lengths = [0, 1, 15, 16, 17, 63, 64, 65, 100, 1000, 4999, 9001];
    for (len, start) in lengths.into_iter().flat_map(|len| [0, 1, 7].map(|start| (len, start))) {
        let x = &x[start..][..len];
        // `axpy` must not change the elements before and after the updated range.
        let mut expected = y0.clone();
        update_slice(FmaMode::Emulated, x, &mut expected[2 * start..][..len], |fma, x, y| {
            fma.mul_add(0.3, x, y)
        });
        with_each_simd_level(|| {
            let mut got = y0.clone();
            axpy(&Workers::sequential(), 0.3, x, &mut got[2 * start..][..len]).unwrap();
            assert!(got == expected, "axpy of {len} elements from {start}");
        });
    }
}

/// Only some processors update in two places in turn, and only large operands.
#[test]
fn updates_in_two_places_give_the_bits_of_updates_in_one() {
    fn check<A: Element + Float>() {
        let (x, y) = (fractions::<A>(8, 5000), fractions::<A>(9, 5015));
        let alpha = A::from_f64(0.3);
        let f = |fma: FmaMode, x, y| fma.mul_add(alpha, x, y);
        for (len, start) in
            [0, 1, 2063, 5000].into_iter().flat_map(|len| [0, 1, 15].map(|s| (len, s)))
        {
            let mut expected = [y.clone(), y.clone()];
            update_slice(FmaMode::Emulated, &x[..len], &mut expected[0][start..][..len], f);
            scale(alpha, &mut expected[1][start..][..len]);
            with_each_simd_level(|| {
                let mut got = [y.clone(), y.clone()];
                update_in_two_places(&x[..len], &mut got[0][start..][..len], f);
                scale_in_two_places(alpha, &mut got[1][start..][..len]);
                assert!(got == expected, "{len} elements from {start}");
            });
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn errors_of_updates_name_the_operand() {
    let w = Workers::sequential();
    let (x, mut y) = ([1.0f32; 3], [0.0; 2]);
    assert_eq!(operand(copy(&w, &x, &mut y)), ("copy", "y"));
    assert_eq!(operand(axpy(&w, 1.0, &x, &mut y)), ("axpy", "y"));
    assert_eq!(operand(axpby(&w, 1.0, &x, 0.0, &mut y)), ("axpby", "y"));
}

use super::*;
#[cfg(target_arch = "x86_64")]
use crate::host::simd::level::SimdLevel;
use crate::host::{
    simd::level::with_each_simd_level,
    testing::{fractions, operand, threads},
};

#[test]
fn sums_are_accurate_and_bit_identical_on_any_number_of_threads() {
    let x = fractions::<f32>(5, 3 * GRAIN + 5);
    let exact_sum: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    let got = threads().map(|workers| dot(&workers, &x, &x).unwrap());
    assert!(got.iter().all(|sum| sum.to_bits() == got[0].to_bits()));
    assert!((f64::from(got[0]) / exact_sum - 1.0).abs() < 1e-6);
}

/// The operands of the tested sums start at every offset in a cache line. Some operands are too
/// short to contain a cache-line boundary.
#[test]
fn sums_are_bit_identical_at_any_address() {
    fn bits<T: Element>(len: usize) {
        let (x, y) = (fractions::<T>(6, len), fractions::<T>(7, len));
        let w = Workers::sequential();
        let all_sums = |x: &[T], y: &[T]| {
            let sums = [dot(&w, x, y), asum(&w, x), sumsq(&w, x), amax(&w, x)];
            sums.map(|sum| sum.unwrap().to_f64().to_bits())
        };
        let expected = all_sums(&x, &y);
        let with_offset = |x: &[T], offset: usize| [&vec![T::from_f64(100.0); offset], x].concat();
        for offset in 1..17 {
            let (x, y) = (with_offset(&x, offset), with_offset(&y, 17 - offset));
            let got = all_sums(&x[offset..], &y[17 - offset..]);
            assert_eq!(
                got, expected,
                "dot, asum, sumsq, amax of {len} elements at offset {offset}"
            );
        }
    }
    for len in [1000, 9001, 20_000] {
        bits::<f32>(len);
        bits::<f64>(len);
    }
    // The products underflow to −0, but the sum of the products must be +0.
    let (x, y) = (vec![-1e-30f32; 100], vec![1e-30f32; 100]);
    for (start, len) in (0..17).flat_map(|start| [1, 64, 70].map(|len| (start, len))) {
        let sum = dot(&Workers::sequential(), &x[start..][..len], &y[..len]).unwrap();
        assert_eq!(sum.to_bits(), 0, "dot of {len} elements from {start}");
    }
}

#[test]
fn sums_are_bit_identical_at_each_simd_level() {
    let (x, y) = (fractions::<f32>(8, 9008), fractions::<f32>(9, 9008));
    let lengths = [0, 1, 15, 16, 17, 63, 64, 65, 100, 1000, 4999, 9001];
    let w = Workers::sequential();
    for (len, start) in lengths.into_iter().flat_map(|len| [0, 1, 7].map(|start| (len, start))) {
        let (x, y, fma) = (&x[start..][..len], &y[..len], FmaMode::Emulated);
        let sum = accumulate(false, (x, y), |sum, x, y| fma.mul_add(x, y, sum), |a, b| a + b);
        with_each_simd_level(|| {
            let got = dot(&w, x, y).unwrap();
            assert_eq!(got.to_bits(), sum.to_bits(), "dot of {len} elements from {start}");
        });
    }
}

/// Only some processors alternate between tasks, and only for large operands.
#[cfg(target_arch = "x86_64")]
#[test]
fn alternating_tasks_give_the_bits_of_tasks_in_turn() {
    let f = |fma: FmaMode, sum, x, y| fma.mul_add(x, y, sum);
    let max_len = 4 * GRAIN + 1;
    let (x, y) = (fractions::<f32>(8, max_len + 7), fractions::<f32>(9, max_len + 7));
    for (len, start) in
        [(1, 0), (100, 7), (GRAIN, 1), (GRAIN + 70, 0), (3 * GRAIN, 5), (max_len, 7)]
    {
        let (x, y) = (&x[start..][..len], &y[7 - start..][..len]);
        let in_turn = sum_tasks(&Workers::sequential(), (len, 0), |i, len, prefetch| {
            sum_slices(prefetch, task_slice(x, i, len), task_slice(y, i, len), f)
        });
        let check = |workers: &Workers| {
            // `None` means that the SIMD level has no such loop.
            let has_loop = [SimdLevel::Avx512, SimdLevel::Avx2].contains(&SimdLevel::current());
            let sum = sum_pairs_of_tasks(workers, x, y, f);
            let expected = has_loop.then_some(in_turn.to_bits());
            assert_eq!(sum.map(f32::to_bits), expected, "{len} elements from {start}");
        };
        with_each_simd_level(|| check(&Workers::sequential()));
        threads().iter().for_each(check);
    }
}

#[test]
fn amax_with_nan_is_nan() {
    for len in [1, 40, GRAIN + 3] {
        for position in [0, len - 1] {
            let mut x = vec![-3.0f32; len];
            x[position] = f32::NAN;
            assert!(threads().iter().all(|w| amax(w, &x).unwrap().is_nan()));
        }
    }
}

#[test]
fn errors_of_sums_name_the_operand() {
    let w = Workers::sequential();
    let (x, y) = ([1.0f32; 3], [0.0; 2]);
    assert_eq!(operand(dot(&w, &x, &y).map(drop)), ("dot", "y"));
    assert_eq!(operand(dot_strided(&w, 2, &x, 3, &y, 1).map(drop)), ("dot_strided", "x"));
    assert_eq!(operand(dot_strided(&w, 3, &x, 1, &y, 1).map(drop)), ("dot_strided", "y"));
    let result = dot_strided(&w, usize::MAX, &x, usize::MAX, &y, 1).map(drop);
    assert_eq!(operand(result), ("dot_strided", "x"));
    assert_eq!(dot_strided(&w, 0, &x, 9, &y, 9).unwrap(), 0.0);
    assert_eq!(dot_strided(&w, 3, &x, 0, &y, 0).unwrap(), 0.0);
}

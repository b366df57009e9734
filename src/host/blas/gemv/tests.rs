use super::*;
use crate::{
    host::{
        blas::gemm::tests::{assert_within_rounding, naive_gemm},
        simd::level::{SimdLevel, with_each_fused_level, with_each_simd_level, with_level},
        testing::{for_each_element, fractions, integers, operand, rounded, threads, wide},
    },
    op::Gemm,
};
use Transpose::{No, Yes};

/// Shapes of matrices with rows shorter and longer than a chunk, and with whole and partial groups
/// of rows.
const SHAPES: [(usize, usize); 13] = [
    (0, 5),
    (5, 0),
    (1, 1),
    (1, 33),
    (3, 16),
    (4, 100),
    (5, 1025),
    (37, 29),
    (1030, 3),
    (200, 1500),
    (11, 9001),
    (2, 70_000),
    (70_000, 2),
];

/// Returns `op` as a GEMM whose `B` and `C` have one column.
fn as_gemm<T: Element>(op: &Gemv<T>) -> Gemm<T> {
    let (k, m) = op.lengths();
    let gemm = Gemm::new(m, 1, k).transpose(op.trans, No).alpha(op.alpha).beta(op.beta);
    gemm.leading_dims(op.lda, 1, 1)
}

fn gemv_of_integers_is_exact<T: Element>() {
    for_each_gemv_of_integers::<T>(|check| check());
}

/// Calls `body` for each case with a function that checks the case. Runs each shape on one, two or
/// three threads, in rotation. Another test compares the results of different numbers of threads.
fn for_each_gemv_of_integers<T: Element>(body: impl Fn(&dyn Fn())) {
    let workers = threads();
    for (case, (m, n)) in SHAPES.into_iter().enumerate() {
        for (trans, alpha, beta, pad) in
            [(No, 1.0, 0.0, 0), (Yes, 1.0, 0.0, 0), (No, 0.5, -2.0, 3), (Yes, -1.5, 1.0, 5)]
        {
            let op = Gemv::<T>::new(trans, m, n).alpha(T::acc(alpha)).beta(T::acc(beta));
            let op = op.leading_dim(n + pad);
            let a = integers::<T>(case as u64, m * (n + pad));
            let (x_len, y_len) = op.lengths();
            let x = integers::<T>(100, x_len);
            let mut y0 = integers::<T>(200, y_len);
            if beta == 0.0 {
                y0.fill(T::from_f64(f64::NAN));
            }
            let mut expected = wide(&y0);
            naive_gemm(&as_gemm(&op), &a, &x, &mut expected);
            let expected = rounded::<T>(&expected);
            body(&|| {
                let mut y = y0.clone();
                gemv(&workers[case % 3], &op, &a, &x, &mut y).unwrap();
                assert_eq!(wide(&y), expected, "{op:?}");
            });
        }
    }
}

fn gemv_is_bit_identical_on_any_number_of_threads<T: Element>() {
    let workers = threads();
    for (trans, m, n) in [(No, 301, 1100), (Yes, 301, 2100), (Yes, 1300, 1025)] {
        let op = Gemv::<T>::new(trans, m, n);
        let (a, (x_len, y_len)) = (fractions::<T>(1, m * n), op.lengths());
        let x = fractions::<T>(2, x_len);
        let [one, two, three] = workers.each_ref().map(|workers| {
            let mut y = vec![T::default(); y_len];
            gemv(workers, &op, &a, &x, &mut y).unwrap();
            wide(&y)
        });
        assert!(one == two && one == three);
        assert_within_rounding(&as_gemm(&op), &a, &x, &vec![T::default(); y_len], &one);
    }
}

/// The shapes cover all kernels of GEMV. The last rows and columns of the matrices do not fill a
/// block.
fn gemv_is_bit_identical_at_each_simd_level<T: Element>() {
    for (trans, m, n) in
        [(No, 11, 1100), (Yes, 37, 40), (Yes, 37, 1100), (Yes, 300, 259), (Yes, 45, 9001)]
    {
        let op = Gemv::<T>::new(trans, m, n).alpha(T::acc(0.7));
        let (a, (x_len, y_len)) = (fractions::<T>(1, m * n), op.lengths());
        let x = fractions::<T>(2, x_len);
        let run = || {
            let mut y = vec![T::default(); y_len];
            gemv(&Workers::sequential(), &op, &a, &x, &mut y).unwrap();
            wide(&y)
        };
        with_level(SimdLevel::Portable, || {
            let portable_y = run();
            let check = || assert!(run() == portable_y, "{op:?}");
            // Only products of 16-bit elements do not use FMA.
            if size_of::<T>() == 2 {
                with_each_simd_level(check)
            } else {
                with_each_fused_level(check)
            }
        });
    }
}

fn gemv_with_zero_alpha_reads_neither_a_nor_x<T: Element>() {
    let nan = T::from_f64(f64::NAN);
    for trans in [No, Yes] {
        let op = Gemv::<T>::new(trans, 3, 3).alpha(T::acc(0.0)).beta(T::acc(2.0));
        let mut y = [T::from_f64(1.5); 3];
        gemv(&Workers::sequential(), &op, &[nan; 9], &[nan; 3], &mut y).unwrap();
        assert_eq!(wide(&y), [3.0; 3]);
    }
}

/// The rows of the test matrices start at every offset in a cache line. With some of the leading
/// dimensions, all rows have the same offset in a cache line.
fn gemv_is_bit_identical_at_any_address<T: Element>() {
    let n = 320;
    for (trans, m, lda) in [
        (No, 19, n),
        (Yes, 19, n),
        (Yes, 77, n),
        (No, 19, n - 3),
        (Yes, 19, n - 3),
        (Yes, 77, n - 3),
    ] {
        let op = Gemv::<T>::new(trans, m, lda);
        let (a, (x_len, y_len)) = (fractions::<T>(1, m * lda), op.lengths());
        let x = fractions::<T>(2, x_len);
        let run_at = |start: usize| {
            let shifted_a = [&vec![T::from_f64(f64::NAN); start], &a[..], &[T::default()]].concat();
            let mut y = vec![T::default(); y_len];
            gemv(&Workers::sequential(), &op, &shifted_a[start..][..m * lda], &x, &mut y).unwrap();
            wide(&y)
        };
        let first = run_at(0);
        assert!((1..33).all(|start| run_at(start) == first), "{op:?}");
        assert_within_rounding(&as_gemm(&op), &a, &x, &vec![T::default(); y_len], &first);
    }
}

#[test]
fn unpacked_gemv_at_each_simd_level_is_exact() {
    for_each_gemv_of_integers::<f32>(|check| with_each_simd_level(check));
    for_each_gemv_of_integers::<f64>(|check| with_each_simd_level(check));
    with_each_simd_level(|| {
        gemv_is_bit_identical_at_any_address::<f32>();
        gemv_is_bit_identical_at_any_address::<f64>();
    });
}

for_each_element!(
    gemv_of_integers_is_exact,
    gemv_is_bit_identical_on_any_number_of_threads,
    gemv_is_bit_identical_at_each_simd_level,
    gemv_with_zero_alpha_reads_neither_a_nor_x
);

#[test]
fn gemv_errors_name_the_operand() {
    let w = Workers::sequential();
    let op = Gemv::<f32>::new(No, 2, 3);
    let run = |a, x, y| gemv(&w, &op, &vec![0.0; a], &vec![0.0; x], &mut vec![0.0; y]);
    assert_eq!(operand(run(5, 3, 2)), ("gemv", "a"));
    assert_eq!(operand(run(6, 2, 2)), ("gemv", "x"));
    assert_eq!(operand(run(6, 3, 3)), ("gemv", "y"));
    let result = gemv(&w, &op.leading_dim(2), &[0.0; 6], &[0.0; 3], &mut [0.0; 2]);
    assert!(result.unwrap_err().to_string().contains("lda"));
}

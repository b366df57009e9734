use super::*;
use crate::{
    element::{self, DType},
    host::{
        blas::kernel::{
            blocking::kc, dot_kernel, indirect_packing::CopySpan, unpacked::STREAMED_ROWS,
        },
        simd::level::{SimdLevel, with_each_fused_level, with_each_simd_level, with_level},
        testing::{
            for_each_element, fractions, integers, op_element, operand, rounded, threads, wide,
        },
    },
    op::Transpose::{self, No, Yes},
};
use num_traits::Float;
use proptest::prelude::*;
use std::collections::HashMap;

const TRANSPOSES: [(Transpose, Transpose); 4] = [(No, No), (No, Yes), (Yes, No), (Yes, Yes)];

const SHAPES: [(usize, usize, usize); 25] = [
    (0, 3, 3),
    (3, 0, 3),
    (3, 3, 0),
    (1, 1, 1),
    (1, 17, 5),
    (17, 1, 5),
    (5, 7, 3),
    (16, 16, 16),
    (20, 576, 25),
    (50, 33, 200),
    (33, 31, 257),
    (300, 270, 7),
    (14, 1100, 40),
    (27, 300, 260),
    // GEMM shapes with several blocks along k and n, with several blocks along m, or with a row
    // stride that causes L1 aliasing.
    (5, 420, 400),
    (1560, 17, 6),
    (22, 17, 1024),
    // A GEMM that streams `B` in several blocks of rows and columns.
    (3, 530, 62),
    // A packed GEMM that reads a transposed `A` in place, in tiles that overlap.
    (71, 33, 530),
    // Dot products in several blocks of k, and a single row of dot products.
    (3, 9, 2100),
    (1, 19, 320),
    // Dot products in tiles of five columns, which overlap.
    (6, 9, 70),
    // Dot products with a transposed copy of `B`, and of `A`.
    (18, 6, 150),
    (4, 9, 60),
    // A GEMM whose last column is computed as a row, if `A` is transposed.
    (12, 33, 70),
];

/// Returns each small GEMM shape with all four combinations of transposes, but each large shape
/// with only one combination, because large shapes take most of the test time.
fn cases() -> impl Iterator<Item = ((usize, usize, usize), (Transpose, Transpose))> {
    SHAPES.into_iter().enumerate().flat_map(|(i, (m, n, k))| {
        let pairs = if m * n * k < 100_000 { &TRANSPOSES[..] } else { &TRANSPOSES[i % 4..][..1] };
        pairs.iter().map(move |&pair| ((m, n, k), pair))
    })
}

const ALPHA_BETA: [(f64, f64); 4] = [(1.0, 0.0), (1.0, 1.0), (-0.5, 2.0), (0.0, 0.5)];

/// Computes `op` in `f64`, adding the terms of each sum in ascending order of k.
pub(crate) fn naive_gemm<T: Element>(op: &Gemm<T>, a: &[T], b: &[T], c: &mut [f64]) {
    let (alpha, beta) = (op.alpha.to_f64(), op.beta.to_f64());
    // Widen each element only once, because widening takes most of the test time. The inner loop
    // indexes slices, because each step of an iterator is several calls in an unoptimized build.
    let column = |j| (0..op.k).map(move |l| op_element(b, op.trans_b, op.ldb, l, j)).collect();
    let columns: Vec<Vec<f64>> = (0..op.n).map(column).collect();
    for i in 0..op.m {
        let row: Vec<f64> = (0..op.k).map(|l| op_element(a, op.trans_a, op.lda, i, l)).collect();
        for (j, column) in columns.iter().enumerate() {
            let (row, column, mut sum, mut l) = (&row[..], &column[..], 0.0, 0);
            while l < row.len() {
                sum += row[l] * column[l];
                l += 1;
            }
            let c = &mut c[i * op.ldc + j];
            let scaled_c = if beta == 0.0 { 0.0 } else { beta * *c };
            *c = if alpha == 0.0 || op.k == 0 { scaled_c } else { alpha * sum + scaled_c };
        }
    }
}

/// Asserts that the rounding error of each element of `c` is at most a bound that holds for any
/// order of additions. For each product of two `f16` elements, AMX adds four `bf16` products,
/// because each `f16` element splits into two `bf16` terms.
pub(crate) fn assert_within_rounding<T: Element>(
    op: &Gemm<T>,
    a: &[T],
    b: &[T],
    c0: &[T],
    c: &[f64],
) {
    let abs = |x: &[T]| x.iter().map(|x| T::from_f64(x.to_f64().abs())).collect::<Vec<T>>();
    let abs_op = op.alpha(T::acc(op.alpha.to_f64().abs())).beta(T::acc(op.beta.to_f64().abs()));
    let (mut exact, mut magnitude) = (wide(c0), wide(&abs(c0)));
    naive_gemm(op, a, b, &mut exact);
    naive_gemm(&abs_op, &abs(a), &abs(b), &mut magnitude);
    let unit = |bits: i32| 2f64.powi(-bits);
    let (acc_unit, unit) = match T::DTYPE {
        DType::F64 => (unit(53), unit(53)),
        DType::F32 => (unit(24), unit(24)),
        DType::F16 => (unit(24), unit(11)),
        DType::Bf16 => (unit(24), unit(8)),
    };
    let terms = 4 * op.k + 4;
    for ((&c, &exact), &magnitude) in c.iter().zip(&exact).zip(&magnitude) {
        // Double the bound, because the expected result for `f64` elements is also rounded.
        let bound = 2.0 * terms as f64 * acc_unit * magnitude + unit * exact.abs() + 1e-7 * unit;
        assert!((c - exact).abs() <= bound, "{op:?}: got {c}, expected {exact} ± {bound}");
    }
}

/// Checks that a GEMM of integers is exact each time that `body` calls its argument, and that
/// elements between the rows of `C` do not change. Computes the expected result only once.
fn check_gemm_of_integers<T: Element>(op: &Gemm<T>, body: impl FnOnce(&dyn Fn(&Workers))) {
    let len = |trans, rows, columns, ld| (if trans == No { rows } else { columns }) * ld;
    let mut a = integers::<T>(1, len(op.trans_a, op.m, op.k, op.lda));
    let mut b = integers::<T>(2, len(op.trans_b, op.k, op.n, op.ldb));
    let mut c0 = integers::<T>(3, op.m * op.ldc);
    let nan = T::from_f64(f64::NAN);
    if op.alpha.is_zero() {
        a.fill(nan);
        b.fill(nan);
    }
    if op.beta.is_zero() {
        c0.chunks_mut(op.ldc.max(1)).for_each(|row| row[..op.n].fill(nan));
    }
    let mut expected = wide(&c0);
    naive_gemm(op, &a, &b, &mut expected);
    let expected = rounded::<T>(&expected);
    body(&|workers| {
        let mut c = c0.clone();
        gemm(workers, op, &a, &b, &mut c).unwrap();
        assert_eq!(wide(&c), expected, "{op:?}");
    });
}

/// Runs each case on one, two or three threads, in rotation. Another test compares the results of
/// different numbers of threads.
pub(crate) fn gemm_of_integers_is_exact<T: Element>() {
    let workers = threads();
    for (case, ((m, n, k), (trans_a, trans_b))) in cases().enumerate() {
        let (alpha, beta) = ALPHA_BETA[(case + m) % 4];
        let op = Gemm::new(m, n, k).transpose(trans_a, trans_b);
        check_gemm_of_integers::<T>(&op, |check| check(&workers[case % 3]));
        let op = op.alpha(T::acc(alpha)).beta(T::acc(beta));
        let op = op.leading_dims(op.lda + 3, op.ldb + 1, op.ldc + 2);
        check_gemm_of_integers(&op, |check| check(&workers[(case + 1) % 3]));
    }
}

pub(crate) fn gemm_is_bit_identical_on_any_number_of_threads<T: Element>() {
    let workers = threads();
    for (m, n, k, trans_a, trans_b, beta) in [
        (100, 90, 300, No, No, 0.0),
        (129, 300, 70, Yes, No, 0.3),
        (300, 27, 257, No, Yes, 1.0),
        (34, 200, 400, No, No, 0.3),
        (20, 400, 700, Yes, No, 0.3),
        // If the partition did not avoid single rows, one of two threads would get 32 rows and the
        // other thread 1 row.
        (33, 10, 7000, Yes, No, 1.0),
    ] {
        let op = Gemm::<T>::new(m, n, k).transpose(trans_a, trans_b);
        let op = op.alpha(T::acc(0.7)).beta(T::acc(beta));
        let (a, b) = (fractions::<T>(1, m * k), fractions::<T>(2, k * n));
        let c0 = fractions::<T>(3, m * n);
        let [c1, c2, c3] = workers.each_ref().map(|workers| {
            let mut c = c0.clone();
            gemm(workers, &op, &a, &b, &mut c).unwrap();
            wide(&c)
        });
        assert!(c1 == c2 && c1 == c3, "{op:?}");
        assert_within_rounding(&op, &a, &b, &c0, &c1);
    }
}

pub(crate) fn batched_gemm_of_integers_is_exact<T: Element>() {
    let workers = threads();
    // The threads share each GEMM of the last batch. In the batch before the last, each thread
    // computes whole GEMMs.
    let shapes = [
        (3, 4, 5, 7, 0),
        (1, 1, 1, 2, 1),
        (20, 30, 10, 40, 3),
        (20, 64, 25, 70, 0),
        (130, 120, 140, 3, 0),
    ];
    for (m, n, k, count, gap) in shapes {
        for (stride_a, stride_b) in [(m * k + gap, k * n), (0, k * n + gap), (m * k, 0)] {
            let batch = GemmBatch { count, stride_a, stride_b, stride_c: m * n + gap };
            let op = Gemm::<T>::new(m, n, k).beta(T::acc(2.0));
            let a = integers::<T>(1, stride_a * (count - 1) + m * k);
            let b = integers::<T>(2, stride_b * (count - 1) + k * n);
            let c0 = integers::<T>(3, batch.stride_c * count);
            let mut expected = wide(&c0);
            for i in 0..count {
                let (a, b) = (&a[i * stride_a..], &b[i * stride_b..]);
                naive_gemm(&op, a, b, &mut expected[i * batch.stride_c..]);
            }
            for workers in &workers {
                let mut c = c0.clone();
                gemm_batched(workers, &op, &batch, &a, &b, &mut c).unwrap();
                assert_eq!(wide(&c), rounded::<T>(&expected), "{op:?} {batch:?}");
            }
        }
    }
}

for_each_element!(
    gemm_of_integers_is_exact,
    gemm_is_bit_identical_on_any_number_of_threads,
    batched_gemm_of_integers_is_exact,
    gemm_is_bit_identical_at_each_simd_level
);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn gemm_of_any_shape_is_exact(
        (m, n, k) in (0usize..40, 0usize..40, 0usize..40),
        (ta, tb) in (any::<bool>(), any::<bool>()),
        (pad_a, pad_b, pad_c) in (0usize..4, 0usize..4, 0usize..4),
        pair in 0usize..4,
    ) {
        let trans = |yes| if yes { Yes } else { No };
        let (alpha, beta) = ALPHA_BETA[pair];
        let op = Gemm::<f32>::new(m, n, k).transpose(trans(ta), trans(tb));
        let op = op.alpha(alpha as f32).beta(beta as f32);
        let op = op.leading_dims(op.lda + pad_a, op.ldb + pad_b, n + pad_c);
        check_gemm_of_integers(&op, |check| check(&Workers::sequential()));
    }
}

#[test]
fn gemm_errors_name_the_operand() {
    let w = Workers::sequential();
    let op = Gemm::<f32>::new(2, 3, 4);
    let run = |a, b, c| gemm(&w, &op, &vec![0.0; a], &vec![0.0; b], &mut vec![0.0; c]);
    assert_eq!(operand(run(7, 12, 6)), ("gemm", "a"));
    assert_eq!(operand(run(8, 11, 6)), ("gemm", "b"));
    assert_eq!(operand(run(8, 12, 5)), ("gemm", "c"));
    let result = gemm(&w, &op.leading_dims(3, 3, 3), &[0.0; 8], &[0.0; 12], &mut [0.0; 6]);
    assert!(result.unwrap_err().to_string().contains("lda"));

    let batch = GemmBatch { count: 2, stride_a: 8, stride_b: 12, stride_c: 6 };
    let run =
        |a, b, c| gemm_batched(&w, &op, &batch, &vec![0.0; a], &vec![0.0; b], &mut vec![0.0; c]);
    assert_eq!(operand(run(15, 24, 12)), ("gemm_batched", "a"));
    assert_eq!(operand(run(16, 23, 12)), ("gemm_batched", "b"));
    assert_eq!(operand(run(16, 24, 11)), ("gemm_batched", "c"));
    let overlap = GemmBatch { stride_c: 5, ..batch };
    assert!(gemm_batched(&w, &op, &overlap, &[0.0; 16], &[0.0; 24], &mut [0.0; 12]).is_err());
}

#[test]
fn every_gemm_kernel_of_each_simd_level_matches_its_definition() {
    check_every_kernel::<f32>();
    check_every_kernel::<f64>();
    for_each_gemm_of_16_bit_integers::<element::f16>(|check| with_each_simd_level(check));
    for_each_gemm_of_16_bit_integers::<element::bf16>(|check| with_each_simd_level(check));
}

/// Calls `body` for each case with a function that checks the case.
pub(crate) fn for_each_gemm_of_16_bit_integers<H: Element>(body: impl Fn(&dyn Fn())) {
    for ((m, n, k), (trans_a, trans_b)) in cases() {
        let op = Gemm::<H>::new(m, n, k).transpose(trans_a, trans_b);
        let op = op.alpha(H::acc(0.5)).beta(H::acc(2.0));
        let op = op.leading_dims(op.lda + 3, op.ldb + 1, op.ldc + 2);
        check_gemm_of_integers(&op, |check| body(&|| check(&Workers::sequential())));
    }
}

#[test]
fn gemm_of_16_bit_elements_rounds_once() {
    with_each_simd_level(|| {
        every_16_bit_value_is_rounded_once(element::f16::from_bits);
        every_16_bit_value_is_rounded_once(element::bf16::from_bits);
    });
}

fn every_16_bit_value_is_rounded_once<H: Element<Acc = f32>>(from_bits: impl Fn(u16) -> H) {
    let a: Vec<H> = (0..=u16::MAX).map(from_bits).collect();
    let ones = [H::from_f64(1.0); 3];
    // A GEMM without transposes takes the unpacked path; two transposed operands take the packed
    // path.
    for (trans_a, trans_b, alphas) in [(No, No, [1.0, 1e-5]), (Yes, Yes, [1.0 / 3.0, 3.0])] {
        for alpha in alphas {
            let op = Gemm::<H>::new(a.len(), 3, 1).transpose(trans_a, trans_b).alpha(alpha);
            let mut c = vec![H::default(); 3 * a.len()];
            gemm(&Workers::sequential(), &op, &a, &ones, &mut c).unwrap();
            for (a, row) in a.iter().zip(c.chunks(3)) {
                let expected = H::from_acc(alpha * a.to_acc()).to_f64();
                let is_expected =
                    |c: &H| c.to_f64() == expected || c.to_f64().is_nan() && expected.is_nan();
                assert!(
                    row.iter().all(is_expected),
                    "{alpha} · {a:?}: got {row:?}, expected {expected}"
                );
            }
        }
    }
}

/// Returns whether the current SIMD level fuses multiply-adds.
fn is_fused() -> bool {
    SimdLevel::current() != SimdLevel::WithoutFma
}

/// Returns `x·y + z`, rounded once if `is_fused`.
fn mul_add<S: SimdScalar>(is_fused: bool, x: S, y: S, z: S) -> S {
    if is_fused { Float::mul_add(x, y, z) } else { x * y + z }
}

/// Returns the rows of `op(A)` one after another.
fn rows_of_a<S: SimdScalar>(op: &Gemm<S>, a: &[S]) -> Vec<S> {
    let index = |i, l| if op.trans_a == No { i * op.lda + l } else { l * op.lda + i };
    (0..op.m * op.k).map(|at| a[index(at / op.k, at % op.k)]).collect()
}

/// Returns the columns of `op(B)` one after another.
fn columns_of_b<S: SimdScalar>(op: &Gemm<S>, b: &[S]) -> Vec<S> {
    let index = |l, j| if op.trans_b == No { l * op.ldb + j } else { j * op.ldb + l };
    (0..op.n * op.k).map(|at| b[index(at % op.k, at / op.k)]).collect()
}

/// Computes `op` in the order of the micro-kernel, which adds the terms of each block of `kc` steps
/// one after another.
fn fma_chain_gemm<S: SimdScalar>(op: &Gemm<S>, kc: usize, a: &[S], b: &[S], c: &mut [S]) {
    let (is_fused, rows, columns) = (is_fused(), rows_of_a(op, a), columns_of_b(op, b));
    for start in (0..op.k).step_by(kc) {
        let (beta, end) = (if start == 0 { op.beta } else { S::one() }, op.k.min(start + kc));
        for (row, c) in rows.chunks(op.k).zip(c.chunks_mut(op.n)) {
            for (column, c) in columns.chunks(op.k).zip(c) {
                let (mut sum, mut l) = (S::zero(), start);
                while l < end {
                    sum = mul_add(is_fused, row[l], column[l], sum);
                    l += 1;
                }
                *c = mul_add(is_fused, op.alpha, sum, beta * *c);
            }
        }
    }
}

/// Computes `op` in the order of the dot kernel. For each element of `C`,
/// the dot kernel accumulates the terms of a block of k in 64 bytes of lanes. It then adds the
/// lanes pairwise. A GEMM of one row has one block of k.
fn fma_lanes_gemm<S: SimdScalar>(op: &Gemm<S>, a: &[S], b: &[S], c: &mut [S]) {
    fn tree<S: SimdScalar>(lanes: &[S], first: usize, step: usize) -> S {
        if step == lanes.len() {
            return lanes[first];
        }
        tree(lanes, first, 2 * step) + tree(lanes, first + step, 2 * step)
    }
    let (is_fused, rows, columns) = (is_fused(), rows_of_a(op, a), columns_of_b(op, b));
    let kc = if op.m == 1 { op.k } else { dot_kernel::kc::<S>(op.k) };
    let mut lanes = [S::zero(); 16];
    let lanes = &mut lanes[..64 / size_of::<S>()];
    for start in (0..op.k).step_by(kc) {
        let (beta, end) = (if start == 0 { op.beta } else { S::one() }, op.k.min(start + kc));
        for (row, c) in rows.chunks(op.k).zip(c.chunks_mut(op.ldc)) {
            for (column, c) in columns.chunks(op.k).zip(c) {
                lanes.fill(S::zero());
                let mut l = start;
                while l < end {
                    let lane = (l - start) % lanes.len();
                    lanes[lane] = mul_add(is_fused, row[l], column[l], lanes[lane]);
                    l += 1;
                }
                let sum = op.alpha * tree(lanes, 0, 1);
                *c = if op.m == 1 { mul_add(is_fused, beta, *c, sum) } else { sum + beta * *c };
            }
        }
    }
}

/// The order in which a kernel adds the terms of a sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Order {
    /// The order of [`fma_chain_gemm`], with the length of the blocks of k.
    Chain(usize),
    /// The order of [`fma_lanes_gemm`].
    Lanes,
}

/// Checks that results at each SIMD level are bit-identical to those of [`fma_chain_gemm`] or
/// [`fma_lanes_gemm`]. Results at all levels with fused multiply-adds are therefore bit-identical.
/// Only `matrixmultiply` adds the terms of a sum in another order.
fn check_every_kernel<S: SimdScalar>() {
    let cases = cases().filter(|((m, n, k), _)| m * n * k > 0);
    for ((m, n, k), (trans_a, trans_b)) in cases {
        let op = Gemm::<S>::new(m, n, k).transpose(trans_a, trans_b);
        let op = op.alpha(S::from_f64(0.7)).beta(S::from_f64(1.3));
        let (a, b) = (fractions::<S>(1, m * k), fractions::<S>(2, k * n));
        let c0 = fractions::<S>(3, m * n);
        // Levels with fused multiply-adds share expected results, which take most of the test time.
        let mut expected = HashMap::new();
        with_each_simd_level(|| {
            let is_fused = is_fused();
            for path in
                [GemmPath::Unpacked, GemmPath::DotOfCopy, GemmPath::Streamed, GemmPath::Packed]
            {
                // `gemm` computes a single row by `gemv`, without streaming.
                if path == GemmPath::Streamed && (trans_b == Yes || m == 1) {
                    continue;
                }
                let mut c = c0.clone();
                // SAFETY: the operands have the lengths that `op` requires.
                unsafe { path.run(&op, &a, &b, c.as_mut_ptr()) };
                let order = match path {
                    GemmPath::Unpacked if trans_a == No && trans_b == Yes => Order::Lanes,
                    GemmPath::DotOfCopy => Order::Lanes,
                    GemmPath::Unpacked => Order::Chain(k),
                    GemmPath::Streamed => Order::Chain(k.min(STREAMED_ROWS)),
                    GemmPath::Packed if is_fused => Order::Chain(k.min(kc::<S>(k))),
                    GemmPath::Packed => {
                        assert_within_rounding(&op, &a, &b, &c0, &wide(&c));
                        continue;
                    }
                };
                let expected = expected.entry((is_fused, order)).or_insert_with(|| {
                    let mut expected = c0.clone();
                    match order {
                        Order::Chain(kc) => fma_chain_gemm(&op, kc, &a, &b, &mut expected),
                        Order::Lanes => fma_lanes_gemm(&op, &a, &b, &mut expected),
                    }
                    bits(&expected)
                });
                assert!(
                    bits(&c) == *expected,
                    "{:?} {path:?} {op:?}: result differs from multiply-adds in the order of the \
                     kernel",
                    SimdLevel::current()
                );
            }
        });
    }
}

/// Returns the bits of the elements, which tell -0 from 0, and NaN from other values.
fn bits<T: Element>(x: &[T]) -> Vec<u64> {
    wide(x).into_iter().map(f64::to_bits).collect()
}

/// Compares the portable level with every other level that has fused multiply-adds. The cases cover
/// every code path that `gemm` chooses, and also batches, a bias, and matrix-vector products. With
/// β = 0, `C` is NaN, and the first row of each `A` is 0, so that products with α = -1 are -0.
fn gemm_is_bit_identical_at_each_simd_level<T: Element>() {
    let workers = &Workers::sequential();
    let shapes = [
        (20, 25, 60, No, No),
        (3, 190, 90, No, No),
        (26, 34, 520, Yes, No),
        (10, 12, 1100, No, Yes),
        (30, 20, 300, No, Yes),
        (5, 70, 1000, No, Yes),
        (7, 65, 1035, No, Yes),
        (9, 131, 1100, No, Yes),
        (12, 66, 2077, No, Yes),
        (9, 20, 50, Yes, Yes),
        (5, 20, 70, Yes, Yes),
        (30, 10, 140, No, No),
        (1, 70, 301, No, Yes),
        (1, 70, 301, No, No),
    ];
    let scalars = [(0.7, 1.3), (-1.0, 0.0)];
    for ((m, n, k, trans_a, trans_b), (alpha, beta)) in
        shapes.into_iter().flat_map(|shape| scalars.map(|scalars| (shape, scalars)))
    {
        let op = Gemm::<T>::new(m, n, k).transpose(trans_a, trans_b);
        let op = op.alpha(T::acc(alpha)).beta(T::acc(beta));
        let batch = GemmBatch { count: 2, stride_a: m * k, stride_b: k * n, stride_c: m * n };
        let (mut a, b) = (fractions::<T>(1, 2 * m * k), fractions::<T>(2, 2 * k * n));
        let (mut c0, bias) = (fractions::<T>(3, 2 * m * n), fractions::<T>(4, m));
        if beta == 0.0 {
            let step = if trans_a == No { 1 } else { m };
            for matrix in a.chunks_mut(m * k) {
                matrix.iter_mut().step_by(step).take(k).for_each(|a| *a = T::default());
            }
            c0.fill(T::from_f64(f64::NAN));
        }
        let run = || {
            let (mut batched, mut with_bias) = (c0.clone(), c0.clone());
            gemm_batched(workers, &op, &batch, &a, &b, &mut batched).unwrap();
            if size_of::<T>() > 2 {
                let b = GemmB::Matrix(&b);
                gemm_adding_bias(workers, &op, &a, &b, Some(&bias), &mut with_bias).unwrap();
            }
            (bits(&batched), bits(&with_bias))
        };
        with_level(SimdLevel::Portable, || {
            let portable = run();
            with_each_fused_level(|| {
                assert!(run() == portable, "{op:?}: {:?} differs", SimdLevel::current());
            });
        });
    }
}

#[test]
fn gemm_with_an_indirect_operand_is_exact() {
    indirect_gemm_is_exact::<f32>();
    indirect_gemm_is_exact::<f64>();
}

/// Checks GEMMs whose operand `B` is an indirect matrix with spans of many lengths, with and
/// without transposition, at each SIMD level.
fn indirect_gemm_is_exact<S: SimdScalar>() {
    // Consecutive one-element spans make every lane of some vectors belong to a different span.
    let mut lengths = [1; 30];
    lengths[..10].copy_from_slice(&[1, 8, 13, 3, 40, 16, 5, 2, 70, 7]);
    let cases = [(7, 5, 3), (50, 300, 4), (12, 70, 10), (3, 600, 7), (30, 33, 1), (9, 40, 45)];
    let workers = threads();
    for (m, rows, spans) in cases {
        let rows: Vec<usize> = (0..rows).map(|row| row * 3 % 41 * 10).collect();
        let mut to = 0;
        let spans: Vec<_> = (0..spans)
            .map(|span| {
                let len = lengths[span % lengths.len()];
                to += len;
                CopySpan { from: span * 5, to: to - len, len }
            })
            .collect();
        let x = integers::<S>(1, 700);
        let element = |row: usize, column: usize| {
            let span = spans.iter().find(|span| column < span.to + span.len).unwrap();
            x[rows[row] + span.from + column - span.to]
        };
        let matrix: Vec<S> = (0..rows.len() * to).map(|i| element(i / to, i % to)).collect();
        for trans in [No, Yes] {
            let (k, n) = if trans == No { (rows.len(), to) } else { (to, rows.len()) };
            let op = Gemm::<S>::new(m, n, k).transpose(No, trans).beta(S::from_f64(2.0));
            let (a, c0) = (integers::<S>(2, m * k), integers::<S>(3, m * n));
            let bias = integers::<S>(4, m);
            let mut expected = wide(&c0);
            naive_gemm(&op, &a, &matrix, &mut expected);
            let b = IndirectMatrix::new(trans, &x, &rows, &spans);
            let mut c_with_bias = expected.clone();
            for (row, bias) in c_with_bias.chunks_mut(n).zip(wide(&bias)) {
                row.iter_mut().for_each(|c| *c += bias);
            }
            let check = |workers: &Workers| {
                let mut c = c0.clone();
                gemm_adding_bias(workers, &op, &a, &GemmB::Indirect(&b), None, &mut c).unwrap();
                assert_eq!(wide(&c), expected, "{op:?}");
                for b in [GemmB::Indirect(&b), GemmB::Matrix(&matrix)] {
                    let mut c = c0.clone();
                    gemm_adding_bias(workers, &op, &a, &b, Some(&bias), &mut c).unwrap();
                    assert_eq!(wide(&c), c_with_bias, "{op:?}");
                }
            };
            with_each_simd_level(|| workers.iter().for_each(check));
        }
    }
}

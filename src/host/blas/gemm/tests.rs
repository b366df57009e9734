use super::*;
use crate::{
    element,
    host::testing::{at, for_each_element, fractions, integers, operand, rounded, threads, wide},
};
use Transpose::{No, Yes};
use proptest::prelude::*;

const SHAPES: [(usize, usize, usize); 17] = [
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
    // More than one block along k and n, along m, and rows that a cache keeps in one place.
    (5, 420, 400),
    (1560, 17, 6),
    (22, 17, 1024),
];

const ALPHA_BETA: [(f64, f64); 4] = [(1.0, 0.0), (1.0, 1.0), (-0.5, 2.0), (0.0, 0.5)];

pub(crate) fn naive<T: Element>(op: &Gemm<T>, a: &[T], b: &[T], c: &mut [f64]) {
    let (alpha, beta) = (op.alpha.to_f64(), op.beta.to_f64());
    // Widened once: most of what the tests take is this.
    let column = |j| (0..op.k).map(move |l| at(b, op.trans_b, op.ldb, l, j)).collect();
    let columns: Vec<Vec<f64>> = (0..op.n).map(column).collect();
    for i in 0..op.m {
        let row: Vec<f64> = (0..op.k).map(|l| at(a, op.trans_a, op.lda, i, l)).collect();
        for (j, column) in columns.iter().enumerate() {
            let mut sum = 0.0;
            for (&a, &b) in row.iter().zip(column) {
                sum += a * b;
            }
            let c = &mut c[i * op.ldc + j];
            let old = if beta == 0.0 { 0.0 } else { beta * *c };
            *c = if alpha == 0.0 || op.k == 0 { old } else { alpha * sum + old };
        }
    }
}

/// Checks one product, bit by bit, for one to three threads; what lies between the rows of `C`
/// stays as it is.
fn check<T: Element>(workers: &[Workers], op: &Gemm<T>) {
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
    let mut want = wide(&c0);
    naive(op, &a, &b, &mut want);
    let want = rounded::<T>(&want);
    for workers in workers {
        let mut c = c0.clone();
        gemm(workers, op, &a, &b, &mut c).unwrap();
        assert_eq!(wide(&c), want, "{op:?}");
    }
}

pub(crate) fn products<T: Element>() {
    let workers = threads();
    for (m, n, k) in SHAPES {
        for (case, (trans_a, trans_b)) in
            [(No, No), (No, Yes), (Yes, No), (Yes, Yes)].into_iter().enumerate()
        {
            let (alpha, beta) = ALPHA_BETA[(case + m) % 4];
            let op = Gemm::with_transpose(trans_a, trans_b, m, n, k);
            check::<T>(&workers, &op);
            let op = op.alpha(T::acc(alpha)).beta(T::acc(beta));
            check(&workers, &op.leading_dims(op.lda + 3, op.ldb + 1, op.ldc + 2));
        }
    }
}

pub(crate) fn same_bits_for_any_threads<T: Element>() {
    let workers = threads();
    for (m, n, k) in [
        (100, 90, 300),
        (129, 300, 70),
        (300, 27, 257),
        (34, 200, 400),
        // One row more than a thread gets.
        (33, 10, 7000),
    ] {
        for (trans_a, trans_b, beta) in [(No, No, 0.0), (Yes, No, 0.3), (No, Yes, 1.0)] {
            let op = Gemm::<T>::with_transpose(trans_a, trans_b, m, n, k);
            let op = op.alpha(T::acc(0.7)).beta(T::acc(beta));
            let (a, b) = (fractions::<T>(1, m * k), fractions::<T>(2, k * n));
            let c0 = fractions::<T>(3, m * n);
            let [one, two, three] = workers.each_ref().map(|workers| {
                let mut c = c0.clone();
                gemm(workers, &op, &a, &b, &mut c).unwrap();
                wide(&c)
            });
            assert!(one == two && one == three, "{op:?}");
            let mut want = wide(&c0);
            naive(&op, &a, &b, &mut want);
            let eps = if size_of::<T>() == 2 { 0.01 } else { 1e-6 };
            let near = |(got, want): (&f64, &f64)| (got - want).abs() <= eps * (k as f64).sqrt();
            assert!(one.iter().zip(&want).all(near));
        }
    }
}

pub(crate) fn batches<T: Element>() {
    let workers = threads();
    let shapes = [(3, 4, 5, 7, 0), (1, 1, 1, 2, 1), (20, 30, 10, 40, 3), (130, 120, 140, 3, 0)];
    for (m, n, k, count, gap) in shapes {
        for (stride_a, stride_b) in [(m * k + gap, k * n), (0, k * n + gap), (m * k, 0)] {
            let batch = GemmBatch { count, stride_a, stride_b, stride_c: m * n + gap };
            let op = Gemm::<T>::new(m, n, k).beta(T::acc(2.0));
            let a = integers::<T>(1, stride_a * (count - 1) + m * k);
            let b = integers::<T>(2, stride_b * (count - 1) + k * n);
            let c0 = integers::<T>(3, batch.stride_c * count);
            let mut want = wide(&c0);
            for i in 0..count {
                let (a, b) = (&a[i * stride_a..], &b[i * stride_b..]);
                naive(&op, a, b, &mut want[i * batch.stride_c..]);
            }
            for workers in &workers {
                let mut c = c0.clone();
                gemm_batched(workers, &op, &batch, &a, &b, &mut c).unwrap();
                assert_eq!(wide(&c), rounded::<T>(&want), "{op:?} {batch:?}");
            }
        }
    }
}

for_each_element!(products, same_bits_for_any_threads, batches);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_product_matches(
        (m, n, k) in (0usize..40, 0usize..40, 0usize..40),
        (ta, tb) in (any::<bool>(), any::<bool>()),
        (pad_a, pad_b, pad_c) in (0usize..4, 0usize..4, 0usize..4),
        pair in 0usize..4,
    ) {
        let trans = |yes| if yes { Yes } else { No };
        let (alpha, beta) = ALPHA_BETA[pair];
        let op = Gemm::<f32>::with_transpose(trans(ta), trans(tb), m, n, k);
        let op = op.alpha(alpha as f32).beta(beta as f32);
        check(&[Workers::sequential()], &op.leading_dims(op.lda + pad_a, op.ldb + pad_b, n + pad_c));
    }
}

#[test]
fn errors_name_the_operand() {
    let w = Workers::sequential();
    let op = Gemm::<f32>::new(2, 3, 4);
    let run = |a, b, c| gemm(&w, &op, &vec![0.0; a], &vec![0.0; b], &mut vec![0.0; c]);
    assert_eq!(operand(run(7, 12, 6)), ("gemm", "a"));
    assert_eq!(operand(run(8, 11, 6)), ("gemm", "b"));
    assert_eq!(operand(run(8, 12, 5)), ("gemm", "c"));
    let short = gemm(&w, &op.leading_dims(3, 3, 3), &[0.0; 8], &[0.0; 12], &mut [0.0; 6]);
    assert!(short.unwrap_err().to_string().contains("lda"));

    let batch = GemmBatch { count: 2, stride_a: 8, stride_b: 12, stride_c: 6 };
    let run =
        |a, b, c| gemm_batched(&w, &op, &batch, &vec![0.0; a], &vec![0.0; b], &mut vec![0.0; c]);
    assert_eq!(operand(run(15, 24, 12)), ("gemm_batched", "a"));
    assert_eq!(operand(run(16, 23, 12)), ("gemm_batched", "b"));
    assert_eq!(operand(run(16, 24, 11)), ("gemm_batched", "c"));
    let overlap = GemmBatch { stride_c: 5, ..batch };
    assert!(gemm_batched(&w, &op, &overlap, &[0.0; 16], &[0.0; 24], &mut [0.0; 12]).is_err());
}

/// Vectors of other processors, `matrixmultiply`, and kernels that are not the faster.
#[test]
fn other_processors_kernels_match() {
    crate::host::blas::gemm::dispatch::with_each_width(|| {
        every_kernel::<f32>();
        every_kernel::<f64>();
        products_of_halves::<element::f16>();
        products_of_halves::<element::bf16>();
    });
}

pub(crate) fn products_of_halves<H: Element>() {
    for (m, n, k) in SHAPES {
        for (trans_a, trans_b) in [(No, No), (Yes, No), (No, Yes), (Yes, Yes)] {
            let op = Gemm::<H>::with_transpose(trans_a, trans_b, m, n, k);
            let op = op.alpha(H::acc(0.5)).beta(H::acc(2.0));
            check(&[Workers::sequential()], &op.leading_dims(op.lda + 3, op.ldb + 1, op.ldc + 2));
        }
    }
}

/// All values of 16 bits are widened exactly, and results rounded as `half` does.
#[test]
fn halves_are_rounded_once() {
    crate::host::blas::gemm::dispatch::with_each_width(|| {
        every_value(element::f16::from_bits);
        every_value(element::bf16::from_bits);
    });
}

fn every_value<H: Element<Acc = f32>>(from_bits: impl Fn(u16) -> H) {
    let a: Vec<H> = (0..=u16::MAX).map(from_bits).collect();
    let one = [H::from_f64(1.0); 3];
    // A small product, and one of packed panels.
    for (trans_a, trans_b) in [(No, No), (Yes, Yes)] {
        for alpha in [1.0, 1.0 / 3.0, 3.0, 1e-5] {
            let op = Gemm::<H>::with_transpose(trans_a, trans_b, a.len(), 3, 1).alpha(alpha);
            let mut c = vec![H::default(); 3 * a.len()];
            gemm(&Workers::sequential(), &op, &a, &one, &mut c).unwrap();
            for (a, row) in a.iter().zip(c.chunks(3)) {
                let want = H::from_acc(alpha * a.to_acc()).to_f64();
                let same = |c: &H| c.to_f64() == want || c.to_f64().is_nan() && want.is_nan();
                assert!(row.iter().all(same), "{alpha} · {a:?}: {row:?}, not {want}");
            }
        }
    }
}

fn every_kernel<S: SimdScalar>() {
    for (m, n, k) in SHAPES.into_iter().filter(|(m, n, k)| m * n * k > 0) {
        for (trans_a, trans_b) in [(No, No), (Yes, No), (No, Yes), (Yes, Yes)] {
            let op = Gemm::<S>::with_transpose(trans_a, trans_b, m, n, k);
            let op = op.alpha(S::from_f64(0.5)).beta(S::from_f64(2.0));
            let (a, b) = (integers::<S>(1, m * k), integers::<S>(2, k * n));
            let c0 = integers::<S>(3, m * n);
            let mut want = wide(&c0);
            naive(&op, &a, &b, &mut want);
            for kernel in [GemmPath::Unpacked, GemmPath::Packed] {
                // Of two transposed operands there is no kernel but the packed.
                if kernel == GemmPath::Unpacked && (trans_a, trans_b) == (Yes, Yes) {
                    continue;
                }
                let mut c = c0.clone();
                // SAFETY: operands are just as long as the product says.
                #[allow(unsafe_code)]
                unsafe {
                    kernel.run(&op, &a, &b, c.as_mut_ptr());
                }
                assert_eq!(wide(&c), want, "{kernel:?} {op:?}");
            }
        }
    }
}

/// A matrix in another's memory, in runs of many lengths, whole and transposed.
#[test]
fn indirect_operands_match() {
    crate::host::blas::gemm::dispatch::with_each_width(|| {
        indirect::<f32>();
        indirect::<f64>();
    });
}

fn indirect<S: SimdScalar>() {
    // Some vectors are of as many runs as they have elements.
    let mut lengths = [1; 30];
    lengths[..10].copy_from_slice(&[1, 8, 13, 3, 40, 16, 5, 2, 70, 7]);
    let cases = [(7, 5, 3), (50, 300, 4), (12, 70, 10), (3, 600, 7), (30, 33, 1), (9, 40, 45)];
    for (m, rows, runs) in cases {
        let rows: Vec<usize> = (0..rows).map(|row| row * 3 % 41 * 10).collect();
        let mut to = 0;
        let runs: Vec<_> = (0..runs)
            .map(|run| {
                let len = lengths[run % lengths.len()];
                to += len;
                CopySpan { from: run * 5, to: to - len, len }
            })
            .collect();
        let x = integers::<S>(1, 700);
        let element = |row: usize, column: usize| {
            let run = runs.iter().find(|run| column < run.to + run.len).unwrap();
            x[rows[row] + run.from + column - run.to]
        };
        let matrix: Vec<S> = (0..rows.len() * to).map(|i| element(i / to, i % to)).collect();
        for trans in [No, Yes] {
            let (k, n) = if trans == No { (rows.len(), to) } else { (to, rows.len()) };
            let op = Gemm::<S>::with_transpose(No, trans, m, n, k).beta(S::from_f64(2.0));
            let (a, c0) = (integers::<S>(2, m * k), integers::<S>(3, m * n));
            let bias = integers::<S>(4, m);
            let mut want = wide(&c0);
            naive(&op, &a, &matrix, &mut want);
            let b = IndirectMatrix::new(trans, &x, &rows, &runs);
            let mut biased = want.clone();
            for (row, bias) in biased.chunks_mut(n).zip(wide(&bias)) {
                row.iter_mut().for_each(|c| *c += bias);
            }
            for workers in [Workers::sequential()].iter().chain(&threads()) {
                let mut c = c0.clone();
                gemm_packed(workers, &op, &a, &GemmB::Indirect(&b), None, &mut c).unwrap();
                assert_eq!(wide(&c), want, "{op:?}");
                for b in [GemmB::Indirect(&b), GemmB::Matrix(&matrix)] {
                    let mut c = c0.clone();
                    gemm_packed(workers, &op, &a, &b, Some(&bias), &mut c).unwrap();
                    assert_eq!(wide(&c), biased, "{op:?}");
                }
            }
        }
    }
}

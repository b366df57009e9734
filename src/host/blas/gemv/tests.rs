use super::*;
use crate::host::{
    blas::gemm::with_each_width,
    testing::{at, for_each_element, fractions, integers, operand, rounded, threads, wide},
};
use Transpose::{No, Yes};

/// Wide and tall, within a chunk and beyond, in whole groups of rows and not.
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

fn naive<T: Element>(op: &Gemv<T>, a: &[T], x: &[T], y: &[T]) -> Vec<f64> {
    let (alpha, beta) = (op.alpha.to_f64(), op.beta.to_f64());
    let sum = |i| (0..x.len()).map(|j| at(a, op.trans, op.lda, i, j) * x[j].to_f64()).sum::<f64>();
    let old = |i: usize| if beta == 0.0 { 0.0 } else { beta * y[i].to_f64() };
    (0..y.len()).map(|i| if alpha == 0.0 { 0.0 } else { alpha * sum(i) } + old(i)).collect()
}

fn products<T: Element>() {
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
            let want = rounded::<T>(&naive(&op, &a, &x, &y0));
            for workers in &workers {
                let mut y = y0.clone();
                gemv(workers, &op, &a, &x, &mut y).unwrap();
                assert_eq!(wide(&y), want, "{op:?}");
            }
        }
    }
}

fn same_bits_for_any_threads<T: Element>() {
    let workers = threads();
    for (trans, m, n) in [(No, 301, 1100), (Yes, 301, 2100), (Yes, 1300, 1025)] {
        let op = Gemv::<T>::new(trans, m, n);
        let (a, (x, y)) = (fractions::<T>(1, m * n), op.lengths());
        let x = fractions::<T>(2, x);
        let [one, two, three] = workers.each_ref().map(|workers| {
            let mut y = vec![T::default(); y];
            gemv(workers, &op, &a, &x, &mut y).unwrap();
            wide(&y)
        });
        assert!(one == two && one == three);
        let (want, scale) = (naive(&op, &a, &x, &vec![T::default(); y]), x.len() as f64);
        let eps = T::from_f64(1.0).to_f64() * if size_of::<T>() == 2 { 0.01 } else { 1e-6 };
        for (got, want) in one.iter().zip(want) {
            assert!((got - want).abs() <= eps * scale.sqrt(), "{got} {want}");
        }
    }
}

fn nothing_is_read_at_alpha_zero<T: Element>() {
    let nan = T::from_f64(f64::NAN);
    for trans in [No, Yes] {
        let op = Gemv::<T>::new(trans, 3, 3).alpha(T::acc(0.0)).beta(T::acc(2.0));
        let mut y = [T::from_f64(1.5); 3];
        gemv(&Workers::sequential(), &op, &[nan; 9], &[nan; 3], &mut y).unwrap();
        assert_eq!(wide(&y), [3.0; 3]);
    }
}

/// Rows that begin anywhere in a line, some of them together at one place.
fn same_bits_at_any_address<T: Element>() {
    let (m, n) = (19, 320);
    for (trans, lda) in [(No, n), (Yes, n), (No, n - 3), (Yes, n - 3)] {
        let op = Gemv::<T>::new(trans, m, lda);
        let (room, (x, y)) = (fractions::<T>(1, m * n), op.lengths());
        let x = fractions::<T>(2, x);
        let at = |start: usize| {
            let mut moved = vec![T::from_f64(f64::NAN); start + m * lda + 1];
            moved[start..][..m * lda].copy_from_slice(&room[..m * lda]);
            let mut y = vec![T::default(); y];
            gemv(&Workers::sequential(), &op, &moved[start..][..m * lda], &x, &mut y).unwrap();
            wide(&y)
        };
        let first = at(0);
        assert!((1..33).all(|start| at(start) == first), "{op:?}");
        let want = naive(&op, &room, &x, &vec![T::default(); y]);
        let eps = if size_of::<T>() == 2 { 0.1 } else { 1e-4 };
        assert!(first.iter().zip(want).all(|(got, want)| (got - want).abs() <= eps));
    }
}

#[test]
fn same_bits_at_any_address_with_each_width() {
    with_each_width(|| {
        products::<f32>();
        products::<f64>();
        same_bits_at_any_address::<f32>();
        same_bits_at_any_address::<f64>();
    });
}

for_each_element!(products, same_bits_for_any_threads, nothing_is_read_at_alpha_zero);

#[test]
fn errors_name_the_operand() {
    let w = Workers::sequential();
    let op = Gemv::<f32>::new(No, 2, 3);
    let run = |a, x, y| gemv(&w, &op, &vec![0.0; a], &vec![0.0; x], &mut vec![0.0; y]);
    assert_eq!(operand(run(5, 3, 2)), ("gemv", "a"));
    assert_eq!(operand(run(6, 2, 2)), ("gemv", "x"));
    assert_eq!(operand(run(6, 3, 3)), ("gemv", "y"));
    let short = gemv(&w, &op.leading_dim(2), &[0.0; 6], &[0.0; 3], &mut [0.0; 2]);
    assert!(short.unwrap_err().to_string().contains("lda"));
}

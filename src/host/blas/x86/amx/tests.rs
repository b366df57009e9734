use crate::host::blas::x86::amx::{TILE_K, is_available};
use crate::{
    element::{Element, bf16, f16},
    host::{
        Workers,
        blas::{
            gemm::{
                gemm,
                tests::{batches, naive, products, products_of_halves, same_bits_for_any_threads},
            },
            x86::amx_pack::split_f16,
        },
        testing::{fractions, integers, threads, wide},
    },
    op::{
        Gemm,
        Transpose::{No, Yes},
    },
};
use std::cell::Cell;

thread_local! {
    /// Whether products of any size are computed so.
    pub(super) static ANY_SIZE: Cell<bool> = const { Cell::new(false) };
}

/// Calls `body`, whose products of any size are computed so.
fn with_any_size(body: impl FnOnce()) {
    ANY_SIZE.set(true);
    body();
    ANY_SIZE.set(false);
}

/// Products of any size by AMX, and of any size without it.
fn any_product<H: Element>() {
    let body = || {
        products::<H>();
        products_of_halves::<H>();
        same_bits_for_any_threads::<H>();
        batches::<H>();
    };
    with_any_size(body);
    crate::host::blas::gemm::dispatch::with_vectors(body);
}

#[test]
fn products_with_amx_and_without_match() {
    any_product::<bf16>();
    any_product::<f16>();
}

/// All values, but for subnormal ones, which become zero.
#[test]
fn amx_takes_every_bf16() {
    let normal = |x: f64| if x.abs() < f64::from(f32::MIN_POSITIVE) { 0.0 } else { x };
    let a: Vec<_> = (0..=u16::MAX).map(bf16::from_bits).collect();
    let op = Gemm::with_transpose(Yes, No, a.len(), 3, 1);
    let mut c = vec![bf16::default(); 3 * a.len()];
    let one = [bf16::from_f64(1.0); 3];
    with_any_size(|| gemm(&Workers::sequential(), &op, &a, &one, &mut c).unwrap());
    let exact = !is_available();
    for (a, row) in a.iter().zip(c.chunks(3)) {
        let want = if exact { a.to_f64() } else { normal(a.to_f64()) };
        let same = |c: &bf16| c.to_f64() == want || c.is_nan() && want.is_nan();
        assert!(row.iter().all(same), "{a:?}: {row:?}, not {want}");
    }
}

/// All values, times such as need each of the four products.
#[test]
fn amx_takes_every_f16() {
    let a: Vec<_> = (0..=u16::MAX).map(f16::from_bits).collect();
    // 1, 1 + 2⁻¹⁰, the least subnormal, the largest subnormal, and what is not finite.
    let b = [0x3c00, 0x3c01, 0x8001, 0x03ff, 0x7bff, 0, 0x7c00, 0xfc00, 0x7e00].map(f16::from_bits);
    let op = Gemm::with_transpose(Yes, No, a.len(), b.len(), 1).alpha(2.0);
    let mut c = vec![f16::default(); b.len() * a.len()];
    with_any_size(|| gemm(&Workers::sequential(), &op, &a, &b, &mut c).unwrap());
    for (a, row) in a.iter().zip(c.chunks(b.len())) {
        for (b, c) in b.iter().zip(row) {
            let want = f16::from_f32(2.0 * a.to_f32() * b.to_f32());
            assert!(
                *c == want || c.is_nan() && want.is_nan(),
                "{a:?} · {b:?}: {c:?}, not {want:?}"
            );
        }
    }
}

#[test]
fn every_f16_is_the_sum_of_its_parts() {
    if !crate::host::simd::has_avx512() {
        return;
    }
    for start in (0..=u16::MAX).step_by(TILE_K) {
        let x: [u16; TILE_K] = std::array::from_fn(|i| start + i as u16);
        let (mut high, mut low) = ([0; TILE_K], [0; TILE_K]);
        // SAFETY: the processor has AVX-512; the arrays are as long as its vectors.
        #[allow(unsafe_code)]
        unsafe {
            use std::arch::x86_64::{_mm512_loadu_si512, _mm512_storeu_si512};
            let parts = split_f16(_mm512_loadu_si512(x.as_ptr().cast()));
            _mm512_storeu_si512(high.as_mut_ptr().cast(), parts[0]);
            _mm512_storeu_si512(low.as_mut_ptr().cast(), parts[1]);
        }
        for ((x, high), low) in x.map(f16::from_bits).iter().zip(high).zip(low) {
            let [high, low] = [high, low].map(|part: u16| bf16::from_bits(part).to_f64());
            if x.is_finite() {
                assert_eq!(high + low, x.to_f64());
                assert!(
                    [high, low].iter().all(|part| *part == 0.0 || part.abs() >= 2f64.powi(-24))
                );
            } else {
                assert!(high == x.to_f64() || high.is_nan() && x.is_nan());
            }
        }
    }
}

/// A NaN or infinity, at any place of k, changes its row only.
#[test]
fn amx_keeps_nan_and_infinity_in_their_row() {
    let (m, n, k) = (37, 35, 45);
    let op = Gemm::new(m, n, k);
    let b = vec![bf16::from_f64(2.0); k * n];
    for (special, term) in [(f64::NAN, 0), (f64::INFINITY, 31), (f64::NEG_INFINITY, 44)] {
        let mut a = integers::<bf16>(1, m * k);
        a[36 * k + term] = bf16::from_f64(special);
        let mut c = vec![bf16::default(); m * n];
        with_any_size(|| gemm(&Workers::sequential(), &op, &a, &b, &mut c).unwrap());
        let (others, row) = c.split_at(36 * n);
        assert!(others.iter().all(|c| c.is_finite()));
        let same = |c: f64| c == special || c.is_nan() && special.is_nan();
        assert!(row.iter().all(|c| same(c.to_f64())), "{special}: {row:?}");
    }
}

/// NaN and infinities in both operands, against zeros, each other and halves that have no low
/// part, give what they give in `f64`, and leave other sums as they are; on any number of threads.
#[test]
fn products_of_f16_that_are_not_finite_match() {
    let (m, n, k) = (75, 130, 450);
    let workers = threads();
    for (trans_a, trans_b) in [(No, No), (Yes, No), (No, Yes), (Yes, Yes)] {
        let op = Gemm::<f16>::with_transpose(trans_a, trans_b, m, n, k).alpha(0.5).beta(2.0);
        let (mut a, mut b) = (fractions::<f16>(1, m * k), integers::<f16>(2, k * n));
        let c0 = fractions::<f16>(3, m * n);
        let run = |workers, a: &[f16], b: &[f16]| {
            let mut c = c0.clone();
            with_any_size(|| gemm(workers, &op, a, b, &mut c).unwrap());
            c
        };
        let finite = run(&workers[0], &a, &b);
        let at = |trans, ld, i, j| if trans == No { i * ld + j } else { j * ld + i };
        let infinity = f16::INFINITY;
        let specials =
            [(3, 0, infinity), (3, 449, infinity), (40, 200, -infinity), (74, 7, f16::NAN)];
        for (row, term, x) in specials.into_iter().chain([(50, 30, infinity), (50, 31, -infinity)])
        {
            a[at(trans_a, op.lda, row, term)] = x;
        }
        for (column, term, x) in [(0, 449, infinity), (64, 200, infinity), (129, 100, f16::NAN)] {
            b[at(trans_b, op.ldb, term, column)] = x;
        }
        let [one, two, three] = workers.each_ref().map(|workers| run(workers, &a, &b));
        let mut want = wide(&c0);
        naive(&op, &a, &b, &mut want);
        let mut infinities = 0;
        for (i, want) in want.into_iter().enumerate() {
            let same = if want.is_finite() {
                one[i].to_bits() == finite[i].to_bits()
            } else {
                infinities += usize::from(want.is_infinite());
                one[i].to_f64() == want || one[i].is_nan() && want.is_nan()
            };
            assert!(same, "{op:?}: {} at {i}, not {want}", one[i]);
            let bits = one[i].to_bits();
            assert!(two[i].to_bits() == bits && three[i].to_bits() == bits, "{op:?}: at {i}");
        }
        assert!(infinities > n);
    }
}

/// Sums of 3p·q − p·3q, which are zero if each element's both parts are there, as the parts of
/// these products are others.
#[test]
fn no_part_of_an_f16_is_lost() {
    let (m, n, k) = (35, 70, 420);
    let factors = |tag: usize, lines: usize| -> Vec<f64> {
        let factor = |i: usize| (i + tag) * 7919 % 104_729 * 31 % 801;
        (0..lines * k / 2).map(|i| factor(i) as f64 - 400.0).collect()
    };
    let (p, q) = (factors(1, m), factors(2_000, n));
    let line = |x: &[f64], first: f64, second: f64| -> Vec<f16> {
        x.iter().flat_map(|x| [first * x, second * x]).map(f16::from_f64).collect()
    };
    let (a, b) = (line(&p, 3.0, -1.0), line(&q, 1.0, 3.0));
    let op = Gemm::<f16>::with_transpose(No, Yes, m, n, k).beta(1.0);
    let mut c = integers::<f16>(3, m * n);
    let c0 = c.clone();
    with_any_size(|| gemm(&Workers::sequential(), &op, &a, &b, &mut c).unwrap());
    assert_eq!(wide(&c), wide(&c0));
}

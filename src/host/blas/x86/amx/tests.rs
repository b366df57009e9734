use super::is_available;
use crate::{
    element::{bf16, f16},
    host::{
        Workers,
        blas::{
            gemm::{gemm, tests::naive_gemm},
            x86::{
                bf16_pack::split_f16,
                bf16_tile::TILE_K,
                bf16_unit::{Bf16Unit, with_unit},
            },
        },
        simd::level::SimdLevel,
        testing::{fractions, integers, threads, wide},
    },
    op::{
        Gemm,
        Transpose::{No, Yes},
    },
};

/// Returns whether the processor has AMX. If the processor lacks AMX, prints that the test is
/// skipped.
fn has_amx() -> bool {
    if !is_available() {
        println!("SKIPPED: the processor lacks AMX");
    }
    is_available()
}

/// Calls `body` with AMX enabled for GEMMs of any size.
fn with_amx_for_any_size(body: impl FnOnce()) {
    with_unit(Bf16Unit::Amx, body);
}

/// Multiplies every `f16` value by factors that exercise all four products of the two values'
/// `bf16` terms.
#[test]
fn amx_multiplies_every_f16() {
    if !has_amx() {
        return;
    }
    let a: Vec<_> = (0..=u16::MAX).map(f16::from_bits).collect();
    // Bit patterns of the `f16` factors 1, 1 + 2⁻¹⁰, the negated smallest subnormal, the largest
    // subnormal, the largest value, 0, both infinities and NaN.
    let b = [0x3c00, 0x3c01, 0x8001, 0x03ff, 0x7bff, 0, 0x7c00, 0xfc00, 0x7e00].map(f16::from_bits);
    let op = Gemm::new(a.len(), b.len(), 1).transpose(Yes, No).alpha(2.0);
    let mut c = vec![f16::default(); b.len() * a.len()];
    with_amx_for_any_size(|| gemm(&Workers::sequential(), &op, &a, &b, &mut c).unwrap());
    for (a, row) in a.iter().zip(c.chunks(b.len())) {
        for (b, c) in b.iter().zip(row) {
            let expected = f16::from_f32(2.0 * a.to_f32() * b.to_f32());
            assert!(
                *c == expected || c.is_nan() && expected.is_nan(),
                "{a:?} · {b:?}: got {c:?}, expected {expected:?}"
            );
        }
    }
}

#[test]
fn every_f16_is_the_sum_of_its_bf16_terms() {
    if SimdLevel::highest() != SimdLevel::Avx512 {
        return println!("SKIPPED: the processor lacks AVX-512");
    }
    for start in (0..=u16::MAX).step_by(TILE_K) {
        let x: [u16; TILE_K] = std::array::from_fn(|i| start + i as u16);
        let (mut high, mut low) = ([0; TILE_K], [0; TILE_K]);
        // SAFETY: AVX-512 was detected, and each array is as long as an AVX-512 vector.
        unsafe {
            use std::arch::x86_64::{_mm512_loadu_si512, _mm512_storeu_si512};
            let terms = split_f16(_mm512_loadu_si512(x.as_ptr().cast()));
            _mm512_storeu_si512(high.as_mut_ptr().cast(), terms[0]);
            _mm512_storeu_si512(low.as_mut_ptr().cast(), terms[1]);
        }
        for ((x, high), low) in x.map(f16::from_bits).iter().zip(high).zip(low) {
            let [high, low] = [high, low].map(|term: u16| bf16::from_bits(term).to_f64());
            if x.is_finite() {
                assert_eq!(high + low, x.to_f64());
                let is_normal = |term: &f64| *term == 0.0 || term.abs() >= 2f64.powi(-24);
                assert!([high, low].iter().all(is_normal), "{x}: {high} + {low}");
            } else {
                assert!(high == x.to_f64() || high.is_nan() && x.is_nan());
            }
        }
    }
}

/// The GEMM multiplies NaN and infinities by zeros, by one another, and by `f16` values without a
/// low `bf16` term. AMX results on any number of threads must agree with sums in `f64`. Non-finite
/// elements must not change sums of finite elements.
#[test]
fn amx_sums_of_nonfinite_f16_match_f64() {
    if !has_amx() {
        return;
    }
    let (m, n, k) = (75, 130, 450);
    let workers = threads();
    for (trans_a, trans_b) in [(No, No), (Yes, No), (No, Yes), (Yes, Yes)] {
        let op = Gemm::<f16>::new(m, n, k).transpose(trans_a, trans_b).alpha(0.5).beta(2.0);
        let (mut a, mut b) = (fractions::<f16>(1, m * k), integers::<f16>(2, k * n));
        let c0 = fractions::<f16>(3, m * n);
        let run = |workers, a: &[f16], b: &[f16]| {
            let mut c = c0.clone();
            with_amx_for_any_size(|| gemm(workers, &op, a, b, &mut c).unwrap());
            c
        };
        let finite_c = run(&workers[0], &a, &b);
        let at = |trans, ld, i, j| if trans == No { i * ld + j } else { j * ld + i };
        let infinity = f16::INFINITY;
        let special_elements =
            [(3, 0, infinity), (3, 449, infinity), (40, 200, -infinity), (74, 7, f16::NAN)];
        for (row, step, x) in
            special_elements.into_iter().chain([(50, 30, infinity), (50, 31, -infinity)])
        {
            a[at(trans_a, op.lda, row, step)] = x;
        }
        for (column, step, x) in [(0, 449, infinity), (64, 200, infinity), (129, 100, f16::NAN)] {
            b[at(trans_b, op.ldb, step, column)] = x;
        }
        let [c1, c2, c3] = workers.each_ref().map(|workers| run(workers, &a, &b));
        let mut expected = wide(&c0);
        naive_gemm(&op, &a, &b, &mut expected);
        let mut infinities = 0;
        for (i, expected) in expected.into_iter().enumerate() {
            let is_expected = if expected.is_finite() {
                c1[i].to_bits() == finite_c[i].to_bits()
            } else {
                infinities += usize::from(expected.is_infinite());
                c1[i].to_f64() == expected || c1[i].is_nan() && expected.is_nan()
            };
            assert!(is_expected, "{op:?}: element {i} is {}, expected {expected}", c1[i]);
            let bits = c1[i].to_bits();
            assert!(c2[i].to_bits() == bits && c3[i].to_bits() == bits, "{op:?}: at {i}");
        }
        assert!(infinities > n);
    }
}

/// The AMX kernel splits each `f16` into two `bf16` terms. Sums of 3p·q − p·3q are zero only if the
/// GEMM uses both terms of each element, because p and 3p have different terms.
#[test]
fn amx_uses_both_bf16_terms_of_every_f16() {
    if !has_amx() {
        return;
    }
    let (m, n, k) = (35, 70, 420);
    let factors = |tag: usize, count: usize| -> Vec<f64> {
        let factor = |i: usize| (i + tag) * 7919 % 104_729 * 31 % 801;
        (0..count * k / 2).map(|i| factor(i) as f64 - 400.0).collect()
    };
    let (p, q) = (factors(1, m), factors(2_000, n));
    let pairs = |x: &[f64], first: f64, second: f64| -> Vec<f16> {
        x.iter().flat_map(|x| [first * x, second * x]).map(f16::from_f64).collect()
    };
    let (a, b) = (pairs(&p, 3.0, -1.0), pairs(&q, 1.0, 3.0));
    let op = Gemm::<f16>::new(m, n, k).transpose(No, Yes).beta(1.0);
    let mut c = integers::<f16>(3, m * n);
    let c0 = c.clone();
    with_amx_for_any_size(|| gemm(&Workers::sequential(), &op, &a, &b, &mut c).unwrap());
    assert_eq!(wide(&c), wide(&c0));
}

use super::*;
use crate::{
    element::{bf16, f16},
    host::{
        Workers,
        blas::gemm::{
            gemm,
            tests::{
                batched_gemm_of_integers_is_exact, for_each_gemm_of_16_bit_integers,
                gemm_is_bit_identical_on_any_number_of_threads, gemm_of_integers_is_exact,
            },
        },
        simd::level::{SimdLevel, with_level},
        testing::integers,
    },
    op::Transpose::{No, Yes},
};

/// Calls `body` with each unit that the processor has, for GEMMs of any size.
fn with_each_unit(body: impl Fn()) {
    #[cfg(target_os = "linux")]
    if amx::is_available() {
        with_unit(Bf16Unit::Amx, &body);
    }
    if vdpbf16ps::is_available() {
        with_unit(Bf16Unit::Vdpbf16ps, &body);
    } else {
        println!("SKIPPED: the processor lacks vdpbf16ps");
    }
}

#[test]
fn gemm_with_and_without_each_unit_is_exact() {
    fn check<H: Element>() {
        gemm_of_integers_is_exact::<H>();
        for_each_gemm_of_16_bit_integers::<H>(|check| check());
        gemm_is_bit_identical_on_any_number_of_threads::<H>();
        batched_gemm_of_integers_is_exact::<H>();
    }
    with_each_unit(check::<bf16>);
    with_level(SimdLevel::highest(), check::<bf16>);
    #[cfg(target_os = "linux")]
    if amx::is_available() {
        with_unit(Bf16Unit::Amx, check::<f16>);
        with_level(SimdLevel::highest(), check::<f16>);
    }
}

#[test]
fn each_unit_multiplies_every_bf16_and_flushes_subnormals() {
    let flush_subnormal = |x: f64| if x.abs() < f64::from(f32::MIN_POSITIVE) { 0.0 } else { x };
    let a: Vec<_> = (0..=u16::MAX).map(bf16::from_bits).collect();
    let op = Gemm::new(a.len(), 3, 1).transpose(Yes, No);
    let ones = [bf16::from_f64(1.0); 3];
    with_each_unit(|| {
        let mut c = vec![bf16::default(); 3 * a.len()];
        gemm(&Workers::sequential(), &op, &a, &ones, &mut c).unwrap();
        for (a, row) in a.iter().zip(c.chunks(3)) {
            let expected = flush_subnormal(a.to_f64());
            let is_expected = |c: &bf16| c.to_f64() == expected || c.is_nan() && expected.is_nan();
            assert!(
                row.iter().all(is_expected),
                "products with {a:?}: got {row:?}, expected {expected}"
            );
        }
    });
}

#[test]
fn each_unit_keeps_nan_and_infinity_in_their_row() {
    let (m, n, k) = (37, 35, 45);
    let op = Gemm::new(m, n, k);
    let b = vec![bf16::from_f64(2.0); k * n];
    for (special, step) in [(f64::NAN, 0), (f64::INFINITY, 31), (f64::NEG_INFINITY, 44)] {
        let mut a = integers::<bf16>(1, m * k);
        a[36 * k + step] = bf16::from_f64(special);
        with_each_unit(|| {
            let mut c = vec![bf16::default(); m * n];
            gemm(&Workers::sequential(), &op, &a, &b, &mut c).unwrap();
            let (others, row) = c.split_at(36 * n);
            assert!(others.iter().all(|c| c.is_finite()));
            let is_expected = |c: f64| c == special || c.is_nan() && special.is_nan();
            assert!(row.iter().all(|c| is_expected(c.to_f64())), "{special}: {row:?}");
        });
    }
}

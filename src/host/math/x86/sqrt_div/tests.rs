use super::*;
use crate::host::math::{div_newton, sqrt_newton};

/// Largest relative error of the processor's estimates of reciprocals and of reciprocal square
/// roots.
const MAX_ERROR: f64 = 1.0 / 16_384.0;

/// Returns every `step`-th `f32` whose relative distance from `exact` is below [`MAX_ERROR`].
fn estimates(exact: f64, step: u32) -> impl Iterator<Item = f32> {
    let [low, high] = [-MAX_ERROR, MAX_ERROR].map(|error| (exact * (1.0 + error)) as f32);
    (low.next_up().to_bits()..high.to_bits()).step_by(step as usize).map(f32::from_bits)
}

/// Tests all `f32` values in 1..4, a range with one even and one odd exponent. Tries all estimates
/// for roots close to the midpoint of two `f32` values, and a few estimates for some other roots.
#[test]
fn refined_roots_are_rounded_correctly() {
    let (one, four) = (1f32.to_bits(), 4f32.to_bits());
    let mut close_roots = 0;
    for bits in one..four {
        let x = f32::from_bits(bits);
        let root = f64::from(x).sqrt();
        // The midpoints of neighbouring `f32` values are odd multiples of half an ulp.
        let root_in_half_ulps = root * f64::from(1 << 24);
        let nearest_midpoint = ((root_in_half_ulps - 1.0) / 2.0).round() * 2.0 + 1.0;
        let step = match () {
            () if (root_in_half_ulps - nearest_midpoint).abs() < 1.0 / f64::from(1 << 18) => 1,
            () if bits % 64 == 0 => 331,
            () => continue,
        };
        close_roots += u32::from(step == 1);
        for estimate in estimates(1.0 / root, step) {
            assert_eq!(
                refined_sqrt(x, estimate),
                x.sqrt(),
                "root of {x:e} from estimate {estimate:e}"
            );
        }
    }
    assert_eq!(close_roots, 70);
}

/// Returns the inverse of 2ⁿ modulo `modulus`, which must be odd.
fn inverse_of_power(n: u32, modulus: u64) -> u64 {
    (0..n).fold(1, |inverse, _| inverse * modulus.div_ceil(2) % modulus)
}

/// Tests quotients a / b close to the midpoint m of two `f32` values. Quotients close to a midpoint
/// have a small remainder a·2ⁿ − m·b, where a and b are the 24-bit significands, and m is a 25-bit
/// integer.
#[test]
fn refined_quotients_are_rounded_correctly() {
    const ONE: u64 = 1 << 23;
    let mut count = 0;
    for b in (ONE + 1..2 * ONE - 1).step_by(2 * 4999) {
        // The first range of `a` gives quotients of at least 1, and the second range gives
        // quotients below 1.
        for (n, a_range) in [(24, b..2 * ONE), (25, ONE..b)] {
            let inverse = inverse_of_power(n, b);
            for k in [-7i64, -5, -3, -1, 1, 3, 5, 7] {
                let smallest_dividend = inverse * k.rem_euclid(b as i64) as u64 % b;
                for a in [smallest_dividend, smallest_dividend + b]
                    .into_iter()
                    .filter(|a| a_range.contains(a))
                {
                    let [a, b] = [a, b].map(|v| v as f32 / ONE as f32);
                    for estimate in estimates(1.0 / f64::from(b), 7) {
                        assert_eq!(refined_div(a, b, estimate), a / b, "{a:e} / {b:e}");
                    }
                    count += 1;
                }
            }
        }
    }
    assert!(count > 4000, "{count}");
}

/// The operands include blocks whose results the FMA units refine, and blocks that only the divider
/// computes.
#[test]
fn newton_roots_and_quotients_are_bit_identical_to_hardware_results() {
    let patterns = |step: usize| (0..=u32::MAX).step_by(step).map(f32::from_bits);
    let edge_cases = [0.0, -0.0, f32::NAN, f32::INFINITY, 1e-45, f32::MAX, 2f32.next_down(), 1.0];
    let mut x: Vec<f32> = patterns(30_011).collect();
    x.extend(
        (0..4096).map(|i| if i % 200 == 0 { edge_cases[i / 200 % 8] } else { 0.37 * i as f32 }),
    );
    let mut y = vec![-1.0; x.len()];
    if !sqrt_newton(&x, &mut y) {
        return;
    }
    assert!(x.iter().zip(&y).all(|(x, y)| x.sqrt().to_bits() == y.to_bits()));
    // Three sets of divisors: close to their dividends, of all signs and magnitudes, and with
    // fraction bits that are all ones.
    let divisor_sets: [Vec<f32>; 3] = [
        x.iter().map(|x| x * 0.7).collect(),
        patterns(30_011).cycle().skip(60_000).take(x.len()).collect(),
        x.iter().map(|x| f32::from_bits(x.to_bits() | 0x7f_ffff)).collect(),
    ];
    for b in divisor_sets {
        assert!(div_newton(&x, &b, &mut y));
        for ((a, b), y) in x.iter().zip(&b).zip(&y) {
            let expected = a / b;
            let is_same = expected.to_bits() == y.to_bits() || expected.is_nan() && y.is_nan();
            assert!(is_same, "{a:e} / {b:e}: got {y:e}, expected {expected:e}");
        }
    }
}

use super::*;

type Function<A> = fn(A) -> A;

/// Returns each function with its name, its counterpart in the standard library and its largest
/// error in ulp.
fn functions<A: Element + Float>() -> [(&'static str, Function<A>, Function<A>, f64); 5] {
    [
        ("exp", SimdMath::exp, A::exp, 0.95),
        ("exp_m1", SimdMath::exp_m1, A::exp_m1, 1.5),
        ("ln", SimdMath::ln, A::ln, 0.8),
        ("ln_1p", SimdMath::ln_1p, A::ln_1p, 1.5),
        ("tanh", SimdMath::tanh, A::tanh, 2.4),
    ]
}

/// Special arguments, and arguments at which functions overflow, underflow or switch to another
/// formula.
const EDGE_CASES: [f64; 24] = [
    f64::NAN,
    f64::INFINITY,
    0.0,
    1.0,
    0.5,
    2.0,
    f64::MAX,
    f64::MIN_POSITIVE,
    1e-320,
    1e-310,
    1e-40,
    1e-45,
    3.0e38,
    88.72,
    88.73,
    89.5,
    103.9,
    104.1,
    709.78,
    709.79,
    745.1,
    745.2,
    1e-30,
    9.1,
];

/// Returns `f32` values of all magnitudes and signs, whose bit patterns are evenly spaced.
fn evenly_spaced_bit_patterns() -> impl Iterator<Item = f32> {
    (0..=u32::MAX).step_by(104_729).map(f32::from_bits)
}

/// Returns the distance between `got` and `expected`, in ulp of an `f32`.
fn ulps(got: f32, expected: f64) -> f64 {
    let rounded_expected = expected as f32;
    let is_same = got.to_bits() == rounded_expected.to_bits() || got.is_nan() && expected.is_nan();
    match () {
        // Compare infinities and NaN by bits, because the difference would be NaN.
        () if is_same && !rounded_expected.is_finite() => 0.0,
        () if !is_same && got == 0.0 && rounded_expected == 0.0 => f64::INFINITY,
        () => (f64::from(got) - expected).abs() / ulp(rounded_expected),
    }
}

fn ulp(x: f32) -> f64 {
    let x = x.abs().min(f32::MAX.next_down());
    f64::from(x.next_up()) - f64::from(x)
}

#[test]
fn elementary_functions_in_f32_are_within_their_error_bounds() {
    let f64_functions = functions::<f64>();
    for ((name, f, _, bound), (_, _, library, _)) in
        functions::<f32>().into_iter().zip(f64_functions)
    {
        let edge_cases = EDGE_CASES.into_iter().flat_map(|x| [x as f32, -x as f32]);
        for x in evenly_spaced_bit_patterns().chain(edge_cases) {
            let error = ulps(f(x), library(f64::from(x)));
            assert!(error <= bound, "{name}({x:e}) = {:e}: error of {error} ulp", f(x));
        }
    }
}

#[test]
fn elementary_functions_in_f64_are_close_to_the_standard_library() {
    for (name, f, library, bound) in functions::<f64>() {
        let arguments = evenly_spaced_bit_patterns()
            .map(f64::from)
            .chain((0..30_000).map(|i| 0.03 * f64::from(i) - 450.0));
        for x in arguments.chain(EDGE_CASES).flat_map(|x| [x, -x, x * 1.000_000_1]) {
            let (got, expected) = (f(x), library(x));
            let magnitude = expected.abs().min(f64::MAX.next_down());
            let ulp = magnitude.next_up() - magnitude;
            // Allow twice the error bound, because the reference result of the standard library
            // also has a rounding error.
            let is_near = expected != 0.0 && (got - expected).abs() <= 2.0 * bound * ulp;
            let is_same = got == expected && got.is_sign_negative() == expected.is_sign_negative();
            let ok = is_near || is_same || got.is_nan() && expected.is_nan();
            assert!(ok, "{name}({x:e}) = {got:e}, expected {expected:e}");
        }
    }
}

#[test]
fn powers_are_within_their_error_bound() {
    let powers = [0.75, -0.75, 0.5, 2.0, -1.0, 3.0, -7.0, 1e-3, 1e10, 0.0, -0.0, 16_777_217.0];
    let edge_cases = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for p in powers.into_iter().chain(edge_cases).map(|p| p as f32) {
        let edge_cases = EDGE_CASES.into_iter().flat_map(|x| [x as f32, -x as f32]);
        for x in evenly_spaced_bit_patterns().step_by(4).chain(edge_cases) {
            let (got, expected) = (SimdMath::powf(x, p), f64::from(x).powf(f64::from(p)));
            let error = ulps(got, expected);
            assert!(error <= 0.6, "powf({x:e}, {p}) = {got:e}: error of {error} ulp");
        }
    }
}

#[test]
fn a_block_of_powers_is_bit_identical_to_single_powers() {
    const COUNT: usize = 16;
    for p in [0.75, -0.75, 6.0, -6.0, 6.1, -7.5, 1e10, f32::INFINITY, f32::NEG_INFINITY] {
        for first in evenly_spaced_bit_patterns().step_by(16) {
            let x: [f32; COUNT] = std::array::from_fn(|i| {
                f32::from_bits(first.abs().to_bits() ^ (i as u32 * 12_345))
            })
            .map(|x: f32| if x.is_normal() { x } else { f32::MIN_POSITIVE });
            let powers = x.map(|x| SimdMath::powf(x, p).to_bits());
            assert_eq!(pow_normal_range(x, p).map(f32::to_bits), powers, "powf({x:?}, {p})");
        }
    }
}

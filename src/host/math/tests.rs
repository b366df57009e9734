use super::*;

type Function<A> = fn(A) -> A;

/// The vectorised function, the library's, and the worst error in units in the last place.
fn functions<A: Element + Float>() -> [(&'static str, Function<A>, Function<A>, f64); 5] {
    [
        ("exp", SimdMath::exp, A::exp, 0.95),
        ("exp_m1", SimdMath::exp_m1, A::exp_m1, 1.5),
        ("ln", SimdMath::ln, A::ln, 0.8),
        ("ln_1p", SimdMath::ln_1p, A::ln_1p, 1.5),
        ("tanh", SimdMath::tanh, A::tanh, 2.4),
    ]
}

/// Special values, and where functions overflow, underflow or change their form.
const EDGES: [f64; 24] = [
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

/// Bit patterns of all kinds.
fn patterns() -> impl Iterator<Item = f32> {
    (0..=u32::MAX).step_by(104_729).map(f32::from_bits)
}

/// How far `got` is from `want`, in units in the last place of an `f32`.
fn ulps(got: f32, want: f64) -> f64 {
    let near = want as f32;
    if got.to_bits() == near.to_bits() || got.is_nan() && want.is_nan() {
        // At most half a unit; infinities and NaN are not to be subtracted.
        return if near.is_finite() { (f64::from(got) - want).abs() / unit(near) } else { 0.0 };
    }
    if got == 0.0 && near == 0.0 {
        f64::INFINITY
    } else {
        (f64::from(got) - want).abs() / unit(near)
    }
}

fn unit(x: f32) -> f64 {
    let x = x.abs().min(f32::MAX.next_down());
    f64::from(x.next_up()) - f64::from(x)
}

#[test]
fn single_precision_is_within_its_bounds() {
    let wide = functions::<f64>();
    for ((name, ours, _, bound), (_, _, library, _)) in functions::<f32>().into_iter().zip(wide) {
        let edges = EDGES.into_iter().flat_map(|x| [x as f32, -x as f32]);
        for x in patterns().chain(edges) {
            let error = ulps(ours(x), library(f64::from(x)));
            assert!(error <= bound, "{name} of {x:e}: {:e}, {error} ulp off", ours(x));
        }
    }
}

#[test]
fn double_precision_is_as_close_to_the_library() {
    for (name, ours, library, bound) in functions::<f64>() {
        let usual =
            patterns().map(f64::from).chain((0..30_000).map(|i| 0.03 * f64::from(i) - 450.0));
        for x in usual.chain(EDGES).flat_map(|x| [x, -x, x * 1.000_000_1]) {
            let (got, want) = (ours(x), library(x));
            let unit = want.abs().min(f64::MAX.next_down());
            let unit = unit.next_up() - unit;
            // The library's own error.
            let near = (got - want).abs() <= 2.0 * bound * unit;
            let same = got == want && got.is_sign_negative() == want.is_sign_negative();
            assert!(
                near && want != 0.0 || same || got.is_nan() && want.is_nan(),
                "{name} of {x:e}: {got:e} for {want:e}"
            );
        }
    }
}

#[test]
fn powers_are_within_their_bound() {
    let powers = [0.75, -0.75, 0.5, 2.0, -1.0, 3.0, -7.0, 1e-3, 1e10, 0.0, -0.0, 16_777_217.0];
    let edges = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for p in powers.into_iter().chain(edges).map(|p| p as f32) {
        let edges = EDGES.into_iter().flat_map(|x| [x as f32, -x as f32]);
        for x in patterns().step_by(4).chain(edges) {
            let (got, want) = (SimdMath::powf(x, p), f64::from(x).powf(f64::from(p)));
            let error = ulps(got, want);
            assert!(error <= 0.6, "{x:e} to the {p}: {got:e}, {error} ulp off");
        }
    }
}

#[test]
fn powers_side_by_side_have_the_bits_of_one() {
    const COUNT: usize = 16;
    for p in [0.75, -0.75, 6.0, -6.0, 6.1, -7.5, 1e10, f32::INFINITY, f32::NEG_INFINITY] {
        for first in patterns().step_by(16) {
            let x: [f32; COUNT] = std::array::from_fn(|i| {
                f32::from_bits(first.abs().to_bits() ^ (i as u32 * 12_345))
            })
            .map(|x: f32| if x.is_normal() { x } else { f32::MIN_POSITIVE });
            let powers = x.map(|x| SimdMath::powf(x, p).to_bits());
            assert_eq!(pow_normal_range(x, p).map(f32::to_bits), powers, "{x:?} to the {p}");
        }
    }
}

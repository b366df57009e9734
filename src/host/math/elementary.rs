//! Branch-free exponential, logarithm and hyperbolic tangent in `f32` and `f64`.
//!
//! The elementary functions use only integer operations and correctly rounded additions,
//! multiplications, fused multiply-adds and divisions, so vectors of any width give bit-identical
//! results. On processors without FMA (x86 before 2013), each fused multiply-add calls the C
//! library, which is correct but slow.
//!
//! The elementary functions minimize the number of operations rather than the length of dependency
//! chains, because the processor overlaps the chains of different elements.

/// Evaluates `Σ cᵢ·xⁱ` by Horner's rule.
macro_rules! polynomial {
    ($x:expr, [$last:expr]) => { $last };
    ($x:expr, [$first:expr $(, $other:expr)+]) => {
        $x.mul_add(polynomial!($x, [$($other),+]), $first)
    };
}

pub(crate) use polynomial;

/// Defines the elementary functions of one floating-point type, which has `fraction` fraction bits.
/// The macro parameter `exp` holds a lower bound, below which eˣ rounds to 0, and an upper bound,
/// above which eˣ is infinite. If x is less than the macro parameter `exp_m1`, eˣ − 1 rounds to −1.
/// If x is greater than the macro parameter `tanh`, tanh x rounds to 1.
macro_rules! elementary {
    (
        $float:ident, $bits:ident, $int:ident, fraction: $fraction:literal, bias: $bias:literal,
        ln2: [$ln2_high:expr, $ln2_low:expr], exp: [$exp_min:literal, $exp_max:literal],
        exp_m1: $exp_m1_min:literal, tanh: $tanh_max:literal,
        tail: [$($tail:literal),*], tanh_tail: [$($tanh:literal),*],
        float: |$e:ident| $to_float:expr, ln_tail: |$f:ident, $low:ident| $ln_tail:expr
    ) => {
        pub(crate) mod $float {
            /// Constant whose addition to a number rounds the number to the nearest integer. The
            /// low bits of the number plus `ROUND` hold the integer plus twice the exponent bias.
            const ROUND: $float = 1.5 * (1u64 << $fraction) as $float + (2 * $bias) as $float;
            /// Exponent bias of the floating-point type; [`ROUND`] includes twice this bias.
            const BIAS: $bits = $bias;
            /// ln 2 as the sum of a high and a low part. The product of the high part and the
            /// integer exponent of a floating-point number is exact.
            const LN2: [$float; 2] = [$ln2_high, $ln2_low];
            /// Bit pattern of √½. Significands are normalized to the range from √½ to √2.
            const SQRT_HALF_BITS: $bits = std::$float::consts::FRAC_1_SQRT_2.to_bits();

            /// Returns `2ⁿ`, which must be normal.
            #[inline(always)]
            fn exp2(n: $int) -> $float {
                $float::from_bits((n.wrapping_add($bias) << $fraction) as $bits)
            }

            /// Returns `r` and `n + ROUND`, where `x = n·ln 2 + r` and `|r| ≤ ½·ln 2`. If `x` is
            /// NaN, the returned `r` is NaN.
            #[inline(always)]
            fn reduce_range(x: $float) -> ($float, $float) {
                let shifted = x.mul_add(std::$float::consts::LOG2_E, ROUND);
                let n = shifted - ROUND;
                ((-n).mul_add(LN2[1], (-n).mul_add(LN2[0], x)), shifted)
            }

            /// Returns `eʳ − 1` for `|r| ≤ ½·ln 2`.
            #[inline(always)]
            fn exp_m1_reduced(r: $float) -> $float {
                (r * r).mul_add(polynomial!(r, [$($tail),*]), r)
            }

            /// Returns the integer `n`, given `shifted = n + ROUND`.
            #[inline(always)]
            fn rounded_integer(shifted: $float) -> $int {
                shifted.to_bits().wrapping_sub(ROUND.to_bits()) as $int
            }

            /// Clamps `x` to the range `low..=high`. If `x` is NaN, returns NaN.
            #[inline(always)]
            fn clamp(x: $float, low: $float, high: $float) -> $float {
                let x = if x < low { low } else { x };
                if x > high { high } else { x }
            }

            #[inline(always)]
            pub(crate) fn exp(x: $float) -> $float {
                let x = clamp(x, $exp_min, $exp_max);
                let (r, shifted) = reduce_range(x);
                let p = polynomial!(r, [1.0, 1.0, $($tail),*]);
                // Multiply by 2ⁿ in two steps, because 2ⁿ may be subnormal or infinite. The second
                // factor is one of two powers of two, selected by the sign of x.
                let sign = (x.to_bits() >> 1) & (1 << ($bits::BITS - 2));
                let second = sign ^ (($bias + ($bias >> 1) + 1) << $fraction);
                let first = (shifted.to_bits() << $fraction).wrapping_sub(second);
                p * $float::from_bits(first) * $float::from_bits(second)
            }

            /// Returns [`exp`] of `x`, which must satisfy `|x| ≤ 86`.
            #[inline(always)]
            pub(crate) fn exp_normal_range(x: $float) -> $float {
                let (r, shifted) = reduce_range(x);
                let scale = $float::from_bits(shifted.to_bits().wrapping_sub(BIAS) << $fraction);
                polynomial!(r, [1.0, 1.0, $($tail),*]) * scale
            }

            #[inline(always)]
            pub(crate) fn exp_m1(x: $float) -> $float {
                let (r, shifted) = reduce_range(clamp(x, $exp_m1_min, $exp_max));
                let (p, n) = (exp_m1_reduced(r), rounded_integer(shifted));
                // Multiply by 2ⁿ in two steps, because 2ⁿ may overflow.
                let half_n = n >> 1;
                let (first, second) = (exp2(half_n), n.wrapping_sub(half_n));
                // `y` is 2ⁿ·(1 + p) − 1.
                let y = p.mul_add(first, first - exp2(second.wrapping_neg())) * exp2(second);
                y.copysign(x)
            }

            /// Returns `tanh x`, which is `t / (t + 2)` with `t = e²ˣ − 1`. Near 0, a power series
            /// replaces the quotient `t / (t + 2)`, whose rounding errors would be too large.
            #[inline(always)]
            pub(crate) fn tanh(x: $float) -> $float {
                let magnitude = x.abs();
                let clamped_magnitude = if magnitude > $tanh_max { $tanh_max } else { magnitude };
                let (r, shifted) = reduce_range(clamped_magnitude + clamped_magnitude);
                let scale = exp2(rounded_integer(shifted));
                let t = exp_m1_reduced(r).mul_add(scale, scale - 1.0);
                let quotient = t / (t + 2.0);
                let z = x * x;
                let series = (z * polynomial!(z, [$($tanh),*])).mul_add(magnitude, magnitude);
                (if magnitude < 0.25 { series } else { quotient }).copysign(x)
            }

            #[inline(always)]
            pub(crate) fn ln(x: $float) -> $float {
                // Normalize a subnormal `x`: multiply `x` by 2 to the power of the number of
                // fraction bits.
                let is_subnormal = x < $float::MIN_POSITIVE;
                let y = if is_subnormal { x * (1u64 << $fraction) as $float } else { x };
                let scaled_low = SQRT_HALF_BITS.wrapping_add($fraction << $fraction);
                let low = if is_subnormal { scaled_low } else { SQRT_HALF_BITS };
                let offset = y.to_bits().wrapping_sub(low);
                let e = offset as $int >> $fraction;
                let m = (offset & ((1 << $fraction) - 1)).wrapping_add(SQRT_HALF_BITS);
                let value = scaled_ln(e, $float::from_bits(m) - 1.0);
                handle_special(x, value)
            }

            /// Returns [`ln`] of `x`, which must be positive, normal and finite.
            #[inline(always)]
            pub(crate) fn ln_normal_range(x: $float) -> $float {
                let offset = x.to_bits().wrapping_sub(SQRT_HALF_BITS);
                let m = (offset & ((1 << $fraction) - 1)).wrapping_add(SQRT_HALF_BITS);
                scaled_ln(offset as $int >> $fraction, $float::from_bits(m) - 1.0)
            }

            #[inline(always)]
            pub(crate) fn ln_1p(x: $float) -> $float {
                let y = 1.0 + x;
                let e = y.to_bits().wrapping_sub(SQRT_HALF_BITS) as $int >> $fraction;
                // 1 + x = 2ᵉ·(1 + f). Compute f from x, because rounding 1 + x to y loses low bits
                // of x.
                let half_e = e >> 1;
                let scale = exp2(half_e.wrapping_neg()) * exp2(half_e.wrapping_sub(e));
                let f = x.mul_add(scale, scale - 1.0);
                handle_special(y, scaled_ln(e, f)).copysign(x)
            }

            #[inline(always)]
            fn to_float($e: $int) -> $float {
                $to_float
            }

            /// Returns `e·ln 2 + ln(1 + f)` for `√½ ≤ 1 + f < √2`.
            #[inline(always)]
            fn scaled_ln(e: $int, $f: $float) -> $float {
                let e = to_float(e);
                let high = e.mul_add(LN2[0], $f);
                // Add the rounding error of `high` to the low part of e·ln 2.
                let error = e.mul_add(LN2[0], -high) + $f;
                let $low = e.mul_add(LN2[1], error);
                high + $ln_tail
            }

            /// Returns `value`, the logarithm of `x`, if `x` is positive and finite, else −∞, ∞ or
            /// NaN.
            #[inline(always)]
            fn handle_special(x: $float, value: $float) -> $float {
                let value = if x < $float::INFINITY { value } else { x };
                let special_value = if x == 0.0 { -$float::INFINITY } else { $float::NAN };
                if x > 0.0 { value } else { special_value }
            }
        }
    };
}

elementary!(
    f32, u32, i32, fraction: 23, bias: 127,
    ln2: [0.693_145_75, 1.428_606_8e-6], exp: [-104.0, 89.0],
    exp_m1: -18.0, tanh: 10.0,
    tail: [0.49999994, 0.16666521, 0.04166839, 0.0083687175, 0.0013814602],
    tanh_tail: [-0.333_332_42, 0.133_242_82, -0.051_435_616],
    float: |e| e as f32,
    ln_tail: |f, low| (f * f).mul_add(polynomial!(f, [
        -0.5, 0.3333333, -0.2500082, 0.20001227, -0.16623358, 0.1420176, -0.13160181, 0.12761565,
        -0.07634486
    ]), low)
);

elementary!(
    f64, u64, i64, fraction: 52, bias: 1023,
    ln2: [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10], exp: [-746.0, 710.0],
    exp_m1: -38.0, tanh: 20.0,
    tail: [
        0.5000000000000011, 0.16666666666666413, 0.04166666666653016, 0.008333333333494465,
        0.0013888888943628945, 0.0001984126950656571, 2.4801493100070983e-5,
        2.7557586388432946e-6, 2.7630247990154756e-7, 2.5000056708161145e-8
    ],
    tanh_tail: [
        -0.3333333333333281, 0.13333333333118386, -0.05396825366996371, 0.021869468891680496,
        -0.00886254233932282, 0.003578633109930451, -0.001318326913234705
    ],
    // Convert the integer by its bit pattern, because among the x86-64 SIMD levels, only AVX-512
    // has a vector instruction that converts 64-bit integers to `f64`.
    float: |e| f64::from_bits(ROUND.to_bits().wrapping_add(e as u64)) - ROUND,
    ln_tail: |f, low| {
        let s = f / (2.0 + f);
        let z = s * s;
        let series = z * polynomial!(z, [
            0.6666666666666734, 0.3999999999941469, 0.28571428742385063, 0.22222198573355842,
            0.18183564320635096, 0.15314050627775264, 0.14795949438512832
        ]);
        let half_square = 0.5 * f * f;
        low + s.mul_add(half_square + series, -half_square)
    }
);

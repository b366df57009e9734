//! Exponential, logarithm and hyperbolic tangent in `f32` and in `f64`, without a branch.
//!
//! Written once for both, by additions, products, fused ones, divisions and integer operations
//! alone: the compiler makes vectors of any width of them, and each gives the same bits, since all
//! of these round correctly. Where there is no instruction for a fused product (x86 of before
//! 2013) the C library is called for each, which is right but slow.
//!
//! What counts is the number of operations: elements are many, and none waits for another.

/// `Σ cᵢ·xⁱ`, by Horner's rule.
macro_rules! polynomial {
    ($x:expr, [$last:expr]) => { $last };
    ($x:expr, [$first:expr $(, $other:expr)+]) => {
        $x.mul_add(polynomial!($x, [$($other),+]), $first)
    };
}

pub(crate) use polynomial;

/// The functions of one type; `$fraction` are the bits of its fraction.
macro_rules! elementary {
    (
        $float:ident, $bits:ident, $int:ident, fraction: $fraction:literal, bias: $bias:literal,
        ln2: [$ln2_high:expr, $ln2_low:expr], exp: [$least:literal, $greatest:literal],
        exp_m1: $m1_least:literal, tanh: $one:literal,
        tail: [$($tail:literal),*], tanh_tail: [$($tanh:literal),*],
        float: |$e:ident| $to_float:expr, ln_tail: |$f:ident, $low:ident| $ln_tail:expr
    ) => {
        pub(crate) mod $float {
            /// What leaves an integer in the low bits when it is added to it, with two biases.
            const ROUND: $float = 1.5 * (1u64 << $fraction) as $float + (2 * $bias) as $float;
            /// One of the biases in [`ROUND`], the other being that of exponents.
            const BIAS: $bits = $bias;
            /// ln 2 in two parts: products of the first with exponents are exact.
            const LN2: [$float; 2] = [$ln2_high, $ln2_low];
            /// The bits of √½: significands are taken from there to √2.
            const LOW: $bits = std::$float::consts::FRAC_1_SQRT_2.to_bits();

            /// `2ⁿ`, normal.
            #[inline(always)]
            fn exp2(n: $int) -> $float {
                $float::from_bits((n.wrapping_add($bias) << $fraction) as $bits)
            }

            /// `r` and `n + ROUND` of `x = n·ln 2 + r` with `r` at most half of ln 2.
            ///
            /// NaN is in `r` then.
            #[inline(always)]
            fn reduced(x: $float) -> ($float, $float) {
                let shifted = x.mul_add(std::$float::consts::LOG2_E, ROUND);
                let n = shifted - ROUND;
                ((-n).mul_add(LN2[1], (-n).mul_add(LN2[0], x)), shifted)
            }

            /// `eʳ − 1` for `r` at most half of ln 2.
            #[inline(always)]
            fn near_one(r: $float) -> $float {
                (r * r).mul_add(polynomial!(r, [$($tail),*]), r)
            }

            /// The integer that was added to `ROUND`.
            #[inline(always)]
            fn integer(shifted: $float) -> $int {
                shifted.to_bits().wrapping_sub(ROUND.to_bits()) as $int
            }

            /// `x`, but no less than `low` and no greater than `high`. NaN stays.
            #[inline(always)]
            fn clamped(x: $float, low: $float, high: $float) -> $float {
                let x = if x < low { low } else { x };
                if x > high { high } else { x }
            }

            /// `eˣ`.
            #[inline(always)]
            pub(crate) fn exp(x: $float) -> $float {
                let x = clamped(x, $least, $greatest);
                let (r, shifted) = reduced(x);
                let p = polynomial!(r, [1.0, 1.0, $($tail),*]);
                // In two steps, since 2ⁿ need not be normal: the second is one of two powers, by
                // the sign of x.
                let sign = (x.to_bits() >> 1) & (1 << ($bits::BITS - 2));
                let second = sign ^ (($bias + ($bias >> 1) + 1) << $fraction);
                let first = (shifted.to_bits() << $fraction).wrapping_sub(second);
                p * $float::from_bits(first) * $float::from_bits(second)
            }

            /// As [`exp`] of what is at most 86 either way.
            #[inline(always)]
            pub(crate) fn usual_exp(x: $float) -> $float {
                let (r, shifted) = reduced(x);
                let scale = $float::from_bits(shifted.to_bits().wrapping_sub(BIAS) << $fraction);
                polynomial!(r, [1.0, 1.0, $($tail),*]) * scale
            }

            /// `eˣ − 1`.
            #[inline(always)]
            pub(crate) fn exp_m1(x: $float) -> $float {
                let (r, shifted) = reduced(clamped(x, $m1_least, $greatest));
                let (p, n) = (near_one(r), integer(shifted));
                // In two steps: 2ⁿ may be too great.
                let half = n >> 1;
                let (first, second) = (exp2(half), n.wrapping_sub(half));
                // 2ⁿ·(1 + p) − 1
                let y = p.mul_add(first, first - exp2(second.wrapping_neg())) * exp2(second);
                y.copysign(x)
            }

            /// `tanh x`, by `t / (t + 2)` of `t = e²ˣ − 1`; near 0, where that rounds too often,
            /// by its series.
            #[inline(always)]
            pub(crate) fn tanh(x: $float) -> $float {
                let size = x.abs();
                let most = if size > $one { $one } else { size };
                let (r, shifted) = reduced(most + most);
                let scale = exp2(integer(shifted));
                let t = near_one(r).mul_add(scale, scale - 1.0);
                let quotient = t / (t + 2.0);
                let z = x * x;
                let series = (z * polynomial!(z, [$($tanh),*])).mul_add(size, size);
                (if size < 0.25 { series } else { quotient }).copysign(x)
            }

            /// `ln x`.
            #[inline(always)]
            pub(crate) fn ln(x: $float) -> $float {
                // Times 2ᶠ if subnormal.
                let small = x < $float::MIN_POSITIVE;
                let y = if small { x * (1u64 << $fraction) as $float } else { x };
                let low = if small { LOW.wrapping_add($fraction << $fraction) } else { LOW };
                let above = y.to_bits().wrapping_sub(low);
                let e = above as $int >> $fraction;
                let m = (above & ((1 << $fraction) - 1)).wrapping_add(LOW);
                let value = scaled_ln(e, $float::from_bits(m) - 1.0);
                special(x, value)
            }

            /// As [`ln`] of what is positive, normal and finite.
            #[inline(always)]
            pub(crate) fn usual_ln(x: $float) -> $float {
                let above = x.to_bits().wrapping_sub(LOW);
                let m = (above & ((1 << $fraction) - 1)).wrapping_add(LOW);
                scaled_ln(above as $int >> $fraction, $float::from_bits(m) - 1.0)
            }

            /// `ln(1 + x)`.
            #[inline(always)]
            pub(crate) fn ln_1p(x: $float) -> $float {
                let y = 1.0 + x;
                let e = y.to_bits().wrapping_sub(LOW) as $int >> $fraction;
                // 1 + x = 2ᵉ·(1 + f), without rounding x away.
                let half = e >> 1;
                let scale = exp2(half.wrapping_neg()) * exp2(half.wrapping_sub(e));
                let f = x.mul_add(scale, scale - 1.0);
                special(y, scaled_ln(e, f)).copysign(x)
            }

            /// `e`, an exponent.
            #[inline(always)]
            fn to_float($e: $int) -> $float {
                $to_float
            }

            /// `e·ln 2 + ln(1 + f)` for `√½ ≤ 1 + f < √2`.
            #[inline(always)]
            fn scaled_ln(e: $int, $f: $float) -> $float {
                let e = to_float(e);
                let high = e.mul_add(LN2[0], $f);
                // What that rounding lost, and what is lower.
                let lost = e.mul_add(LN2[0], -high) + $f;
                let $low = e.mul_add(LN2[1], lost);
                high + $ln_tail
            }

            /// The logarithm of `x`, which is `value` if `x` is positive and finite.
            #[inline(always)]
            fn special(x: $float, value: $float) -> $float {
                let value = if x < $float::INFINITY { value } else { x };
                let other = if x == 0.0 { -$float::INFINITY } else { $float::NAN };
                if x > 0.0 { value } else { other }
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
    // Only AVX-512 has an instruction for it.
    float: |e| f64::from_bits(ROUND.to_bits().wrapping_add(e as u64)) - ROUND,
    ln_tail: |f, low| {
        let s = f / (2.0 + f);
        let z = s * s;
        let series = z * polynomial!(z, [
            0.6666666666666734, 0.3999999999941469, 0.28571428742385063, 0.22222198573355842,
            0.18183564320635096, 0.15314050627775264, 0.14795949438512832
        ]);
        let half = 0.5 * f * f;
        low + s.mul_add(half + series, -half)
    }
);

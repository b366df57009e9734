//! Functions of one and of two elements.

use crate::{
    conformance::values::Expected,
    op::{Binary, Unary},
};

/// Units in the last place that OpenCL C grants its functions in `f32` (section 7.4), and one for
/// the `f64` function that they are compared with.
mod ulps {
    pub(super) const EXP: f64 = 3.0 + 1.0;
    pub(super) const LN: f64 = 3.0 + 1.0;
    pub(super) const POW: f64 = 16.0 + 1.0;
    pub(super) const SQRT: f64 = 3.0 + 1.0;
    pub(super) const TANH: f64 = 5.0 + 1.0;
    pub(super) const DIVIDE: f64 = 2.5 + 1.0;
    /// `eˣ`, a sum and a quotient.
    pub(super) const SIGMOID: f64 = 3.0 + 0.5 + 2.5 + 1.0;
    /// `e⁻ˣ` and `ln(1 + x)` of it, and a sum.
    pub(super) const SOFTPLUS: f64 = 3.0 + 3.0 + 0.5 + 1.0;
    pub(super) const EXP_M1: f64 = 3.0 + 1.0;
}

/// `scale·x + shift`, and how many roundings of it there are in one of its terms.
fn affine(scale: f64, x: f64, shift: f64) -> (f64, f64) {
    let sum = scale * x + shift;
    (sum, 2.0 * ((scale * x).abs() + shift.abs()) / sum.abs())
}

/// `op(x)`
pub(in crate::conformance) fn unary(op: Unary<f64>, x: f64) -> Expected {
    match op {
        Unary::Abs => Expected::once(if x < 0.0 { -x } else { x }),
        Unary::Neg => Expected::once(0.0 - x),
        Unary::Exp => Expected::near(x.exp(), ulps::EXP),
        Unary::Ln => Expected::near(x.ln(), ulps::LN),
        Unary::Sqr => Expected::once(x * x),
        Unary::Sqrt => Expected::near(x.sqrt(), ulps::SQRT),
        Unary::Recip => Expected::near(x.recip(), ulps::DIVIDE),
        Unary::Tanh => Expected::near(x.tanh(), ulps::TANH),
        Unary::Sigmoid => Expected::near(1.0 / (1.0 + (-x).exp()), ulps::SIGMOID),
        Unary::Softplus => {
            let more = (-x.abs()).exp().ln_1p();
            Expected::near(if x > 0.0 { x + more } else { more }, ulps::SOFTPLUS)
        }
        Unary::Sign => Expected::once(f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))),
        Unary::SignBit => Expected::once((x.to_bits() >> 63) as f64),
        Unary::Pow(p) => Expected::near(x.powf(p), ulps::POW),
        Unary::AddScalar(c) => Expected::once(x + c),
        Unary::Scale(c) => Expected::once(c * x),
        Unary::Threshold(t) => Expected::once(f64::from(u8::from(x > t))),
        Unary::Elu { .. } if x > 0.0 => Expected::once(x),
        Unary::Elu { alpha } => Expected::near(alpha * x.exp_m1(), ulps::EXP_M1 + 1.0),
        Unary::Swish { beta } => {
            // A rounding of the exponent counts as often as that is large.
            let roundings = ulps::SIGMOID + 1.0 + (beta * x).abs();
            Expected::near(x / (1.0 + (-beta * x).exp()), roundings)
        }
        Unary::ExpAffine { scale, shift } => {
            let roundings = ulps::EXP + 2.0 * ((scale * x).abs() + shift.abs());
            Expected::near((scale * x + shift).exp(), roundings)
        }
        Unary::LnAffine { scale, shift, factor } => {
            let (sum, roundings) = affine(scale, x, shift);
            // A rounding of the sum is one of 1 in its logarithm.
            let magnitude = factor.abs() * (sum.ln().abs() + roundings);
            Expected { magnitude, ..Expected::near(factor * sum.ln(), ulps::LN + 1.0) }
        }
        Unary::PowAffine { scale, shift, power } => {
            let (sum, roundings) = affine(scale, x, shift);
            Expected::near(sum.powf(power), ulps::POW + roundings * power.abs())
        }
        Unary::Relu { slope } => Expected::once(if x > 0.0 { x } else { slope * x }),
        Unary::Clip { low, high } if x < low => Expected::once(if low < high { low } else { high }),
        Unary::Clip { high, .. } => Expected::once(if x > high { high } else { x }),
    }
}

/// `a op b`
pub(in crate::conformance) fn binary(op: Binary<f64>, a: f64, b: f64) -> Expected {
    match op {
        Binary::Add => Expected::once(a + b),
        Binary::Sub => Expected::once(a - b),
        Binary::Mul => Expected::once(a * b),
        Binary::Div => Expected::near(a / b, ulps::DIVIDE),
        Binary::MulScaled(c) => Expected::rounded(c * a * b, 4.0),
        Binary::MulNegative => Expected::once(if b < 0.0 { a * b } else { 0.0 }),
        Binary::DivOrZero if b == 0.0 => Expected::once(0.0),
        Binary::DivOrZero => Expected::near(a / b, ulps::DIVIDE),
        Binary::Greater => Expected::once(f64::from(u8::from(a > b))),
        Binary::GreaterEqual => Expected::once(f64::from(u8::from(a >= b))),
        Binary::Prelu => Expected::once(if a > 0.0 { a } else { a * b }),
        Binary::PreluSlope => Expected::once(if a > 0.0 { 1.0 } else { b }),
        Binary::AbsGrad if b < 0.0 => Expected::once(0.0 - a),
        Binary::AbsGrad => Expected::once(if b > 0.0 { a } else { 0.0 }),
        Binary::Max => Expected::once(if a > b { a } else { b }),
        Binary::Min => Expected::once(if a < b { a } else { b }),
        Binary::ReluGrad { slope } => Expected::once(if b > 0.0 { a } else { slope * a }),
        Binary::EluGrad { .. } if b > 0.0 => Expected::once(a),
        Binary::EluGrad { alpha } if alpha < 0.0 => {
            Expected::near(a * alpha * b.exp(), ulps::EXP + 2.0)
        }
        // `b + alpha` may cancel.
        Binary::EluGrad { alpha } => {
            let terms: Expected = [a * b, a * alpha].into_iter().collect();
            Expected { value: a * (b + alpha), ..terms }
        }
        Binary::SoftplusGrad => Expected::near(a * -(-b).exp_m1(), ulps::EXP_M1 + 1.0),
        Binary::SwishGrad { beta } => {
            let (x, s) = (beta * b, 1.0 / (1.0 + (-beta * b).exp()));
            let value = a * s * (1.0 + x * (1.0 - s));
            // `1 − s` may cancel, and so may the sum.
            let magnitude = (a * s).abs() * (1.0 + x.abs());
            Expected { magnitude, ..Expected::near(value, 2.0 * ulps::SIGMOID + x.abs() + 4.0) }
        }
        Binary::ClipGrad { low, high } => {
            Expected::once(if (low..=high).contains(&b) { a } else { 0.0 })
        }
        Binary::LnAffineGrad { scale, shift, factor } => {
            let (sum, roundings) = affine(scale, b, shift);
            Expected::near(a * factor * scale / sum, ulps::DIVIDE + 2.0 + roundings)
        }
        Binary::PowAffineGrad { scale, power, .. } if scale * power == 0.0 => Expected::once(0.0),
        Binary::PowAffineGrad { scale, shift, power } => {
            let (sum, roundings) = affine(scale, b, shift);
            let value = a * power * scale * sum.powf(power - 1.0);
            Expected::near(value, ulps::POW + 4.0 + roundings * (power - 1.0).abs())
        }
        // Products of few factors; `1 − b` rounds once.
        Binary::SigmoidGrad => Expected::rounded(a * b * (1.0 - b), 4.0),
        // `1 − b²` may cancel.
        Binary::TanhGrad => {
            let terms: Expected = [a, -a * b * b].into_iter().collect();
            Expected { value: a * (1.0 - b * b), ..terms }
        }
    }
}

//! Functions of one and of two elements.

use crate::{
    conformance::values::Sum,
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
pub(in crate::conformance) fn unary(op: Unary<f64>, x: f64) -> Sum {
    match op {
        Unary::Abs => Sum::once(if x < 0.0 { -x } else { x }),
        Unary::Neg => Sum::once(0.0 - x),
        Unary::Exp => Sum::near(x.exp(), ulps::EXP),
        Unary::Ln => Sum::near(x.ln(), ulps::LN),
        Unary::Sqr => Sum::once(x * x),
        Unary::Sqrt => Sum::near(x.sqrt(), ulps::SQRT),
        Unary::Recip => Sum::near(x.recip(), ulps::DIVIDE),
        Unary::Tanh => Sum::near(x.tanh(), ulps::TANH),
        Unary::Sigmoid => Sum::near(1.0 / (1.0 + (-x).exp()), ulps::SIGMOID),
        Unary::Softplus => {
            let more = (-x.abs()).exp().ln_1p();
            Sum::near(if x > 0.0 { x + more } else { more }, ulps::SOFTPLUS)
        }
        Unary::Sign => Sum::once(f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))),
        Unary::SignBit => Sum::once((x.to_bits() >> 63) as f64),
        Unary::Pow(p) => Sum::near(x.powf(p), ulps::POW),
        Unary::AddScalar(c) => Sum::once(x + c),
        Unary::Scale(c) => Sum::once(c * x),
        Unary::Threshold(t) => Sum::once(f64::from(u8::from(x > t))),
        Unary::Elu { .. } if x > 0.0 => Sum::once(x),
        Unary::Elu { alpha } => Sum::near(alpha * x.exp_m1(), ulps::EXP_M1 + 1.0),
        Unary::Swish { beta } => {
            // A rounding of the exponent counts as often as that is large.
            let roundings = ulps::SIGMOID + 1.0 + (beta * x).abs();
            Sum::near(x / (1.0 + (-beta * x).exp()), roundings)
        }
        Unary::ExpAffine { scale, shift } => {
            let roundings = ulps::EXP + 2.0 * ((scale * x).abs() + shift.abs());
            Sum::near((scale * x + shift).exp(), roundings)
        }
        Unary::LnAffine { scale, shift, factor } => {
            let (sum, roundings) = affine(scale, x, shift);
            // A rounding of the sum is one of 1 in its logarithm.
            let magnitude = factor.abs() * (sum.ln().abs() + roundings);
            Sum { magnitude, ..Sum::near(factor * sum.ln(), ulps::LN + 1.0) }
        }
        Unary::PowAffine { scale, shift, power } => {
            let (sum, roundings) = affine(scale, x, shift);
            Sum::near(sum.powf(power), ulps::POW + roundings * power.abs())
        }
        Unary::Relu { slope } => Sum::once(if x > 0.0 { x } else { slope * x }),
        Unary::Clip { low, high } if x < low => Sum::once(if low < high { low } else { high }),
        Unary::Clip { high, .. } => Sum::once(if x > high { high } else { x }),
    }
}

/// `a op b`
pub(in crate::conformance) fn binary(op: Binary<f64>, a: f64, b: f64) -> Sum {
    match op {
        Binary::Add => Sum::once(a + b),
        Binary::Sub => Sum::once(a - b),
        Binary::Mul => Sum::once(a * b),
        Binary::Div => Sum::near(a / b, ulps::DIVIDE),
        Binary::MulScaled(c) => Sum::rounded(c * a * b, 4.0),
        Binary::MulNegative => Sum::once(if b < 0.0 { a * b } else { 0.0 }),
        Binary::DivOrZero if b == 0.0 => Sum::once(0.0),
        Binary::DivOrZero => Sum::near(a / b, ulps::DIVIDE),
        Binary::Greater => Sum::once(f64::from(u8::from(a > b))),
        Binary::GreaterEqual => Sum::once(f64::from(u8::from(a >= b))),
        Binary::Prelu => Sum::once(if a > 0.0 { a } else { a * b }),
        Binary::PreluSlope => Sum::once(if a > 0.0 { 1.0 } else { b }),
        Binary::AbsGrad if b < 0.0 => Sum::once(0.0 - a),
        Binary::AbsGrad => Sum::once(if b > 0.0 { a } else { 0.0 }),
        Binary::Max => Sum::once(if a > b { a } else { b }),
        Binary::Min => Sum::once(if a < b { a } else { b }),
        Binary::ReluGrad { slope } => Sum::once(if b > 0.0 { a } else { slope * a }),
        Binary::EluGrad { .. } if b > 0.0 => Sum::once(a),
        Binary::EluGrad { alpha } if alpha < 0.0 => Sum::near(a * alpha * b.exp(), ulps::EXP + 2.0),
        // `b + alpha` may cancel.
        Binary::EluGrad { alpha } => {
            let terms: Sum = [a * b, a * alpha].into_iter().collect();
            Sum { value: a * (b + alpha), ..terms }
        }
        Binary::SoftplusGrad => Sum::near(a * -(-b).exp_m1(), ulps::EXP_M1 + 1.0),
        Binary::SwishGrad { beta } => {
            let (x, s) = (beta * b, 1.0 / (1.0 + (-beta * b).exp()));
            let value = a * s * (1.0 + x * (1.0 - s));
            // `1 − s` may cancel, and so may the sum.
            let magnitude = (a * s).abs() * (1.0 + x.abs());
            Sum { magnitude, ..Sum::near(value, 2.0 * ulps::SIGMOID + x.abs() + 4.0) }
        }
        Binary::ClipGrad { low, high } => {
            Sum::once(if (low..=high).contains(&b) { a } else { 0.0 })
        }
        Binary::LnAffineGrad { scale, shift, factor } => {
            let (sum, roundings) = affine(scale, b, shift);
            Sum::near(a * factor * scale / sum, ulps::DIVIDE + 2.0 + roundings)
        }
        Binary::PowAffineGrad { scale, power, .. } if scale * power == 0.0 => Sum::once(0.0),
        Binary::PowAffineGrad { scale, shift, power } => {
            let (sum, roundings) = affine(scale, b, shift);
            let value = a * power * scale * sum.powf(power - 1.0);
            Sum::near(value, ulps::POW + 4.0 + roundings * (power - 1.0).abs())
        }
        // Products of few factors; `1 − b` rounds once.
        Binary::SigmoidGrad => Sum::rounded(a * b * (1.0 - b), 4.0),
        // `1 − b²` may cancel.
        Binary::TanhGrad => {
            let terms: Sum = [a, -a * b * b].into_iter().collect();
            Sum { value: a * (1.0 - b * b), ..terms }
        }
    }
}

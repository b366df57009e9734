//! Oracles for elementwise functions of one operand and of two operands.

use crate::{
    conformance::expected::Expected,
    op::{Binary, Unary},
};

/// Largest errors, in ulp, that OpenCL C allows for math functions in `f32` (section 7.4), plus one
/// ulp for the oracle's `f64` function.
mod ulps {
    pub(super) const EXP: f64 = 3.0 + 1.0;
    pub(super) const LN: f64 = 3.0 + 1.0;
    pub(super) const POW: f64 = 16.0 + 1.0;
    pub(super) const SQRT: f64 = 3.0 + 1.0;
    pub(super) const TANH: f64 = 5.0 + 1.0;
    pub(super) const DIVIDE: f64 = 2.5 + 1.0;
    /// Error of the sigmoid in ulp: the sum of the errors of `eˣ`, an addition and a division.
    pub(super) const SIGMOID: f64 = 3.0 + 0.5 + 2.5 + 1.0;
    /// Error of softplus in ulp: the sum of the errors of `e⁻ˣ`, the logarithm of `1 + e⁻ˣ`, and an
    /// addition.
    pub(super) const SOFTPLUS: f64 = 3.0 + 3.0 + 0.5 + 1.0;
    pub(super) const EXP_M1: f64 = 3.0 + 1.0;
}

/// Returns `scale·x + shift` and its relative error as a number of roundings.
fn affine(scale: f64, x: f64, shift: f64) -> (f64, f64) {
    let sum = scale * x + shift;
    (sum, 2.0 * ((scale * x).abs() + shift.abs()) / sum.abs())
}

/// Computes a unary elementwise function, `op(x)`.
pub(crate) fn unary(op: Unary<f64>, x: f64) -> Expected {
    match op {
        Unary::Abs => Expected::exact(if x < 0.0 { -x } else { x }),
        Unary::Neg => Expected::exact(0.0 - x),
        Unary::Exp => Expected::approx(x.exp(), ulps::EXP),
        Unary::Ln => Expected::approx(x.ln(), ulps::LN),
        Unary::Sqr => Expected::exact(x * x),
        Unary::Sqrt => Expected::approx(x.sqrt(), ulps::SQRT),
        Unary::Recip => Expected::approx(x.recip(), ulps::DIVIDE),
        Unary::Tanh => Expected::approx(x.tanh(), ulps::TANH),
        Unary::Sigmoid => Expected::approx(1.0 / (1.0 + (-x).exp()), ulps::SIGMOID),
        Unary::Softplus => {
            let log_term = (-x.abs()).exp().ln_1p();
            Expected::approx(if x > 0.0 { x + log_term } else { log_term }, ulps::SOFTPLUS)
        }
        Unary::Sign => Expected::exact(f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))),
        Unary::SignBit => Expected::exact((x.to_bits() >> 63) as f64),
        Unary::Pow(p) => Expected::approx(x.powf(p), ulps::POW),
        Unary::AddScalar(c) => Expected::exact(x + c),
        Unary::Scale(c) => Expected::exact(c * x),
        Unary::Threshold(t) => Expected::exact(f64::from(u8::from(x > t))),
        Unary::Elu { .. } if x > 0.0 => Expected::exact(x),
        Unary::Elu { alpha } => Expected::approx(alpha * x.exp_m1(), ulps::EXP_M1 + 1.0),
        Unary::Swish { beta } => {
            // The exponential multiplies the relative error of its exponent by the exponent's
            // magnitude.
            let roundings = ulps::SIGMOID + 1.0 + (beta * x).abs();
            Expected::approx(x / (1.0 + (-beta * x).exp()), roundings)
        }
        Unary::ExpAffine { scale, shift } => {
            let roundings = ulps::EXP + 2.0 * ((scale * x).abs() + shift.abs());
            Expected::approx((scale * x + shift).exp(), roundings)
        }
        Unary::LnAffine { scale, shift, factor } => {
            let (sum, roundings) = affine(scale, x, shift);
            // A relative error of the logarithm's argument becomes an absolute error of the
            // logarithm.
            let magnitude = factor.abs() * (sum.ln().abs() + roundings);
            Expected { magnitude, ..Expected::approx(factor * sum.ln(), ulps::LN + 1.0) }
        }
        Unary::PowAffine { scale, shift, power } => {
            let (sum, roundings) = affine(scale, x, shift);
            Expected::approx(sum.powf(power), ulps::POW + roundings * power.abs())
        }
        Unary::Relu { slope } => Expected::exact(if x > 0.0 { x } else { slope * x }),
        Unary::Clip { low, high } if x < low => {
            Expected::exact(if low < high { low } else { high })
        }
        Unary::Clip { high, .. } => Expected::exact(if x > high { high } else { x }),
    }
}

/// Computes a binary elementwise function, `a op b`.
pub(crate) fn binary(op: Binary<f64>, a: f64, b: f64) -> Expected {
    match op {
        Binary::Add => Expected::exact(a + b),
        Binary::Sub => Expected::exact(a - b),
        Binary::Mul => Expected::exact(a * b),
        Binary::Div => Expected::approx(a / b, ulps::DIVIDE),
        Binary::MulScaled(c) => Expected::product(c * a * b, 4.0),
        Binary::MulNegative => Expected::exact(if b < 0.0 { a * b } else { 0.0 }),
        Binary::DivOrZero if b == 0.0 => Expected::exact(0.0),
        Binary::DivOrZero => Expected::approx(a / b, ulps::DIVIDE),
        Binary::Greater => Expected::exact(f64::from(u8::from(a > b))),
        Binary::GreaterEqual => Expected::exact(f64::from(u8::from(a >= b))),
        Binary::Prelu => Expected::exact(if a > 0.0 { a } else { a * b }),
        Binary::PreluSlope => Expected::exact(if a > 0.0 { 1.0 } else { b }),
        Binary::AbsGrad if b < 0.0 => Expected::exact(0.0 - a),
        Binary::AbsGrad => Expected::exact(if b > 0.0 { a } else { 0.0 }),
        Binary::Max => Expected::exact(if a > b { a } else { b }),
        Binary::Min => Expected::exact(if a < b { a } else { b }),
        Binary::ReluGrad { slope } => Expected::exact(if b > 0.0 { a } else { slope * a }),
        Binary::EluGrad { .. } if b > 0.0 => Expected::exact(a),
        Binary::EluGrad { alpha } if alpha < 0.0 => {
            Expected::approx(a * alpha * b.exp(), ulps::EXP + 2.0)
        }
        // In the gradient of ELU, the sum `b + alpha` may lose digits by cancellation.
        Binary::EluGrad { alpha } => {
            let terms: Expected = [a * b, a * alpha].into_iter().collect();
            Expected { value: a * (b + alpha), ..terms }
        }
        Binary::SoftplusGrad => Expected::approx(a * -(-b).exp_m1(), ulps::EXP_M1 + 1.0),
        Binary::SwishGrad { beta } => {
            let (x, s) = (beta * b, 1.0 / (1.0 + (-beta * b).exp()));
            let value = a * s * (1.0 + x * (1.0 - s));
            // In the gradient of swish, the difference `1 − s` and the sum `1 + x·(1 − s)` may lose
            // digits by cancellation.
            let magnitude = (a * s).abs() * (1.0 + x.abs());
            Expected { magnitude, ..Expected::approx(value, 2.0 * ulps::SIGMOID + x.abs() + 4.0) }
        }
        Binary::ClipGrad { low, high } => {
            Expected::exact(if (low..=high).contains(&b) { a } else { 0.0 })
        }
        Binary::LnAffineGrad { scale, shift, factor } => {
            let (sum, roundings) = affine(scale, b, shift);
            Expected::approx(a * factor * scale / sum, ulps::DIVIDE + 2.0 + roundings)
        }
        Binary::PowAffineGrad { scale, power, .. } if scale * power == 0.0 => Expected::exact(0.0),
        Binary::PowAffineGrad { scale, shift, power } => {
            let (sum, roundings) = affine(scale, b, shift);
            let value = a * power * scale * sum.powf(power - 1.0);
            Expected::approx(value, ulps::POW + 4.0 + roundings * (power - 1.0).abs())
        }
        // The gradient of the sigmoid is a product of three factors, and the factor `1 − b` is
        // rounded once.
        Binary::SigmoidGrad => Expected::product(a * b * (1.0 - b), 4.0),
        // In the gradient of tanh, the difference `1 − b²` may lose digits by cancellation.
        Binary::TanhGrad => {
            let terms: Expected = [a, -a * b * b].into_iter().collect();
            Expected { value: a * (1.0 - b * b), ..terms }
        }
    }
}

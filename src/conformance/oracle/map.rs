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
        Unary::Sign => Sum::once(f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))),
        Unary::SignBit => Sum::once((x.to_bits() >> 63) as f64),
        Unary::Pow(p) => Sum::near(x.powf(p), ulps::POW),
        Unary::AddScalar(c) => Sum::once(x + c),
        Unary::Scale(c) => Sum::once(c * x),
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
        Binary::Max => Sum::once(if a > b { a } else { b }),
        Binary::Min => Sum::once(if a < b { a } else { b }),
        Binary::ReluGrad { slope } => Sum::once(if b > 0.0 { a } else { slope * a }),
        // Products of few factors; `1 − b` rounds once.
        Binary::SigmoidGrad => Sum::rounded(a * b * (1.0 - b), 4.0),
        // `1 − b²` may cancel.
        Binary::TanhGrad => {
            let terms: Sum = [a, -a * b * b].into_iter().collect();
            Sum { value: a * (1.0 - b * b), ..terms }
        }
    }
}

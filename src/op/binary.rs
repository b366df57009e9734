//! Functions of two elements.

use super::{
    elementary::{ElementaryFunctions, StdFunctions},
    unary::pow,
};
use crate::element::Element;
use num_traits::Float;

/// A function of two elements, computed in the accumulator type `A`.
///
/// The `…Grad` functions are chain rules: `a` is the gradient of the result, `b` the value that
/// their documentation names.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Binary<A> {
    /// `a + b`
    Add,
    /// `a − b`
    Sub,
    /// `a · b`
    Mul,
    /// `c · a · b`
    MulScaled(A),
    /// `a · b` where `b < 0`, else 0.
    MulNegative,
    /// `a / b`
    Div,
    /// `a / b`, but 0 where `b = 0`.
    DivOrZero,
    /// The greater; `b` if either is NaN.
    Max,
    /// The lesser; `b` if either is NaN.
    Min,
    /// 1 where `a > b`, else 0.
    Greater,
    /// 1 where `a ≥ b`, else 0.
    GreaterEqual,
    /// `a` where `a > 0`, else `a · b`.
    Prelu,
    /// 1 where `a > 0`, else `b`: the slope of [`Prelu`](Self::Prelu).
    PreluSlope,
    /// `a · sign b`; `b` is the input of `|x|`.
    AbsGrad,
    /// `a` where `b > 0`, else `slope · a`; `b` is ReLU's input, or its output if `slope ≥ 0`.
    ReluGrad {
        /// Slope left of zero.
        slope: A,
    },
    /// `a` where `b > 0`, else `a · (b + alpha)`; `b` is ELU's output. If `alpha < 0`, `b` is its
    /// input, and the latter is `a · alpha · eᵇ`.
    EluGrad {
        /// What the function falls to, negated.
        alpha: A,
    },
    /// `a · b · (1 − b)`; `b` is the sigmoid's output.
    SigmoidGrad,
    /// `a · (1 − b²)`; `b` is the hyperbolic tangent's output.
    TanhGrad,
    /// `a · (1 − e⁻ᵇ)`; `b` is softplus' output.
    SoftplusGrad,
    /// `a · s · (1 + beta·b·(1 − s))` with `s = 1 / (1 + e^(−beta·b))`; `b` is Swish's input.
    SwishGrad {
        /// Factor of the exponent.
        beta: A,
    },
    /// `a` where `low ≤ b ≤ high`, else 0; `b` is the input.
    ClipGrad {
        /// Least result.
        low: A,
        /// Greatest result.
        high: A,
    },
    /// `a · factor · scale / (scale·b + shift)`; `b` is the input.
    LnAffineGrad {
        /// Factor of `b`.
        scale: A,
        /// What is added to that.
        shift: A,
        /// Factor of the logarithm.
        factor: A,
    },
    /// `a · power · scale · (scale·b + shift)^(power − 1)`, but 0 if that begins with a factor of
    /// 0; `b` is the input.
    PowAffineGrad {
        /// Factor of `b`.
        scale: A,
        /// What is added to that.
        shift: A,
        /// The exponent.
        power: A,
    },
}

impl<A: Element> Binary<A> {
    /// The same function with its scalars in another type.
    pub fn cast<B: Element>(self) -> Binary<B> {
        let to = |scalar: A| B::from_f64(scalar.to_f64());
        match self {
            Self::Add => Binary::Add,
            Self::Sub => Binary::Sub,
            Self::Mul => Binary::Mul,
            Self::MulScaled(c) => Binary::MulScaled(to(c)),
            Self::MulNegative => Binary::MulNegative,
            Self::Div => Binary::Div,
            Self::DivOrZero => Binary::DivOrZero,
            Self::Max => Binary::Max,
            Self::Min => Binary::Min,
            Self::Greater => Binary::Greater,
            Self::GreaterEqual => Binary::GreaterEqual,
            Self::Prelu => Binary::Prelu,
            Self::PreluSlope => Binary::PreluSlope,
            Self::AbsGrad => Binary::AbsGrad,
            Self::ReluGrad { slope } => Binary::ReluGrad { slope: to(slope) },
            Self::EluGrad { alpha } => Binary::EluGrad { alpha: to(alpha) },
            Self::SigmoidGrad => Binary::SigmoidGrad,
            Self::TanhGrad => Binary::TanhGrad,
            Self::SoftplusGrad => Binary::SoftplusGrad,
            Self::SwishGrad { beta } => Binary::SwishGrad { beta: to(beta) },
            Self::ClipGrad { low, high } => Binary::ClipGrad { low: to(low), high: to(high) },
            Self::LnAffineGrad { scale, shift, factor } => {
                Binary::LnAffineGrad { scale: to(scale), shift: to(shift), factor: to(factor) }
            }
            Self::PowAffineGrad { scale, shift, power } => {
                Binary::PowAffineGrad { scale: to(scale), shift: to(shift), power: to(power) }
            }
        }
    }
}

impl<A: Float> Binary<A> {
    /// Kernel name, as in device symbols.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::MulScaled(_) => "mul_scaled",
            Self::MulNegative => "mul_negative",
            Self::Div => "div",
            Self::DivOrZero => "div_or_zero",
            Self::Max => "max",
            Self::Min => "min",
            Self::Greater => "greater",
            Self::GreaterEqual => "greater_equal",
            Self::Prelu => "prelu",
            Self::PreluSlope => "prelu_slope",
            Self::AbsGrad => "abs_grad",
            Self::ReluGrad { .. } => "relu_grad",
            Self::EluGrad { .. } => "elu_grad",
            Self::SigmoidGrad => "sigmoid_grad",
            Self::TanhGrad => "tanh_grad",
            Self::SoftplusGrad => "softplus_grad",
            Self::SwishGrad { .. } => "swish_grad",
            Self::ClipGrad { .. } => "clip_grad",
            Self::LnAffineGrad { .. } => "ln_affine_grad",
            Self::PowAffineGrad { .. } => "pow_affine_grad",
        }
    }

    /// The function itself: what every device must agree with.
    #[inline(always)]
    pub fn eval(&self, a: A, b: A) -> A {
        self.eval_with::<StdFunctions>(a, b)
    }

    /// As [`eval`](Self::eval), by the elementary functions of `F`.
    #[inline(always)]
    pub(crate) fn eval_with<F: ElementaryFunctions<A>>(&self, a: A, b: A) -> A {
        let (zero, one) = (A::zero(), A::one());
        match *self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::MulScaled(c) => c * a * b,
            Self::MulNegative if b < zero => a * b,
            Self::MulNegative => zero,
            Self::Div => a / b,
            Self::DivOrZero if b == zero => zero,
            Self::DivOrZero => a / b,
            Self::Max if a > b => a,
            Self::Min if a < b => a,
            Self::Max | Self::Min => b,
            Self::Greater if a > b => one,
            Self::GreaterEqual if a >= b => one,
            Self::Greater | Self::GreaterEqual => zero,
            Self::Prelu if a > zero => a,
            Self::Prelu => a * b,
            Self::PreluSlope if a > zero => one,
            Self::PreluSlope => b,
            Self::AbsGrad if b > zero => a,
            Self::AbsGrad if b < zero => -a,
            Self::AbsGrad => zero,
            Self::ReluGrad { .. } if b > zero => a,
            Self::ReluGrad { slope } => slope * a,
            Self::EluGrad { .. } if b > zero => a,
            Self::EluGrad { alpha } if alpha < zero => a * alpha * F::exp(b),
            Self::EluGrad { alpha } => a * (b + alpha),
            Self::SigmoidGrad => a * b * (one - b),
            Self::TanhGrad => a * (one - b * b),
            Self::SoftplusGrad => a * -F::exp_m1(-b),
            Self::SwishGrad { beta } => {
                let s = one / (one + F::exp(-(beta * b)));
                a * s * (one + beta * b * (one - s))
            }
            Self::ClipGrad { low, high } if low <= b && b <= high => a,
            Self::ClipGrad { .. } => zero,
            Self::LnAffineGrad { scale, shift, factor } => a * factor * scale / (scale * b + shift),
            Self::PowAffineGrad { scale, power, .. } if power * scale == zero => zero,
            Self::PowAffineGrad { scale, shift, power } => {
                a * (power * scale) * pow::<A, F>(scale * b + shift, power - one)
            }
        }
    }
}

//! Functions of one element.

use super::elementary::{ElementaryFunctions, StdFunctions};
use crate::element::Element;
use num_traits::Float;

/// A function of one element, computed in the accumulator type `A`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unary<A> {
    /// `|x|`
    Abs,
    /// `−x`
    Neg,
    /// `eˣ`
    Exp,
    /// `ln x`
    Ln,
    /// `x²`
    Sqr,
    /// `√x`
    Sqrt,
    /// `1 / x`
    Recip,
    /// `tanh x`
    Tanh,
    /// `1 / (1 + e⁻ˣ)`
    Sigmoid,
    /// `ln(1 + eˣ)`
    Softplus,
    /// −1, 0 or 1; 0 for NaN.
    Sign,
    /// 1 where the sign bit is set (of −0 too), else 0.
    SignBit,
    /// `xᵖ`
    Pow(A),
    /// `x + c`
    AddScalar(A),
    /// `c · x`
    Scale(A),
    /// 1 where `x > t`, else 0.
    Threshold(A),
    /// `max(x, 0) + slope · min(x, 0)`
    Relu {
        /// Slope left of zero.
        slope: A,
    },
    /// `x` where `x > 0`, else `alpha · (eˣ − 1)`.
    Elu {
        /// What the function falls to, negated.
        alpha: A,
    },
    /// `x / (1 + e^(−beta·x))`
    Swish {
        /// Factor of the exponent.
        beta: A,
    },
    /// `min(max(x, low), high)`
    Clip {
        /// Least result.
        low: A,
        /// Greatest result.
        high: A,
    },
    /// `e^(scale·x + shift)`
    ExpAffine {
        /// Factor of `x`.
        scale: A,
        /// What is added to that.
        shift: A,
    },
    /// `factor · ln(scale·x + shift)`
    LnAffine {
        /// Factor of `x`.
        scale: A,
        /// What is added to that.
        shift: A,
        /// Factor of the logarithm.
        factor: A,
    },
    /// `(scale·x + shift)^power`, by one product at most if the power is 0, 1 or 2.
    PowAffine {
        /// Factor of `x`.
        scale: A,
        /// What is added to that.
        shift: A,
        /// The exponent.
        power: A,
    },
}

impl<A: Element> Unary<A> {
    /// The same function with its scalars in another type.
    pub fn cast<B: Element>(self) -> Unary<B> {
        let to = |scalar: A| B::from_f64(scalar.to_f64());
        match self {
            Self::Abs => Unary::Abs,
            Self::Neg => Unary::Neg,
            Self::Exp => Unary::Exp,
            Self::Ln => Unary::Ln,
            Self::Sqr => Unary::Sqr,
            Self::Sqrt => Unary::Sqrt,
            Self::Recip => Unary::Recip,
            Self::Tanh => Unary::Tanh,
            Self::Sigmoid => Unary::Sigmoid,
            Self::Softplus => Unary::Softplus,
            Self::Sign => Unary::Sign,
            Self::SignBit => Unary::SignBit,
            Self::Pow(p) => Unary::Pow(to(p)),
            Self::AddScalar(c) => Unary::AddScalar(to(c)),
            Self::Scale(c) => Unary::Scale(to(c)),
            Self::Threshold(t) => Unary::Threshold(to(t)),
            Self::Relu { slope } => Unary::Relu { slope: to(slope) },
            Self::Elu { alpha } => Unary::Elu { alpha: to(alpha) },
            Self::Swish { beta } => Unary::Swish { beta: to(beta) },
            Self::Clip { low, high } => Unary::Clip { low: to(low), high: to(high) },
            Self::ExpAffine { scale, shift } => {
                Unary::ExpAffine { scale: to(scale), shift: to(shift) }
            }
            Self::LnAffine { scale, shift, factor } => {
                Unary::LnAffine { scale: to(scale), shift: to(shift), factor: to(factor) }
            }
            Self::PowAffine { scale, shift, power } => {
                Unary::PowAffine { scale: to(scale), shift: to(shift), power: to(power) }
            }
        }
    }
}

impl<A: Float> Unary<A> {
    /// Kernel name, as in device symbols.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Abs => "abs",
            Self::Neg => "neg",
            Self::Exp => "exp",
            Self::Ln => "ln",
            Self::Sqr => "sqr",
            Self::Sqrt => "sqrt",
            Self::Recip => "recip",
            Self::Tanh => "tanh",
            Self::Sigmoid => "sigmoid",
            Self::Softplus => "softplus",
            Self::Sign => "sign",
            Self::SignBit => "sign_bit",
            Self::Pow(_) => "pow",
            Self::AddScalar(_) => "add_scalar",
            Self::Scale(_) => "scale",
            Self::Threshold(_) => "threshold",
            Self::Relu { .. } => "relu",
            Self::Elu { .. } => "elu",
            Self::Swish { .. } => "swish",
            Self::Clip { .. } => "clip",
            Self::ExpAffine { .. } => "exp_affine",
            Self::LnAffine { .. } => "ln_affine",
            Self::PowAffine { .. } => "pow_affine",
        }
    }

    /// The function itself: what every device must agree with.
    #[inline(always)]
    pub fn eval(&self, x: A) -> A {
        self.eval_with::<StdFunctions>(x)
    }

    /// As [`eval`](Self::eval), by the elementary functions of `F`.
    #[inline(always)]
    pub(crate) fn eval_with<F: ElementaryFunctions<A>>(&self, x: A) -> A {
        let (zero, one) = (A::zero(), A::one());
        match *self {
            Self::Abs => x.abs(),
            Self::Neg => -x,
            Self::Exp => F::exp(x),
            Self::Ln => F::ln(x),
            Self::Sqr => x * x,
            Self::Sqrt => x.sqrt(),
            Self::Recip => one / x,
            Self::Tanh => F::tanh(x),
            Self::Sigmoid => one / (one + F::exp(-x)),
            // Without overflow, and without loss where the exponential is small.
            Self::Softplus => x.max(zero) + F::ln_1p(F::exp(-x.abs())),
            Self::Sign if x > zero => one,
            Self::Sign if x < zero => -one,
            Self::Sign => zero,
            Self::SignBit if x.is_sign_negative() => one,
            Self::SignBit => zero,
            Self::Pow(p) => F::powf(x, p),
            Self::AddScalar(c) => x + c,
            Self::Scale(c) => c * x,
            Self::Threshold(t) if x > t => one,
            Self::Threshold(_) => zero,
            Self::Relu { .. } if x > zero => x,
            Self::Relu { slope } => slope * x,
            Self::Elu { .. } if x > zero => x,
            Self::Elu { alpha } => alpha * F::exp_m1(x),
            Self::Swish { beta } => x * (one / (one + F::exp(-(beta * x)))),
            Self::Clip { low, high } if x < low => low.min(high),
            Self::Clip { high, .. } if x > high => high,
            Self::Clip { .. } => x,
            Self::ExpAffine { scale, shift } => F::exp(scale * x + shift),
            Self::LnAffine { scale, shift, factor } => factor * F::ln(scale * x + shift),
            Self::PowAffine { scale, shift, power } => pow::<A, F>(scale * x + shift, power),
        }
    }
}

/// `xᵖ`, by one product at most if `p` is 0, 1 or 2.
#[inline(always)]
pub(super) fn pow<A: Float, F: ElementaryFunctions<A>>(x: A, p: A) -> A {
    let one = A::one();
    match () {
        () if p == one => x,
        () if p == one + one => x * x,
        () if p == A::zero() => one,
        () => F::powf(x, p),
    }
}

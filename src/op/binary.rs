//! Scalar functions of two elements, for elementwise kernels.

use super::{
    Axis,
    elementary::{ElementaryFunctions, StdFunctions},
    unary::{pow, scalar_functions},
};
use crate::{
    element::Element,
    error::{Result, check_len},
};
use num_traits::Float;

scalar_functions! {
    /// A scalar function of two elements `a` and `b`, computed in the accumulator type `A`.
    ///
    /// The `…Grad` variants compute the gradient with respect to the input of a unary function, by
    /// the chain rule. In
    /// each variant `…Grad`, `a` is the gradient of the function's output, and `b` is the
    /// function's input or output.
    ///
    /// ```
    /// use cortado::op::Binary;
    ///
    /// assert_eq!(Binary::Max.eval(2.0, 5.0), 5.0);
    /// // The gradient passes ReLU where the input is positive.
    /// let gradient = Binary::ReluGrad { slope: 0.5 };
    /// assert_eq!([gradient.eval(4.0, 3.0), gradient.eval(4.0, -3.0)], [4.0, 2.0]);
    /// ```
    "binary" Binary {
        /// `a + b`
        Add => "add",
        /// `a − b`
        Sub => "sub",
        /// `a · b`
        Mul => "mul",
        /// The scaled product `c · a · b`.
        MulScaled(c: A) => "mul_scaled",
        /// `a · b` where `b < 0`, else 0.
        MulNegative => "mul_negative",
        /// `a / b`
        Div => "div",
        /// `a / b`, but 0 where `b = 0`.
        DivOrZero => "div_or_zero",
        /// `max(a, b)`; `b` if `a` or `b` is NaN.
        Max => "max",
        /// `min(a, b)`; `b` if `a` or `b` is NaN.
        Min => "min",
        /// 1 where `a > b`, else 0.
        Greater => "greater",
        /// 1 where `a ≥ b`, else 0.
        GreaterEqual => "greater_equal",
        /// `a` where `a > 0`, else `a · b`, which is PReLU of `a` with the slope `b`.
        Prelu => "prelu",
        /// 1 where `a > 0`, else `b`: the derivative of [`Prelu`](Self::Prelu) with respect to `a`.
        PreluSlope => "prelu_slope",
        /// `a · sign b`; `b` is the input of `|x|`.
        AbsGrad => "abs_grad",
        /// `a` where `b > 0`, else `slope · a`; `b` is the input of ReLU or, if `slope ≥ 0`, the
        /// output of ReLU.
        ReluGrad {
            /// Slope of ReLU for negative inputs.
            slope: A,
        } => "relu_grad",
        /// `a` where `b > 0`, else `a · (b + alpha)`; `b` is the output of ELU. If `alpha < 0`, `b`
        /// is the input of ELU instead, and the gradient where `b ≤ 0` is `a · alpha · eᵇ`.
        EluGrad {
            /// Parameter α of ELU, the negated limit of ELU at −∞.
            alpha: A,
        } => "elu_grad",
        /// `a · b · (1 − b)`; `b` is the sigmoid's output.
        SigmoidGrad => "sigmoid_grad",
        /// `a · (1 − b²)`; `b` is the hyperbolic tangent's output.
        TanhGrad => "tanh_grad",
        /// `a · (1 − e⁻ᵇ)`; `b` is the output of softplus.
        SoftplusGrad => "softplus_grad",
        /// `a · s · (1 + beta·b·(1 − s))` with `s = 1 / (1 + e^(−beta·b))`; `b` is the input of
        /// Swish.
        SwishGrad {
            /// Parameter β of Swish, the factor of `b` in the exponent.
            beta: A,
        } => "swish_grad",
        /// `a` where `low ≤ b ≤ high`, else 0; `b` is the input of `Clip`.
        ClipGrad {
            /// Lower bound.
            low: A,
            /// Upper bound.
            high: A,
        } => "clip_grad",
        /// `a · factor · scale / (scale·b + shift)`; `b` is the input of `LnAffine`.
        LnAffineGrad {
            /// Factor of `b`.
            scale: A,
            /// Constant that is added to `scale · b`.
            shift: A,
            /// Factor by which `LnAffine` multiplies the logarithm.
            factor: A,
        } => "ln_affine_grad",
        /// `a · power · scale · (scale·b + shift)^(power − 1)`, but 0 if `power · scale` is 0; `b`
        /// is the input of `PowAffine`.
        PowAffineGrad {
            /// Factor of `b`.
            scale: A,
            /// Constant that is added to `scale · b`.
            shift: A,
            /// The exponent.
            power: A,
        } => "pow_affine_grad",
    }
}

impl<A: Float> Binary<A> {
    /// Fails unless the operands `a`, `b` and `y` have the same number of elements.
    ///
    /// # Errors
    /// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has
    /// the wrong length.
    pub fn check(&self, a: usize, b: usize, y: usize) -> Result<()> {
        check_len(self.kernel_name(), "b", a, b)?;
        check_len(self.kernel_name(), "y", a, y)
    }

    /// Fails unless the operand lengths of the kernel
    /// [`broadcast`](crate::kernel::Elementwise::broadcast) match `axis`. `a` is `None` for an
    /// in-place call.
    ///
    /// # Errors
    /// Returns [`Error::Length`](crate::Error::Length), which names the operand, if an operand has
    /// the wrong length.
    pub fn check_broadcast(&self, axis: &Axis, a: Option<usize>, b: usize, y: usize) -> Result<()> {
        check_len("broadcast", "a", axis.count(), a.unwrap_or(axis.count()))?;
        check_len("broadcast", "b", axis.extent, b)?;
        check_len("broadcast", "y", axis.count(), y)
    }

    /// Evaluates the function at `a` and `b`. The kernels of all devices approximate the result of
    /// `eval`.
    #[inline(always)]
    pub fn eval(&self, a: A, b: A) -> A {
        self.eval_with::<StdFunctions>(a, b)
    }

    /// Like [`eval`](Self::eval), but computes exp, ln, tanh and pow by the implementations in `F`.
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

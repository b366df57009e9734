//! Scalar functions of two elements, for elementwise kernels.

use super::{
    Axis,
    elementary::{ElementaryFunctions, StdFunctions},
    scalar::scalar_functions,
    unary::{pow, sigmoid},
};
use crate::{
    element::Element,
    error::{Result, check_len},
};
use num_traits::Float;
use std::marker::PhantomData;

scalar_functions! {
    /// A scalar function of two elements `a` and `b`, computed in the accumulator type `A`.
    ///
    /// The `…Grad` variants compute the gradient with respect to the input of a unary function, by
    /// the chain rule. In each variant `…Grad`, `a` is the gradient of the function's output, and
    /// `b` is the function's input or output.
    ///
    /// ```
    /// use cortado::op::Binary;
    ///
    /// assert_eq!(Binary::Max.eval(2.0, 5.0), 5.0);
    /// // The gradient passes ReLU where the input is positive.
    /// let gradient = Binary::ReluGrad { slope: 0.5 };
    /// assert_eq!([gradient.eval(4.0, 3.0), gradient.eval(4.0, -3.0)], [4.0, 2.0]);
    /// ```
    "binary" Binary([a, b]: [A; 2]): BinaryFunction, BinaryVisitor {
        /// `a + b`
        Add => "add", a + b;
        /// `a − b`
        Sub => "sub", a - b;
        /// `a · b`
        Mul => "mul", a * b;
        /// The scaled product `c · a · b`.
        MulScaled(c: A) => "mul_scaled", c * a * b;
        /// `a · b` where `b < 0`, else 0.
        MulNegative => "mul_negative", if b < A::zero() { a * b } else { A::zero() };
        /// `a / b`
        Div => "div", a / b;
        /// `a / b`, but 0 where `b = 0`.
        DivOrZero => "div_or_zero", if b == A::zero() { A::zero() } else { a / b };
        /// `max(a, b)`; `b` if `a` or `b` is NaN.
        Max => "max", if a > b { a } else { b };
        /// `min(a, b)`; `b` if `a` or `b` is NaN.
        Min => "min", if a < b { a } else { b };
        /// 1 where `a > b`, else 0.
        Greater => "greater", if a > b { A::one() } else { A::zero() };
        /// 1 where `a ≥ b`, else 0.
        GreaterEqual => "greater_equal", if a >= b { A::one() } else { A::zero() };
        /// `a` where `a > 0`, else `a · b`, which is PReLU of `a` with the slope `b`.
        Prelu => "prelu", if a > A::zero() { a } else { a * b };
        /// 1 where `a > 0`, else `b`: the derivative of [`Prelu`](Self::Prelu) with respect to `a`.
        PreluSlope => "prelu_slope", if a > A::zero() { A::one() } else { b };
        /// `a · sign b`; `b` is the input of `|x|`.
        AbsGrad => "abs_grad", if b > A::zero() {
            a
        } else if b < A::zero() {
            -a
        } else {
            A::zero()
        };
        /// `a` where `b > 0`, else `slope · a`; `b` is the input of ReLU or, if `slope ≥ 0`, the
        /// output of ReLU.
        ReluGrad {
            /// Slope of ReLU for negative inputs.
            slope: A,
        } => "relu_grad", if b > A::zero() { a } else { slope * a };
        /// `a` where `b > 0`, else `a · (b + alpha)`; `b` is the output of ELU. If `alpha < 0`, `b`
        /// is the input of ELU instead, and the gradient where `b ≤ 0` is `a · alpha · eᵇ`.
        EluGrad {
            /// Parameter α of ELU, the negated limit of ELU at −∞.
            alpha: A,
        } => "elu_grad", if b > A::zero() {
            a
        } else if alpha < A::zero() {
            a * alpha * F::exp(b)
        } else {
            a * (b + alpha)
        };
        /// `a · b · (1 − b)`; `b` is the sigmoid's output.
        SigmoidGrad => "sigmoid_grad", a * b * (A::one() - b);
        /// `a · (1 − b²)`; `b` is the hyperbolic tangent's output.
        TanhGrad => "tanh_grad", a * (A::one() - b * b);
        /// `a · (1 − e⁻ᵇ)`; `b` is the output of softplus.
        SoftplusGrad => "softplus_grad", a * -F::exp_m1(-b);
        /// `a · s · (1 + beta·b·(1 − s))` with `s = 1 / (1 + e^(−beta·b))`; `b` is the input of
        /// Swish.
        SwishGrad {
            /// Parameter β of Swish, `b · sigmoid(β·b)`.
            beta: A,
        } => "swish_grad", {
            let s = sigmoid::<A, F>(beta * b);
            a * s * (A::one() + beta * b * (A::one() - s))
        };
        /// `a` where `low ≤ b ≤ high`, else 0; `b` is the input of `Clip`.
        ClipGrad {
            /// Lower bound.
            low: A,
            /// Upper bound.
            high: A,
        } => "clip_grad", if low <= b && b <= high { a } else { A::zero() };
        /// `a · factor · scale / (scale·b + shift)`; `b` is the input of `LnAffine`.
        LnAffineGrad {
            /// Factor of `b`.
            scale: A,
            /// Constant that is added to `scale · b`.
            shift: A,
            /// Factor by which `LnAffine` multiplies the logarithm.
            factor: A,
        } => "ln_affine_grad", a * factor * scale / (scale * b + shift);
        /// `a · power · scale · (scale·b + shift)^(power − 1)`, but 0 if `power · scale` is 0; `b`
        /// is the input of `PowAffine`.
        PowAffineGrad {
            /// Factor of `b`.
            scale: A,
            /// Constant that is added to `scale · b`.
            shift: A,
            /// The exponent.
            power: A,
        } => "pow_affine_grad", if power * scale == A::zero() {
            A::zero()
        } else {
            a * (power * scale) * pow::<A, F>(scale * b + shift, power - A::one())
        };
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
        self.eval_operands([a, b])
    }
}

/// One of the functions of [`Binary`] as a separate type, so that the compiler specializes generic
/// code for the function.
pub(crate) trait BinaryFunction<A: Float>: Copy + Into<Binary<A>> {
    /// Evaluates the function at the operands `[a, b]` with the exp, ln, tanh and pow of `F`.
    fn eval<F: ElementaryFunctions<A>>(self, operands: [A; 2]) -> A;
}

/// Code that [`Binary::visit`] runs, compiled for each function.
pub(crate) trait BinaryVisitor<A: Float> {
    /// Runs the visitor's code, specialized for `function`.
    fn visit(self, function: impl BinaryFunction<A>);
}

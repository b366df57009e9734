//! Scalar functions of one element, for elementwise kernels.

use super::{
    elementary::{ElementaryFunctions, StdFunctions},
    scalar::scalar_functions,
};
use crate::element::Element;
use num_traits::Float;
use std::marker::PhantomData;

scalar_functions! {
    /// A scalar function of one element `x`, computed in the accumulator type `A`.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let leaky = Unary::Relu { slope: 0.5 };
    /// assert_eq!(leaky.eval(-2.0), -1.0);
    /// let x = Blob::from_slice(&CpuDevice::new(), &[3], &[-2.0f32, 0.0, 2.0])?;
    /// assert_eq!(x.apply(leaky)?.to_vec()?, [-1.0, 0.0, 2.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    "unary" Unary(x: A): UnaryFunction, UnaryVisitor {
        /// `|x|`, which is +0 for −0.
        Abs => "abs", x.abs();
        /// `−x`, which is −0 for +0.
        Neg => "neg", -x;
        /// `eˣ`
        Exp => "exp", F::exp(x);
        /// `ln x`
        Ln => "ln", F::ln(x);
        /// `x²`
        Sqr => "sqr", x * x;
        /// `√x`
        Sqrt => "sqrt", x.sqrt();
        /// `1 / x`
        Recip => "recip", A::one() / x;
        /// `tanh x`
        Tanh => "tanh", F::tanh(x);
        /// `1 / (1 + e⁻ˣ)`
        Sigmoid => "sigmoid", sigmoid::<A, F>(x);
        /// `ln(1 + eˣ)`
        // The argument of `exp` is at most 0, so `exp` cannot overflow; `ln_1p` is accurate near 0.
        Softplus => "softplus", x.max(A::zero()) + F::ln_1p(F::exp(-x.abs()));
        /// The sign of `x`: −1, 0 or 1, and 0 for NaN.
        Sign => "sign", if x > A::zero() {
            A::one()
        } else if x < A::zero() {
            -A::one()
        } else {
            A::zero()
        };
        /// 1 where the sign bit of `x` is set, including −0, else 0.
        SignBit => "sign_bit", if x.is_sign_negative() { A::one() } else { A::zero() };
        /// `xᵖ`
        Pow(p: A) => "pow", F::powf(x, p);
        /// `x + c`
        AddScalar(c: A) => "add_scalar", x + c;
        /// `c · x`
        Scale(c: A) => "scale", c * x;
        /// 1 where `x > t`, else 0.
        Threshold(t: A) => "threshold", if x > t { A::one() } else { A::zero() };
        /// `max(x, 0) + slope · min(x, 0)`, which is NaN for NaN.
        Relu {
            /// Slope of ReLU for negative inputs.
            slope: A,
        } => "relu", if x > A::zero() { x } else { slope * x };
        /// `x` where `x > 0`, else `alpha · (eˣ − 1)`.
        Elu {
            /// Parameter α of ELU, the negated limit of ELU at −∞.
            alpha: A,
        } => "elu", if x > A::zero() { x } else { alpha * F::exp_m1(x) };
        /// `x / (1 + e^(−beta·x))`
        Swish {
            /// Parameter β of Swish, `x · sigmoid(β·x)`.
            beta: A,
        } => "swish", x * sigmoid::<A, F>(beta * x);
        /// `min(max(x, low), high)`, which is NaN for NaN.
        Clip {
            /// Lower bound.
            low: A,
            /// Upper bound.
            high: A,
        } => "clip", if x < low {
            low.min(high)
        } else if x > high {
            high
        } else {
            x
        };
        /// `e^(scale·x + shift)`
        ExpAffine {
            /// Factor of `x`.
            scale: A,
            /// Constant that is added to `scale · x`.
            shift: A,
        } => "exp_affine", F::exp(scale * x + shift);
        /// `factor · ln(scale·x + shift)`
        LnAffine {
            /// Factor of `x`.
            scale: A,
            /// Constant that is added to `scale · x`.
            shift: A,
            /// Factor by which the logarithm is multiplied.
            factor: A,
        } => "ln_affine", factor * F::ln(scale * x + shift);
        /// `(scale·x + shift)^power`; a power of 0, 1 or 2 takes at most one multiplication.
        PowAffine {
            /// Factor of `x`.
            scale: A,
            /// Constant that is added to `scale · x`.
            shift: A,
            /// The exponent.
            power: A,
        } => "pow_affine", pow::<A, F>(scale * x + shift, power);
    }
}

impl<A: Float> Unary<A> {
    /// Evaluates the function at `x`. The kernels of all devices approximate the result of `eval`.
    #[inline(always)]
    pub fn eval(&self, x: A) -> A {
        self.eval_operands(x)
    }
}

/// One of the functions of [`Unary`] as a separate type, so that the compiler specializes generic
/// code for the function.
pub(crate) trait UnaryFunction<A: Float>: Copy + Into<Unary<A>> {
    /// Evaluates the function at `x` with the exp, ln, tanh and pow of `F`.
    fn eval<F: ElementaryFunctions<A>>(self, x: A) -> A;
}

/// Code that [`Unary::visit`] runs, compiled for each function.
pub(crate) trait UnaryVisitor<A: Float> {
    /// Runs the visitor's code, specialized for `function`.
    fn visit(self, function: impl UnaryFunction<A>);
}

/// Returns `1 / (1 + e⁻ˣ)`.
#[inline(always)]
pub(crate) fn sigmoid<A: Float, F: ElementaryFunctions<A>>(x: A) -> A {
    A::one() / (A::one() + F::exp(-x))
}

/// Returns `xᵖ`; a `p` of 0, 1 or 2 takes at most one multiplication.
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

//! Scalar functions of one element, for elementwise kernels.

use super::elementary::{ElementaryFunctions, StdFunctions};
use crate::element::Element;
use num_traits::Float;

/// Defines an enum of scalar functions whose parameters have the type `A`, with the methods `name`
/// and `cast`.
macro_rules! scalar_functions {
    (
        $(#[$meta:meta])*
        $kernel:literal $function:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident
                $(($value:ident: $value_type:ident))?
                $({ $($(#[$field_doc:meta])* $field:ident: $field_type:ident),+ $(,)? })?
                => $name:literal,
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $function<A> {
            $(
                $(#[$doc])*
                $variant $(($value_type))? $({ $($(#[$field_doc])* $field: $field_type),+ })?,
            )+
        }

        impl<A: Element> $function<A> {
            /// Returns the same function with parameters of type `B`.
            pub fn cast<B: Element>(self) -> $function<B> {
                match self {
                    $(
                        Self::$variant $(($value))? $({ $($field),+ })? => $function::$variant
                            $((B::from_f64($value.to_f64())))?
                            $({ $($field: B::from_f64($field.to_f64())),+ })?,
                    )+
                }
            }
        }

        impl<A> $function<A> {
            /// Returns the name of the function, as it appears in the names of device kernels.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }

            /// Returns the name of the kernel and the function, such as `unary_exp` or
            /// `binary_add`, as a [`Ledger`](crate::ledger::Ledger) and the coverage table show it.
            pub fn kernel_name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => concat!($kernel, "_", $name),)+
                }
            }
        }
    };
}
pub(super) use scalar_functions;

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
    "unary" Unary {
        /// `|x|`, which is +0 for −0.
        Abs => "abs",
        /// `−x`, which is −0 for +0.
        Neg => "neg",
        /// `eˣ`
        Exp => "exp",
        /// `ln x`
        Ln => "ln",
        /// `x²`
        Sqr => "sqr",
        /// `√x`
        Sqrt => "sqrt",
        /// `1 / x`
        Recip => "recip",
        /// `tanh x`
        Tanh => "tanh",
        /// `1 / (1 + e⁻ˣ)`
        Sigmoid => "sigmoid",
        /// `ln(1 + eˣ)`
        Softplus => "softplus",
        /// The sign of `x`: −1, 0 or 1, and 0 for NaN.
        Sign => "sign",
        /// 1 where the sign bit of `x` is set, including −0, else 0.
        SignBit => "sign_bit",
        /// `xᵖ`
        Pow(p: A) => "pow",
        /// `x + c`
        AddScalar(c: A) => "add_scalar",
        /// `c · x`
        Scale(c: A) => "scale",
        /// 1 where `x > t`, else 0.
        Threshold(t: A) => "threshold",
        /// `max(x, 0) + slope · min(x, 0)`, which is NaN for NaN.
        Relu {
            /// Slope of ReLU for negative inputs.
            slope: A,
        } => "relu",
        /// `x` where `x > 0`, else `alpha · (eˣ − 1)`.
        Elu {
            /// Parameter α of ELU, the negated limit of ELU at −∞.
            alpha: A,
        } => "elu",
        /// `x / (1 + e^(−beta·x))`
        Swish {
            /// Parameter β of Swish, the factor of `x` in the exponent.
            beta: A,
        } => "swish",
        /// `min(max(x, low), high)`, which is NaN for NaN.
        Clip {
            /// Lower bound.
            low: A,
            /// Upper bound.
            high: A,
        } => "clip",
        /// `e^(scale·x + shift)`
        ExpAffine {
            /// Factor of `x`.
            scale: A,
            /// Constant that is added to `scale · x`.
            shift: A,
        } => "exp_affine",
        /// `factor · ln(scale·x + shift)`
        LnAffine {
            /// Factor of `x`.
            scale: A,
            /// Constant that is added to `scale · x`.
            shift: A,
            /// Factor by which the logarithm is multiplied.
            factor: A,
        } => "ln_affine",
        /// `(scale·x + shift)^power`; a power of 0, 1 or 2 takes at most one multiplication.
        PowAffine {
            /// Factor of `x`.
            scale: A,
            /// Constant that is added to `scale · x`.
            shift: A,
            /// The exponent.
            power: A,
        } => "pow_affine",
    }
}

impl<A: Float> Unary<A> {
    /// Evaluates the function at `x`. The kernels of all devices approximate the result of `eval`.
    #[inline(always)]
    pub fn eval(&self, x: A) -> A {
        self.eval_with::<StdFunctions>(x)
    }

    /// Like [`eval`](Self::eval), but computes exp, ln, tanh and pow by the implementations in `F`.
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
            // The argument of `exp` is at most 0, so `exp` cannot overflow; `ln_1p` is accurate
            // near 0.
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

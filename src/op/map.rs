//! Functions of one and of two elements.

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
    /// `max(x, 0) + slope · min(x, 0)`
    Relu {
        /// Slope left of zero.
        slope: A,
    },
    /// `min(max(x, low), high)`
    Clip {
        /// Least result.
        low: A,
        /// Greatest result.
        high: A,
    },
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
            Self::Sign => "sign",
            Self::SignBit => "sign_bit",
            Self::Pow(_) => "pow",
            Self::AddScalar(_) => "add_scalar",
            Self::Scale(_) => "scale",
            Self::Relu { .. } => "relu",
            Self::Clip { .. } => "clip",
        }
    }

    /// The function itself: what every device must agree with.
    #[inline(always)]
    pub fn eval(&self, x: A) -> A {
        let (zero, one) = (A::zero(), A::one());
        match *self {
            Self::Abs => x.abs(),
            Self::Neg => -x,
            Self::Exp => x.exp(),
            Self::Ln => x.ln(),
            Self::Sqr => x * x,
            Self::Sqrt => x.sqrt(),
            Self::Recip => one / x,
            Self::Tanh => x.tanh(),
            Self::Sigmoid => one / (one + (-x).exp()),
            Self::Sign if x > zero => one,
            Self::Sign if x < zero => -one,
            Self::Sign => zero,
            Self::SignBit if x.is_sign_negative() => one,
            Self::SignBit => zero,
            Self::Pow(p) => x.powf(p),
            Self::AddScalar(c) => x + c,
            Self::Scale(c) => c * x,
            Self::Relu { .. } if x > zero => x,
            Self::Relu { slope } => slope * x,
            Self::Clip { low, high } if x < low => low.min(high),
            Self::Clip { high, .. } if x > high => high,
            Self::Clip { .. } => x,
        }
    }
}

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
    /// `a / b`
    Div,
    /// The greater; `b` if either is NaN.
    Max,
    /// The lesser; `b` if either is NaN.
    Min,
    /// `a` where `b > 0`, else `slope · a`; `b` is ReLU's input, or its output if `slope ≥ 0`.
    ReluGrad {
        /// Slope left of zero.
        slope: A,
    },
    /// `a · b · (1 − b)`; `b` is the sigmoid's output.
    SigmoidGrad,
    /// `a · (1 − b²)`; `b` is the hyperbolic tangent's output.
    TanhGrad,
}

impl<A: Float> Binary<A> {
    /// Kernel name, as in device symbols.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Max => "max",
            Self::Min => "min",
            Self::ReluGrad { .. } => "relu_grad",
            Self::SigmoidGrad => "sigmoid_grad",
            Self::TanhGrad => "tanh_grad",
        }
    }

    /// The function itself: what every device must agree with.
    #[inline(always)]
    pub fn eval(&self, a: A, b: A) -> A {
        let (zero, one) = (A::zero(), A::one());
        match *self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::Div => a / b,
            Self::Max if a > b => a,
            Self::Min if a < b => a,
            Self::Max | Self::Min => b,
            Self::ReluGrad { .. } if b > zero => a,
            Self::ReluGrad { slope } => slope * a,
            Self::SigmoidGrad => a * b * (one - b),
            Self::TanhGrad => a * (one - b * b),
        }
    }
}

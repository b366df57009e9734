//! Implementations of exp, ln, tanh and pow for the evaluation of [`Unary`](super::Unary) and
//! [`Binary`](super::Binary) functions.

use num_traits::Float;

/// The elementary functions exp, ln, tanh and pow for values of type `A`; the default
/// implementations call the standard library.
///
/// The standard library's functions are the reference for the kernels of every device. Kernels may
/// use faster implementations of elementary functions.
pub(crate) trait ElementaryFunctions<A: Float> {
    #[inline(always)]
    fn exp(x: A) -> A {
        x.exp()
    }

    #[inline(always)]
    fn exp_m1(x: A) -> A {
        x.exp_m1()
    }

    #[inline(always)]
    fn ln(x: A) -> A {
        x.ln()
    }

    #[inline(always)]
    fn ln_1p(x: A) -> A {
        x.ln_1p()
    }

    #[inline(always)]
    fn tanh(x: A) -> A {
        x.tanh()
    }

    #[inline(always)]
    fn powf(x: A, p: A) -> A {
        x.powf(p)
    }
}

pub(crate) struct StdFunctions;

impl<A: Float> ElementaryFunctions<A> for StdFunctions {}

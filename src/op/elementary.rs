//! Implementations of exp, ln, tanh and pow for the evaluation of [`Unary`](super::Unary) and
//! [`Binary`](super::Binary) functions.

use num_traits::Float;

/// Elementary functions of the type `A`, by default the functions of the standard library.
///
/// The functions of the standard library are the reference for every device. Kernels may use faster
/// implementations.
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

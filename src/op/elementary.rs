//! Where functions of elements take the elementary ones from.

use num_traits::Float;

/// Elementary functions of `A`.
///
/// Those of [`Library`] are what every device must agree with; a device may have faster ones.
pub(crate) trait ElementaryFunctions<A> {
    /// `eˣ`
    fn exp(x: A) -> A;
    /// `eˣ − 1`
    fn exp_m1(x: A) -> A;
    /// `ln x`
    fn ln(x: A) -> A;
    /// `ln(1 + x)`
    fn ln_1p(x: A) -> A;
    /// `tanh x`
    fn tanh(x: A) -> A;
    /// `xᵖ`
    fn powf(x: A, p: A) -> A;
}

/// The functions of the standard library.
pub(crate) struct StdFunctions;

impl<A: Float> ElementaryFunctions<A> for StdFunctions {
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

//! Elementary functions of which the compiler makes vectors.

pub(crate) mod elementary;
pub(crate) mod pow;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

use crate::host::math::x86::sqrt_div;
#[cfg(target_arch = "x86_64")]
use crate::host::simd::has_avx512;
use crate::{
    element::{DType, Element},
    host::math::elementary::{f32, f64},
    op::ElementaryFunctions,
};
use bytemuck::cast_slice;
use bytemuck::{cast, cast_slice_mut};
use num_traits::Float;

/// The functions of kernels on this host: the same bits for every width of vectors.
///
/// The worst errors over all of `f32`, in units in the last place: `exp` 0.90, `exp_m1` 1.46,
/// `ln` 0.88, `ln_1p` 1.48, `tanh` 2.17; of those tried, `powf` 0.6. Where the library's result is
/// exact by definition (NaN, infinities, zeros and their signs), so is this.
pub(crate) struct SimdMath;

/// Calls the function of `A`'s own module, `A` being `f32` or `f64`.
macro_rules! own {
    ($name:ident($x:expr)) => {
        match A::DTYPE {
            DType::F64 => cast(f64::$name(cast($x))),
            _ => cast(f32::$name(cast($x))),
        }
    };
}

impl<A: Element + Float> ElementaryFunctions<A> for SimdMath {
    #[inline(always)]
    fn exp(x: A) -> A {
        own!(exp(x))
    }

    #[inline(always)]
    fn exp_m1(x: A) -> A {
        own!(exp_m1(x))
    }

    #[inline(always)]
    fn ln(x: A) -> A {
        own!(ln(x))
    }

    #[inline(always)]
    fn ln_1p(x: A) -> A {
        own!(ln_1p(x))
    }

    #[inline(always)]
    fn tanh(x: A) -> A {
        own!(tanh(x))
    }

    #[inline(always)]
    fn powf(x: A, p: A) -> A {
        match A::DTYPE {
            DType::F64 => x.powf(p),
            _ => cast(pow::powf(cast(x), cast(p))),
        }
    }
}

/// The greatest exponent, either way, of an exponential that is nothing special.
pub(crate) const MAX_FAST_EXPONENT: f64 = 86.0;

/// As [`SimdMath`] with the same bits, but exponentials are those of numbers of at most
/// [`USUAL_EXPONENT`], logarithms those of positive, normal and finite ones, and so are powers, to
/// what is a number.
pub(crate) struct SimdMathNormalRange;

impl<A: Element + Float> ElementaryFunctions<A> for SimdMathNormalRange {
    #[inline(always)]
    fn exp(x: A) -> A {
        own!(usual_exp(x))
    }

    #[inline(always)]
    fn exp_m1(x: A) -> A {
        SimdMath::exp_m1(x)
    }

    #[inline(always)]
    fn ln(x: A) -> A {
        own!(usual_ln(x))
    }

    #[inline(always)]
    fn ln_1p(x: A) -> A {
        SimdMath::ln_1p(x)
    }

    #[inline(always)]
    fn tanh(x: A) -> A {
        SimdMath::tanh(x)
    }

    #[inline(always)]
    fn powf(x: A, p: A) -> A {
        match A::DTYPE {
            DType::F64 => x.powf(p),
            _ => cast(pow::usual_powf(cast(x), cast(p))),
        }
    }
}

/// As [`SimdMathNormalRange::powf`] of each, where there is a faster way.
#[inline(always)]
pub(crate) fn pow_normal_range<A: Element + Float, const N: usize>(mut x: [A; N], p: A) -> [A; N] {
    if A::DTYPE == DType::F32 {
        pow::usual_powers::<N>(cast_slice_mut(&mut x), cast(p));
        return x;
    }
    for x in &mut x {
        *x = SimdMathNormalRange::powf(*x, p);
    }
    x
}

/// `yᵢ ← √xᵢ` faster than by the instruction, with the same bits; whether there is a way. Equal
/// lengths.
pub(crate) fn sqrt_newton<A: Element>(x: &[A], y: &mut [A]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 && has_avx512() {
        // SAFETY: the processor has what it is compiled for.
        #[allow(unsafe_code)]
        unsafe {
            sqrt_div::sqrt(cast_slice(x), cast_slice_mut(y));
        }
        return true;
    }
    let _ = (x, y);
    false
}

/// As [`sqrt_by_estimates`], of quotients `aᵢ / bᵢ`.
pub(crate) fn div_newton<A: Element>(a: &[A], b: &[A], y: &mut [A]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 && has_avx512() {
        // SAFETY: the processor has what it is compiled for.
        #[allow(unsafe_code)]
        unsafe {
            sqrt_div::div(cast_slice(a), cast_slice(b), cast_slice_mut(y));
        }
        return true;
    }
    let _ = (a, b, y);
    false
}

#[cfg(test)]
mod tests;

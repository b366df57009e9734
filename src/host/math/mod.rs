//! Elementary functions, written so that the compiler vectorizes their loops.
//!
//! - `elementary` implements exp, exp_m1, ln, ln_1p and tanh, for `f32` and `f64`.
//! - `pow` implements powers in `f32`, with the macro `polynomial` of `elementary`.
//! - `x86::sqrt_div` computes square roots and quotients of long operands with AVX-512, for
//!   [`sqrt_newton`] and [`div_newton`]. The results of `sqrt_div` are correctly rounded.
//!
//! The module `math` implements [`ElementaryFunctions`] for the kernels of `elementwise` and `nn`.
//! The functions of [`SimdMath`] accept all arguments. The faster functions of
//! [`SimdMathNormalRange`] do not accept special arguments, such as NaN, infinity and subnormal
//! numbers.

mod elementary;
mod pow;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
use crate::cast::cast_slice;
use crate::cast::{cast, cast_slice_mut};
#[cfg(target_arch = "x86_64")]
use crate::host::{math::x86::sqrt_div, simd::has_avx512};
use crate::{
    element::{DType, Element},
    host::math::elementary::{f32, f64},
    op::ElementaryFunctions,
};
use num_traits::Float;

/// Elementary functions for host kernels; the results are bit-identical at every SIMD level.
///
/// Over all `f32` arguments, the largest errors in ulp are 0.90 for `exp`, 1.46 for `exp_m1`, 0.88
/// for `ln`, 1.48 for `ln_1p` and 2.17 for `tanh`. The largest error of `powf` in the tests is 0.6
/// ulp. Results that are exact by definition (NaN, infinities, zeros and their signs) equal the
/// results of the standard library.
pub(crate) struct SimdMath;

/// Calls the function `$name` of the module `elementary::f32` or `elementary::f64`, depending on
/// the type `A`.
macro_rules! elementary {
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
        elementary!(exp(x))
    }

    #[inline(always)]
    fn exp_m1(x: A) -> A {
        elementary!(exp_m1(x))
    }

    #[inline(always)]
    fn ln(x: A) -> A {
        elementary!(ln(x))
    }

    #[inline(always)]
    fn ln_1p(x: A) -> A {
        elementary!(ln_1p(x))
    }

    #[inline(always)]
    fn tanh(x: A) -> A {
        elementary!(tanh(x))
    }

    #[inline(always)]
    fn powf(x: A, p: A) -> A {
        match A::DTYPE {
            DType::F64 => x.powf(p),
            _ => cast(pow::powf(cast(x), cast(p))),
        }
    }
}

/// Largest allowed absolute value of an argument of `exp` in [`SimdMathNormalRange`].
pub(crate) const MAX_FAST_EXPONENT: f64 = 86.0;

/// Elementary functions without code for special arguments, such as NaN. For arguments that are not
/// special, results are bit-identical to those of [`SimdMath`]. Arguments of `exp` must be at most
/// [`MAX_FAST_EXPONENT`] in absolute value. Arguments of `ln` and bases of `powf` must be positive,
/// normal and finite. Exponents of `powf` must not be NaN.
pub(crate) struct SimdMathNormalRange;

impl<A: Element + Float> ElementaryFunctions<A> for SimdMathNormalRange {
    #[inline(always)]
    fn exp(x: A) -> A {
        elementary!(exp_normal_range(x))
    }

    #[inline(always)]
    fn exp_m1(x: A) -> A {
        SimdMath::exp_m1(x)
    }

    #[inline(always)]
    fn ln(x: A) -> A {
        elementary!(ln_normal_range(x))
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
            _ => cast(pow::powf_normal_range(cast(x), cast(p))),
        }
    }
}

/// Returns `xᵢᵖ`, computed by `powf` of [`SimdMathNormalRange`], for each element. Powers in `f32`
/// are computed in several passes over the array.
#[inline(always)]
pub(crate) fn pow_normal_range<A: Element + Float, const N: usize>(mut x: [A; N], p: A) -> [A; N] {
    if A::DTYPE == DType::F32 {
        pow::pow_block::<N>(cast_slice_mut(&mut x), cast(p));
        return x;
    }
    for x in &mut x {
        *x = SimdMathNormalRange::powf(*x, p);
    }
    x
}

/// `yᵢ ← √xᵢ`, faster than with the square root instruction alone. Returns `false` and does nothing
/// unless `A` is `f32` and the processor has AVX-512. `x` and `y` have the same length.
pub(crate) fn sqrt_newton<A: Element>(x: &[A], y: &mut [A]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 && has_avx512() {
        // SAFETY: `has_avx512` detected the processor features for which the called function is
        // compiled.
        unsafe { sqrt_div::sqrt(cast_slice(x), cast_slice_mut(y)) };
        return true;
    }
    let _ = (x, y);
    false
}

/// Like [`sqrt_newton`], but for `yᵢ ← aᵢ / bᵢ`.
pub(crate) fn div_newton<A: Element>(a: &[A], b: &[A], y: &mut [A]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 && has_avx512() {
        // SAFETY: `has_avx512` detected the processor features for which the called function is
        // compiled.
        unsafe { sqrt_div::div(cast_slice(a), cast_slice(b), cast_slice_mut(y)) };
        return true;
    }
    let _ = (a, b, y);
    false
}

#[cfg(test)]
mod tests;

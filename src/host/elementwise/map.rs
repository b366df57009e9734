//! Functions of one and of two elements, along whole operands.
//!
//! Which function it is gets decided once per run of elements; each has a loop of its own, which
//! the compiler vectorises where the function allows it.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        cache::{
            cache_line::{with_aligned_stores, zip_with_aligned_stores},
            nontemporal::{bypasses_cache, map_nontemporal},
        },
        math::{
            MAX_FAST_EXPONENT, SimdMath, SimdMathNormalRange, div_newton, pow_normal_range,
            sqrt_newton,
        },
        simd::{
            accumulator::{
                CHUNK, accumulator_buffer, is_wide, overwrite_widened, update_widened, widened,
            },
            vectorized,
        },
        threads::Workers,
    },
    op::{Binary, Unary},
};
use bytemuck::{cast_slice, cast_slice_mut};
use num_traits::Float;

/// Elements of one task where memory is the limit: below this, a second thread costs more than it
/// saves.
const GRAIN: usize = 1 << 16;

/// Elements of one task where the function itself is the limit.
const COMPUTE_BOUND_GRAIN: usize = 1 << 15;

/// Elements of which tasks are a multiple: whole lines of a cache.
const CHUNK_ALIGN: usize = 64;

/// Elements of which elementary functions are computed side by side: one waits for no other.
const BLOCK: usize = 64;

/// Evaluates `$body`, vectorised, with `$known` bound to `$op`, in one copy for each variant.
///
/// The binding is inside the closure: only there does the compiler see which variant it is.
macro_rules! specialized {
    ($kind:ident: $op:expr, |$known:ident| $body:expr; $(
        $variant:ident $(($value:ident))? $({ $($field:ident),* })?
    ),*) => {
        match $op {
            $($kind::$variant $(($value))? $({ $($field),* })? => vectorized(
                #[inline(always)]
                move || {
                    let $known = $kind::$variant $(($value))? $({ $($field),* })?;
                    $body
                }
            ),)*
        }
    };
}

macro_rules! specialized_unary {
    ($op:expr, |$known:ident| $body:expr) => {
        specialized!(Unary: $op, |$known| $body;
            Abs, Neg, Exp, Ln, Sqr, Sqrt, Recip, Tanh, Sigmoid, Softplus, Sign, SignBit, Pow(p),
            AddScalar(c), Scale(c), Threshold(t), Relu { slope }, Elu { alpha }, Swish { beta },
            Clip { low, high }, ExpAffine { scale, shift }, LnAffine { scale, shift, factor },
            PowAffine { scale, shift, power })
    };
}

macro_rules! specialized_binary {
    ($op:expr, |$known:ident| $body:expr) => {
        specialized!(Binary: $op, |$known| $body;
            Add, Sub, Mul, MulScaled(c), MulNegative, Div, DivOrZero, Max, Min, Greater,
            GreaterEqual, Prelu, PreluSlope, AbsGrad, ReluGrad { slope }, EluGrad { alpha },
            SigmoidGrad, TanhGrad, SoftplusGrad, SwishGrad { beta }, ClipGrad { low, high },
            LnAffineGrad { scale, shift, factor }, PowAffineGrad { scale, shift, power })
    };
}

/// `y ← value`, every element.
///
/// # Errors
/// None.
#[doc(alias = "caffe_set")]
pub fn fill<T: Element>(workers: &Workers, value: T, y: &mut [T]) -> Result<()> {
    workers.for_each_chunk(y, GRAIN, |_, y| y.fill(value));
    Ok(())
}

/// `yᵢ ← f(xᵢ)`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_exp")]
#[doc(alias = "caffe_powx")]
#[doc(alias = "caffe_abs")]
#[doc(alias = "caffe_sqr")]
pub fn unary<T: Element>(workers: &Workers, op: Unary<T::Acc>, x: &[T], y: &mut [T]) -> Result<()> {
    check_len(op.name(), "y", x.len(), y.len())?;
    let (task, far) = (
        workers.even_chunk_len(y.len(), unary_task(op), CHUNK_ALIGN),
        is_wide::<T>() && bypasses_cache(y),
    );
    workers.for_each_chunk(y, task, |i, y| {
        if far {
            let x: &[T::Acc] = cast_slice(&x[i * task..][..y.len()]);
            return map_nontemporal([x], cast_slice_mut(y), |at, y| {
                unary_run(op, &x[at..][..y.len()], y)
            });
        }
        let (mut room_x, mut room_y) = (accumulator_buffer(), accumulator_buffer());
        let x = x[i * task..][..y.len()].chunks(run::<T>());
        for (x, y) in x.zip(y.chunks_mut(run::<T>())) {
            let x = widened(x, &mut room_x);
            overwrite_widened(y, &mut room_y, |y| unary_run(op, x, y));
        }
    });
    Ok(())
}

/// `yᵢ ← f(yᵢ)`.
///
/// # Errors
/// None.
#[doc(alias = "caffe_add_scalar")]
pub fn unary_in_place<T: Element>(workers: &Workers, op: Unary<T::Acc>, y: &mut [T]) -> Result<()> {
    let task = workers.even_chunk_len(y.len(), unary_task(op), CHUNK_ALIGN);
    workers.for_each_chunk(y, task, |_, y| {
        let mut room = accumulator_buffer();
        for y in y.chunks_mut(run::<T>()) {
            update_widened(y, &mut room, |y| unary_run_in_place(op, y));
        }
    });
    Ok(())
}

/// `yᵢ ← f(aᵢ, bᵢ)`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `b` and `y` are as long as `a`.
#[doc(alias = "caffe_add")]
#[doc(alias = "caffe_sub")]
#[doc(alias = "caffe_mul")]
#[doc(alias = "caffe_div")]
pub fn binary<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    a: &[T],
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    check_len(op.name(), "b", a.len(), b.len())?;
    check_len(op.name(), "y", a.len(), y.len())?;
    let (task, far) = (
        workers.even_chunk_len(y.len(), binary_task(op), CHUNK_ALIGN),
        is_wide::<T>() && bypasses_cache(y),
    );
    workers.for_each_chunk(y, task, |i, y| {
        if far {
            let at = i * task..i * task + y.len();
            let (a, b): (&[T::Acc], &[T::Acc]) = (cast_slice(&a[at.clone()]), cast_slice(&b[at]));
            return map_nontemporal([a, b], cast_slice_mut(y), |at, y| {
                binary_run(op, &a[at..][..y.len()], &b[at..][..y.len()], y);
            });
        }
        let (mut room_a, mut room_b, mut room_y) =
            (accumulator_buffer(), accumulator_buffer(), accumulator_buffer());
        let start = i * task;
        let a = a[start..][..y.len()].chunks(run::<T>());
        let b = b[start..][..y.len()].chunks(run::<T>());
        for ((a, b), y) in a.zip(b).zip(y.chunks_mut(run::<T>())) {
            let (a, b) = (widened(a, &mut room_a), widened(b, &mut room_b));
            overwrite_widened(y, &mut room_y, |y| binary_run(op, a, b, y));
        }
    });
    Ok(())
}

/// `yᵢ ← f(yᵢ, bᵢ)`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `b` is as long as `y`.
pub fn binary_in_place<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    check_len(op.name(), "b", y.len(), b.len())?;
    let task = workers.even_chunk_len(y.len(), binary_task(op), CHUNK_ALIGN);
    workers.for_each_chunk(y, task, |i, y| {
        let (mut room_b, mut room_y) = (accumulator_buffer(), accumulator_buffer());
        let b = b[i * task..][..y.len()].chunks(run::<T>());
        for (b, y) in b.zip(y.chunks_mut(run::<T>())) {
            let b = widened(b, &mut room_b);
            update_widened(y, &mut room_y, |y| binary_run_in_place(op, b, y));
        }
    });
    Ok(())
}

/// Elements handled at a time: all of them unless they have to be widened.
fn run<T: Element>() -> usize {
    if is_wide::<T>() { GRAIN } else { CHUNK }
}

fn unary_task<A>(op: Unary<A>) -> usize {
    if is_elementary(&op) { COMPUTE_BOUND_GRAIN } else { GRAIN }
}

/// Whether it is made of exponentials, logarithms or powers.
#[inline(always)]
fn is_elementary<A>(op: &Unary<A>) -> bool {
    use Unary::{
        Elu, Exp, ExpAffine, Ln, LnAffine, Pow, PowAffine, Sigmoid, Softplus, Swish, Tanh,
    };
    matches!(
        op,
        Exp | Ln
            | Tanh
            | Sigmoid
            | Softplus
            | Pow(_)
            | Elu { .. }
            | Swish { .. }
            | ExpAffine { .. }
            | LnAffine { .. }
            | PowAffine { .. }
    )
}

fn binary_task<A>(op: Binary<A>) -> usize {
    match op {
        Binary::SoftplusGrad | Binary::SwishGrad { .. } | Binary::PowAffineGrad { .. } => {
            COMPUTE_BOUND_GRAIN
        }
        _ => GRAIN,
    }
}

// Loops stand here themselves: in a closure of `for_each` the compiler need not see which function
// it is, and computes what it is anew for each element.

fn unary_run<A: Element + Float>(op: Unary<A>, x: &[A], y: &mut [A]) {
    if op == Unary::Sqrt && sqrt_newton(x, y) {
        return;
    }
    specialized_unary!(op, |op| {
        let (mut x, mut y) = (x, y);
        if is_elementary(&op) {
            let (blocks, rest) = x.as_chunks::<BLOCK>();
            let (out, rest_out) = y.as_chunks_mut::<BLOCK>();
            for (y, x) in out.iter_mut().zip(blocks) {
                *y = block(op, *x);
            }
            (x, y) = (rest, rest_out);
        }
        zip_with_aligned_stores(
            x,
            y,
            #[inline(always)]
            |x, y| {
                for (y, &x) in y.iter_mut().zip(x) {
                    *y = op.eval_with::<SimdMath>(x);
                }
            },
        );
    });
}

fn unary_run_in_place<A: Element + Float>(op: Unary<A>, y: &mut [A]) {
    specialized_unary!(op, |op| {
        let mut y = y;
        if is_elementary(&op) {
            let (blocks, rest) = y.as_chunks_mut::<BLOCK>();
            for y in blocks {
                *y = block(op, *y);
            }
            y = rest;
        }
        with_aligned_stores(
            y,
            #[inline(always)]
            |y| {
                for y in y.iter_mut() {
                    *y = op.eval_with::<SimdMath>(*y);
                }
            },
        );
    });
}

/// By value: where results went to memory, the compiler computed one vector after the other.
#[inline(always)]
fn block<A: Element + Float>(op: Unary<A>, mut x: [A; BLOCK]) -> [A; BLOCK] {
    if !is_usual(op, &x) {
        for x in &mut x {
            *x = op.eval_with::<SimdMath>(*x);
        }
        return x;
    }
    if let Unary::Pow(p) = op {
        return pow_normal_range(x, p);
    }
    for x in &mut x {
        *x = op.eval_with::<SimdMathNormalRange>(*x);
    }
    x
}

/// Whether its elementary functions are of nothing that is special.
#[inline(always)]
fn is_usual<A: Element + Float, const N: usize>(op: Unary<A>, x: &[A; N]) -> bool {
    let exponent = A::from_f64(MAX_FAST_EXPONENT);
    let (least, greatest) = match op {
        Unary::Exp | Unary::Sigmoid | Unary::Softplus => (-exponent, exponent),
        Unary::Ln => (A::min_positive_value(), A::max_value()),
        Unary::Pow(p) if !p.is_nan() => (A::min_positive_value(), A::max_value()),
        _ => return false,
    };
    let mut usual = true;
    for &x in x {
        usual &= (x >= least) & (x <= greatest);
    }
    usual
}

pub(crate) fn binary_run<A: Element + Float>(op: Binary<A>, a: &[A], b: &[A], y: &mut [A]) {
    if op == Binary::Div && div_newton(a, b, y) {
        return;
    }
    specialized_binary!(op, |op| {
        let mut b = b;
        zip_with_aligned_stores(
            a,
            y,
            #[inline(always)]
            |a, y| {
                for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
                    *y = op.eval_with::<SimdMath>(a, b);
                }
                b = &b[y.len()..];
            },
        );
    });
}

pub(crate) fn binary_run_in_place<A: Element + Float>(op: Binary<A>, b: &[A], y: &mut [A]) {
    specialized_binary!(op, |op| {
        zip_with_aligned_stores(
            b,
            y,
            #[inline(always)]
            |b, y| {
                for (y, &b) in y.iter_mut().zip(b) {
                    *y = op.eval_with::<SimdMath>(*y, b);
                }
            },
        );
    });
}

#[cfg(test)]
mod tests;

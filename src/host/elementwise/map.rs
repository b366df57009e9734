//! Elementwise evaluation of functions of one or two operands.
//!
//! `visit` selects the elementwise function once per slice, and not once per element. Each function
//! has separate loops, which the compiler vectorizes if possible.

use crate::cast::{cast_slice, cast_slice_mut};
#[cfg(target_arch = "x86_64")]
use crate::{
    cast::cast,
    element::is_same,
    host::simd::x86::nontemporal::{map_from_registers, stores_from_registers},
};
use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        cache::{
            cache_line::{CHUNK_ALIGN, with_aligned_stores, zip_with_aligned_stores},
            nontemporal::{bypasses_cache, map_nontemporal},
            residence::prefers_128_bits,
        },
        elementwise::map_128_bit::binary_run_128,
        math::{
            MAX_FAST_EXPONENT, SimdMath, SimdMathNormalRange, div_newton, pow_normal_range,
            sqrt_newton,
        },
        simd::{
            accumulator::{
                CHUNK, accumulator_buffer, is_wide, overwrite_widened, update_widened, widened,
            },
            vectorized_memory_bound,
        },
        threads::Workers,
    },
    op::{Binary, BinaryFunction, BinaryVisitor, Unary, UnaryFunction, UnaryVisitor},
};
use num_traits::Float;

/// Number of elements in one task of a memory-bound function. With smaller tasks, a second thread
/// would cost more than it saves.
const GRAIN: usize = 1 << 16;

/// Number of elements in one task of a compute-bound function.
const COMPUTE_BOUND_GRAIN: usize = 1 << 15;

/// Number of elements for which an elementary function is computed at a time, in several vectors
/// whose instructions the processor overlaps.
const BLOCK: usize = 64;

/// `yᵢ ← value`.
///
/// # Errors
/// Never fails.
#[doc(alias = "caffe_set")]
pub(crate) fn fill<T: Element>(workers: &Workers, value: T, y: &mut [T]) -> Result<()> {
    let chunk_len = workers.even_chunk_len(y.len(), GRAIN, CHUNK_ALIGN);
    workers.for_each_chunk(y, chunk_len, |_, y| y.fill(value));
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
pub(crate) fn unary<T: Element>(
    workers: &Workers,
    op: Unary<T::Acc>,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    check_len(op.kernel_name(), "y", x.len(), y.len())?;
    let chunk_len = workers.even_chunk_len(y.len(), unary_grain(op), CHUNK_ALIGN);
    let is_nontemporal =
        const { is_wide::<T>() } && bypasses_cache(2 * size_of_val(y), workers.count());
    workers.for_each_chunk(y, chunk_len, |i, y| {
        if is_nontemporal {
            let x = cast_slice(&x[i * chunk_len..][..y.len()]);
            return unary_nontemporal::<T::Acc>(op, x, cast_slice_mut(y));
        }
        let (mut buffer_x, mut buffer_y) = (accumulator_buffer(), accumulator_buffer());
        let x = x[i * chunk_len..][..y.len()].chunks(run_len::<T>());
        for (x, y) in x.zip(y.chunks_mut(run_len::<T>())) {
            let x = widened(x, &mut buffer_x);
            overwrite_widened(y, &mut buffer_y, |y| unary_run(op, x, y));
        }
    });
    Ok(())
}

/// `yᵢ ← f(yᵢ)`.
///
/// # Errors
/// Never fails.
#[doc(alias = "caffe_add_scalar")]
pub(crate) fn unary_in_place<T: Element>(
    workers: &Workers,
    op: Unary<T::Acc>,
    y: &mut [T],
) -> Result<()> {
    let chunk_len = workers.even_chunk_len(y.len(), unary_grain(op), CHUNK_ALIGN);
    workers.for_each_chunk(y, chunk_len, |_, y| {
        let mut buffer = accumulator_buffer();
        for y in y.chunks_mut(run_len::<T>()) {
            update_widened(y, &mut buffer, |y| unary_run_in_place(op, y));
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
pub(crate) fn binary<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    a: &[T],
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check(a.len(), b.len(), y.len())?;
    let chunk_len = workers.even_chunk_len(y.len(), binary_grain(op), CHUNK_ALIGN);
    let is_nontemporal =
        const { is_wide::<T>() } && bypasses_cache(3 * size_of_val(y), workers.count());
    let uses_128_bits = const { is_wide::<T>() } && prefers_128_bits(3 * size_of_val(y));
    workers.for_each_chunk(y, chunk_len, |i, y| {
        let range = i * chunk_len..i * chunk_len + y.len();
        let (a, b) = (&a[range.clone()], &b[range]);
        if is_nontemporal {
            let (a, b) = (cast_slice(a), cast_slice(b));
            return binary_nontemporal::<T::Acc>(op, a, b, cast_slice_mut(y));
        }
        let (mut buffer_a, mut buffer_b, mut buffer_y) =
            (accumulator_buffer(), accumulator_buffer(), accumulator_buffer());
        let (a, b) = (a.chunks(run_len::<T>()), b.chunks(run_len::<T>()));
        for ((a, b), y) in a.zip(b).zip(y.chunks_mut(run_len::<T>())) {
            let (a, b) = (widened(a, &mut buffer_a), widened(b, &mut buffer_b));
            overwrite_widened(y, &mut buffer_y, |y| {
                if !(uses_128_bits && binary_run_128(op, a, b, y)) {
                    binary_run(op, a, b, y);
                }
            });
        }
    });
    Ok(())
}

/// `yᵢ ← f(yᵢ, bᵢ)`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `b` is as long as `y`.
pub(crate) fn binary_in_place<T: Element>(
    workers: &Workers,
    op: Binary<T::Acc>,
    b: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check(y.len(), b.len(), y.len())?;
    let chunk_len = workers.even_chunk_len(y.len(), binary_grain(op), CHUNK_ALIGN);
    workers.for_each_chunk(y, chunk_len, |i, y| {
        let (mut buffer_b, mut buffer_y) = (accumulator_buffer(), accumulator_buffer());
        let b = b[i * chunk_len..][..y.len()].chunks(run_len::<T>());
        for (b, y) in b.zip(y.chunks_mut(run_len::<T>())) {
            let b = widened(b, &mut buffer_b);
            update_widened(y, &mut buffer_y, |y| binary_run_in_place(op, b, y));
        }
    });
    Ok(())
}

/// Returns the number of elements per call of an elementwise loop, which is [`GRAIN`], or [`CHUNK`]
/// for 16-bit elements.
fn run_len<T: Element>() -> usize {
    if const { is_wide::<T>() } { GRAIN } else { CHUNK }
}

fn unary_grain<A>(op: Unary<A>) -> usize {
    if is_elementary(&op) { COMPUTE_BOUND_GRAIN } else { GRAIN }
}

/// Returns whether `op` evaluates exponentials, logarithms, powers or hyperbolic tangents.
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

fn binary_grain<A>(op: Binary<A>) -> usize {
    if is_compute_bound(&op) { COMPUTE_BOUND_GRAIN } else { GRAIN }
}

/// Returns whether `op` evaluates exponentials, logarithms or powers.
#[inline(always)]
fn is_compute_bound<A>(op: &Binary<A>) -> bool {
    use Binary::{PowAffineGrad, SoftplusGrad, SwishGrad};
    matches!(op, SoftplusGrad | SwishGrad { .. } | PowAffineGrad { .. })
}

/// Returns `len`, the number of elements of a loop, or 0 if the loop is bound by computation.
#[inline(always)]
fn memory_bound_len(is_compute_bound: bool, len: usize) -> usize {
    if is_compute_bound { 0 } else { len }
}

/// `yᵢ ← f(xᵢ)` with non-temporal stores: on Zen 4, of `f32` results directly from registers, and
/// otherwise through a buffer. Functions that are slow to compute always use the buffer, because
/// their fastest loops compute several vectors at a time.
fn unary_nontemporal<A: Element + Float>(op: Unary<A>, x: &[A], y: &mut [A]) {
    #[cfg(target_arch = "x86_64")]
    if const { is_same::<A, f32>() }
        && op != Unary::Sqrt
        && !is_elementary(&op)
        && stores_from_registers(y.len())
    {
        return op.visit(UnaryStored { x: cast_slice(x), y: cast_slice_mut(y) });
    }
    map_nontemporal([x], y, |i, y| unary_run(op, &x[i..][..y.len()], y));
}

/// Like [`unary_nontemporal`], but for `yᵢ ← f(aᵢ, bᵢ)`.
fn binary_nontemporal<A: Element + Float>(op: Binary<A>, a: &[A], b: &[A], y: &mut [A]) {
    #[cfg(target_arch = "x86_64")]
    if const { is_same::<A, f32>() }
        && op != Binary::Div
        && !is_compute_bound(&op)
        && stores_from_registers(y.len())
    {
        let (a, b) = (cast_slice(a), cast_slice(b));
        return op.visit(BinaryStored { a, b, y: cast_slice_mut(y) });
    }
    map_nontemporal([a, b], y, |i, y| {
        binary_run(op, &a[i..][..y.len()], &b[i..][..y.len()], y);
    });
}

// The visitors use `for` loops, which the compiler vectorizes more reliably than `for_each`.

fn unary_run<A: Element + Float>(op: Unary<A>, x: &[A], y: &mut [A]) {
    if op == Unary::Sqrt && sqrt_newton(x, y) {
        return;
    }
    op.visit(UnaryRun { x, y });
}

fn unary_run_in_place<A: Element + Float>(op: Unary<A>, y: &mut [A]) {
    op.visit(UnaryRunInPlace { y });
}

/// `yᵢ ← f(xᵢ)`.
struct UnaryRun<'a, A> {
    x: &'a [A],
    y: &'a mut [A],
}

impl<A: Element + Float> UnaryVisitor<A> for UnaryRun<'_, A> {
    fn visit(self, function: impl UnaryFunction<A>) {
        vectorized_memory_bound(
            memory_bound_len(is_elementary(&function.into()), self.y.len()),
            #[inline(always)]
            move |_| {
                let Self { mut x, mut y } = self;
                if is_elementary(&function.into()) {
                    let (blocks, rest) = x.as_chunks::<BLOCK>();
                    let (out, rest_out) = y.as_chunks_mut::<BLOCK>();
                    for (y, x) in out.iter_mut().zip(blocks) {
                        *y = eval_block(function, *x);
                    }
                    (x, y) = (rest, rest_out);
                }
                zip_with_aligned_stores(
                    x,
                    y,
                    #[inline(always)]
                    |x, y| {
                        for (y, &x) in y.iter_mut().zip(x) {
                            *y = function.eval::<SimdMath>(x);
                        }
                    },
                );
            },
        );
    }
}

/// `yᵢ ← f(yᵢ)`.
struct UnaryRunInPlace<'a, A> {
    y: &'a mut [A],
}

impl<A: Element + Float> UnaryVisitor<A> for UnaryRunInPlace<'_, A> {
    fn visit(self, function: impl UnaryFunction<A>) {
        vectorized_memory_bound(
            memory_bound_len(is_elementary(&function.into()), self.y.len()),
            #[inline(always)]
            move |_| {
                let Self { mut y } = self;
                if is_elementary(&function.into()) {
                    let (blocks, rest) = y.as_chunks_mut::<BLOCK>();
                    for y in blocks {
                        *y = eval_block(function, *y);
                    }
                    y = rest;
                }
                with_aligned_stores(
                    y,
                    #[inline(always)]
                    |y| {
                        for y in y.iter_mut() {
                            *y = function.eval::<SimdMath>(*y);
                        }
                    },
                );
            },
        );
    }
}

/// Returns `f(xᵢ)` for each element. The array is returned by value, because stores through a
/// reference would keep the compiler from interleaving the computations of several vectors.
#[inline(always)]
fn eval_block<A: Element + Float>(
    function: impl UnaryFunction<A>,
    mut x: [A; BLOCK],
) -> [A; BLOCK] {
    if !is_normal_range(function.into(), &x) {
        for x in &mut x {
            *x = function.eval::<SimdMath>(*x);
        }
        return x;
    }
    if let Unary::Pow(p) = function.into() {
        return pow_normal_range(x, p);
    }
    for x in &mut x {
        *x = function.eval::<SimdMathNormalRange>(*x);
    }
    x
}

/// Returns whether [`SimdMathNormalRange`] accepts all arguments `x` of `op`.
#[inline(always)]
fn is_normal_range<A: Element + Float, const N: usize>(op: Unary<A>, x: &[A; N]) -> bool {
    let exponent = A::from_f64(MAX_FAST_EXPONENT);
    let (min, max) = match op {
        Unary::Exp | Unary::Sigmoid | Unary::Softplus => (-exponent, exponent),
        Unary::Ln => (A::min_positive_value(), A::max_value()),
        Unary::Pow(p) if !p.is_nan() => (A::min_positive_value(), A::max_value()),
        _ => return false,
    };
    let mut is_inside = true;
    for &x in x {
        is_inside &= (x >= min) & (x <= max);
    }
    is_inside
}

pub(crate) fn binary_run<A: Element + Float>(op: Binary<A>, a: &[A], b: &[A], y: &mut [A]) {
    if op == Binary::Div && div_newton(a, b, y) {
        return;
    }
    op.visit(BinaryRun { a, b, y });
}

pub(crate) fn binary_run_in_place<A: Element + Float>(op: Binary<A>, b: &[A], y: &mut [A]) {
    op.visit(BinaryRunInPlace { b, y });
}

/// `yᵢ ← f(aᵢ, bᵢ)`.
struct BinaryRun<'a, A> {
    a: &'a [A],
    b: &'a [A],
    y: &'a mut [A],
}

impl<A: Element + Float> BinaryVisitor<A> for BinaryRun<'_, A> {
    fn visit(self, function: impl BinaryFunction<A>) {
        vectorized_memory_bound(
            memory_bound_len(is_compute_bound(&function.into()), self.y.len()),
            #[inline(always)]
            move |_| {
                let Self { a, mut b, y } = self;
                zip_with_aligned_stores(
                    a,
                    y,
                    #[inline(always)]
                    |a, y| {
                        for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
                            *y = function.eval::<SimdMath>([a, b]);
                        }
                        b = &b[y.len()..];
                    },
                );
            },
        );
    }
}

/// `yᵢ ← f(yᵢ, bᵢ)`.
struct BinaryRunInPlace<'a, A> {
    b: &'a [A],
    y: &'a mut [A],
}

impl<A: Element + Float> BinaryVisitor<A> for BinaryRunInPlace<'_, A> {
    fn visit(self, function: impl BinaryFunction<A>) {
        vectorized_memory_bound(
            memory_bound_len(is_compute_bound(&function.into()), self.y.len()),
            #[inline(always)]
            move |_| {
                let Self { b, y } = self;
                zip_with_aligned_stores(
                    b,
                    y,
                    #[inline(always)]
                    |b, y| {
                        for (y, &b) in y.iter_mut().zip(b) {
                            *y = function.eval::<SimdMath>([*y, b]);
                        }
                    },
                );
            },
        );
    }
}

/// `yᵢ ← f(xᵢ)` with non-temporal stores from AVX2 registers, for functions that are not
/// elementary.
#[cfg(target_arch = "x86_64")]
struct UnaryStored<'a> {
    x: &'a [f32],
    y: &'a mut [f32],
}

#[cfg(target_arch = "x86_64")]
impl<A: Element + Float> UnaryVisitor<A> for UnaryStored<'_> {
    fn visit(self, function: impl UnaryFunction<A>) {
        // The condition always holds, but keeps the compiler from generating loops for other
        // functions.
        if const { is_same::<A, f32>() } && !is_elementary(&function.into()) {
            map_from_registers(
                [self.x],
                self.y,
                #[inline(always)]
                |[x]| cast(function.eval::<SimdMath>(cast(x))),
            );
        }
    }
}

/// `yᵢ ← f(aᵢ, bᵢ)` with non-temporal stores from AVX2 registers, for functions that are not bound
/// by computation.
#[cfg(target_arch = "x86_64")]
struct BinaryStored<'a> {
    a: &'a [f32],
    b: &'a [f32],
    y: &'a mut [f32],
}

#[cfg(target_arch = "x86_64")]
impl<A: Element + Float> BinaryVisitor<A> for BinaryStored<'_> {
    fn visit(self, function: impl BinaryFunction<A>) {
        // The condition always holds, but keeps the compiler from generating loops for other
        // functions.
        if const { is_same::<A, f32>() } && !is_compute_bound(&function.into()) {
            map_from_registers(
                [self.a, self.b],
                self.y,
                #[inline(always)]
                |x| cast(function.eval::<SimdMath>(x.map(cast))),
            );
        }
    }
}

#[cfg(test)]
mod tests;

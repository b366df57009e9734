//! Vectors: BLAS level 1.

use crate::host::blas::x86::level1;
#[cfg(target_arch = "x86_64")]
use crate::{element::DType, host::simd::has_avx512};
use crate::{
    element::Element,
    error::{Result, check_len, check_min_len},
    host::{
        cache::{
            cache_line::{
                load_peel_len, prefetch_after, with_aligned_stores, with_prefetch,
                zip_with_aligned_stores, zip_with_prefetch,
            },
            nontemporal::{bypasses_cache, copy_nontemporal},
        },
        simd::{
            accumulator::{
                CHUNK, accumulator_buffer, is_wide, overwrite_widened, update_widened, widened,
            },
            fma::FmaMode,
            vectorized, vectorized_fma,
        },
        threads::Workers,
    },
};
use bytemuck::cast;
use bytemuck::{cast_slice, cast_slice_mut};
use num_traits::{Float, Zero};

/// Elements of one task: below this, a second thread costs more than it saves. Sums are cut into
/// so many on any number of threads.
const GRAIN: usize = 1 << 17;

/// Elements of which other tasks are a multiple: whole lines of a cache.
const CHUNK_ALIGN: usize = 64;

/// Elements of an operand that no cache of a thread holds: to ask ahead for what one does takes
/// longer than to wait.
const PREFETCH_MIN_LEN: usize = 4 * GRAIN;

/// Accumulators of a row: a whole number of vectors of any width.
pub(crate) const LANES: usize = 16;

/// Rows of accumulators, written out below: several chains hide the latency of an addition.
pub(crate) const ROWS: usize = 4;

/// `y ← x`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_copy")]
pub fn copy<T: Element>(workers: &Workers, x: &[T], y: &mut [T]) -> Result<()> {
    check_len("copy", "y", x.len(), y.len())?;
    if y.len() <= GRAIN {
        y.copy_from_slice(x)
    } else {
        copy_many(workers, x, y)
    }
    Ok(())
}

/// As [`copy`]; apart, as short copies feel what it needs.
#[inline(never)]
fn copy_many<T: Element>(workers: &Workers, x: &[T], y: &mut [T]) {
    let (far, task) = (bypasses_cache(y), workers.even_chunk_len(y.len(), GRAIN, CHUNK_ALIGN));
    workers.for_each_chunk(y, task, |i, y| {
        let x = &x[i * task..][..y.len()];
        if far { copy_nontemporal(x, y) } else { y.copy_from_slice(x) }
    });
}

/// `x ← α·x`.
#[doc(alias = "caffe_scal")]
pub fn scal<T: Element>(workers: &Workers, alpha: T::Acc, x: &mut [T]) -> Result<()> {
    let (far, task) = (bypasses_cache(x), workers.even_chunk_len(x.len(), GRAIN, CHUNK_ALIGN));
    workers.for_each_chunk(x, task, |_, x| {
        if is_wide::<T>() {
            let x = cast_slice_mut(x);
            if far {
                return vectorized(
                    #[inline(always)]
                    || {
                        with_prefetch(
                            x,
                            #[inline(always)]
                            |x| scale(alpha, x),
                        );
                    },
                );
            }
            return vectorized(
                #[inline(always)]
                || {
                    with_aligned_stores(
                        x,
                        #[inline(always)]
                        |x| scale(alpha, x),
                    );
                },
            );
        }
        let mut room = accumulator_buffer();
        for x in x.chunks_mut(CHUNK) {
            update_widened(x, &mut room, |x| {
                vectorized(
                    #[inline(always)]
                    || scale(alpha, x),
                );
            });
        }
    });
    Ok(())
}

#[inline(always)]
fn scale<A: Element + Float>(alpha: A, x: &mut [A]) {
    for x in x {
        *x = alpha * *x;
    }
}

/// `y ← α·x + y`, of `f32` rounded once.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_axpy")]
pub fn axpy<T: Element>(workers: &Workers, alpha: T::Acc, x: &[T], y: &mut [T]) -> Result<()> {
    check_len("axpy", "y", x.len(), y.len())?;
    each(
        workers,
        true,
        (x, y),
        #[inline(always)]
        move |fused, x, y| fused.mul_add(alpha, x, y),
    );
    Ok(())
}

/// `y ← α·x + β·y`; β = 0 does not read `y`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_cpu_axpby")]
pub fn axpby<T: Element>(
    workers: &Workers,
    alpha: T::Acc,
    x: &[T],
    beta: T::Acc,
    y: &mut [T],
) -> Result<()> {
    check_len("axpby", "y", x.len(), y.len())?;
    if beta.is_zero() {
        each(
            workers,
            false,
            (x, y),
            #[inline(always)]
            move |_, x, _| alpha * x,
        );
    } else {
        each(
            workers,
            true,
            (x, y),
            #[inline(always)]
            move |fused, x, y| fused.mul_add(alpha, x, beta * y),
        );
    }
    Ok(())
}

/// `Σ xᵢ·yᵢ`, products and sum in `T::Acc`; of `f32`, products are not rounded.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_cpu_dot")]
pub fn dot<T: Element>(workers: &Workers, x: &[T], y: &[T]) -> Result<T::Acc> {
    check_len("dot", "y", x.len(), y.len())?;
    Ok(sum_of_tasks(
        workers,
        x.len(),
        #[inline(always)]
        |i, len, far| {
            let (x, y) = (part(x, i, len), part(y, i, len));
            if is_wide::<T>() {
                return sum_run::<T::Acc>(far, cast_slice(x), cast_slice(y), |fused, sum, x, y| {
                    fused.mul_add(x, y, sum)
                });
            }
            let (mut room_x, mut room_y) = (accumulator_buffer(), accumulator_buffer());
            let mut sum = T::Acc::zero();
            for (x, y) in x.chunks(CHUNK).zip(y.chunks(CHUNK)) {
                let (x, y) = (widened(x, &mut room_x), widened(y, &mut room_y));
                sum = sum + sum_run(false, x, y, |fused, sum, x, y| fused.mul_add(x, y, sum));
            }
            sum
        },
    ))
}

/// `Σ x[i·incx]·y[i·incy]` over `n` elements; a step of 0 repeats the first.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if `x` or `y` ends before the last element used.
#[doc(alias = "caffe_cpu_strided_dot")]
pub fn dot_strided<T: Element>(
    workers: &Workers,
    n: usize,
    x: &[T],
    incx: usize,
    y: &[T],
    incy: usize,
) -> Result<T::Acc> {
    let Some(last) = n.checked_sub(1) else { return Ok(T::Acc::zero()) };
    let span = |inc: usize| last.saturating_mul(inc).saturating_add(1);
    check_min_len("dot_strided", "x", span(incx), x.len())?;
    check_min_len("dot_strided", "y", span(incy), y.len())?;
    if (incx, incy) == (1, 1) {
        return dot(workers, &x[..n], &y[..n]);
    }
    Ok(sum_of_tasks(workers, n, |task, len, _| {
        let (mut room_x, mut room_y) =
            (accumulator_buffer::<T::Acc>(), accumulator_buffer::<T::Acc>());
        let (start, end) = (task * GRAIN, task * GRAIN + len);
        let mut sum = T::Acc::zero();
        for start in (start..end).step_by(CHUNK) {
            let len = CHUNK.min(end - start);
            for i in 0..len {
                room_x[i] = x[(start + i) * incx].to_acc();
                room_y[i] = y[(start + i) * incy].to_acc();
            }
            sum = sum
                + sum_run(false, &room_x[..len], &room_y[..len], |fused, sum, x, y| {
                    fused.mul_add(x, y, sum)
                });
        }
        sum
    }))
}

/// `Σ |xᵢ|`.
#[doc(alias = "caffe_cpu_asum")]
pub fn asum<T: Element>(workers: &Workers, x: &[T]) -> Result<T::Acc> {
    Ok(sum_over(workers, x, |_, sum, x, _| sum + x.abs()))
}

/// `Σ xᵢ²`.
#[doc(alias = "sumsq_data")]
pub fn sumsq<T: Element>(workers: &Workers, x: &[T]) -> Result<T::Acc> {
    Ok(sum_over(workers, x, |fused, sum, x, _| fused.mul_add(x, x, sum)))
}

/// `max |xᵢ|`: 0 if there are no elements, NaN if one of them is NaN.
pub fn amax<T: Element>(workers: &Workers, x: &[T]) -> Result<T::Acc> {
    let (tasks, far) = (x.len().div_ceil(GRAIN), x.len() >= PREFETCH_MIN_LEN);
    let task = |i| {
        let x = part(x, i, GRAIN.min(x.len() - i * GRAIN));
        vectorized(
            #[inline(always)]
            || {
                let take = |a, x: T::Acc| larger(a, x.abs());
                if is_wide::<T>() {
                    return fold_run(far, cast_slice(x), take, larger);
                }
                let mut room = accumulator_buffer();
                let mut max = T::Acc::zero();
                for x in x.chunks(CHUNK) {
                    max = larger(max, fold_run(false, widened(x, &mut room), take, larger));
                }
                max
            },
        )
    };
    if tasks == 1 {
        return Ok(task(0));
    }
    Ok(workers.map(tasks, task).into_iter().fold(T::Acc::zero(), larger))
}

/// The part of `x` that belongs to task `i`.
#[inline(always)]
fn part<T>(x: &[T], i: usize, len: usize) -> &[T] {
    &x[i * GRAIN..][..len]
}

/// `yᵢ ← f(fused, xᵢ, yᵢ)`, equal lengths; `f` finds what is in `y` if it `reads` it.
#[inline(always)]
fn each<T: Element>(
    workers: &Workers,
    reads: bool,
    (x, y): (&[T], &mut [T]),
    f: impl Fn(FmaMode, T::Acc, T::Acc) -> T::Acc + Copy + Send + Sync,
) {
    if is_wide::<T>() && y.len() <= GRAIN {
        each_near(cast_slice(x), cast_slice_mut(y), f);
    } else {
        each_of_many(workers, reads, (x, y), f);
    }
}

/// As [`each`]; apart, as short operands feel what it needs.
#[inline(never)]
fn each_of_many<T: Element>(
    workers: &Workers,
    reads: bool,
    (x, y): (&[T], &mut [T]),
    f: impl Fn(FmaMode, T::Acc, T::Acc) -> T::Acc + Copy + Send + Sync,
) {
    let (far, task) = (bypasses_cache(y), workers.even_chunk_len(y.len(), GRAIN, CHUNK_ALIGN));
    workers.for_each_chunk(y, task, |i, y| {
        let x = &x[i * task..][..y.len()];
        if is_wide::<T>() {
            let (x, y) = (cast_slice(x), cast_slice_mut(y));
            return if far { each_far(x, y, f) } else { each_near(x, y, f) };
        }
        let (mut room_x, mut room_y) = (accumulator_buffer(), accumulator_buffer());
        for (x, y) in x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)) {
            let x = widened(x, &mut room_x);
            let body = |y: &mut [T::Acc]| {
                vectorized_fma(
                    #[inline(always)]
                    move |fused| each_of_run(fused, x, y, f),
                );
            };
            if reads {
                update_widened(y, &mut room_y, body);
            } else {
                overwrite_widened(y, &mut room_y, body);
            }
        }
    });
}

/// As [`each`], of what a cache holds.
#[inline(always)]
fn each_near<A: Element>(x: &[A], y: &mut [A], f: impl Fn(FmaMode, A, A) -> A + Copy) {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 && has_avx512() {
        // SAFETY: the processor has what it is compiled for.
        #[allow(unsafe_code)]
        return unsafe {
            level1::update(
                cast_slice(x),
                cast_slice_mut(y),
                #[inline(always)]
                move |x, y| cast(f(FmaMode::Hardware, cast(x), cast(y))),
            );
        };
    }
    vectorized_fma(
        #[inline(always)]
        move |fused| {
            zip_with_aligned_stores(
                x,
                y,
                #[inline(always)]
                move |x, y| each_of_run(fused, x, y, f),
            );
        },
    );
}

/// As [`each`], of what comes from memory: what follows is asked for meanwhile, where that pays.
#[inline(always)]
fn each_far<A: Element>(x: &[A], y: &mut [A], f: impl Fn(FmaMode, A, A) -> A + Copy) {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 && has_avx512() {
        return each_near(x, y, f);
    }
    vectorized_fma(
        #[inline(always)]
        move |fused| {
            zip_with_prefetch(
                x,
                y,
                #[inline(always)]
                move |x, y| each_of_run(fused, x, y, f),
            );
        },
    );
}

#[inline(always)]
fn each_of_run<A: Element>(fused: FmaMode, x: &[A], y: &mut [A], f: impl Fn(FmaMode, A, A) -> A) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f(fused, x, *y);
    }
}

/// Adds `body(task, elements, far)` of every task of `n` elements, in order.
#[inline]
fn sum_of_tasks<A: Element + Float>(
    workers: &Workers,
    n: usize,
    body: impl Fn(usize, usize, bool) -> A + Send + Sync,
) -> A {
    if n <= GRAIN { body(0, n, false) } else { sum_of_many(workers, n, body) }
}

/// As [`sum_of_tasks`]; apart, as short sums feel what it needs.
#[inline(never)]
fn sum_of_many<A: Element + Float>(
    workers: &Workers,
    n: usize,
    body: impl Fn(usize, usize, bool) -> A + Send + Sync,
) -> A {
    let (tasks, far) = (n.div_ceil(GRAIN), n >= PREFETCH_MIN_LEN);
    let task = |i| body(i, GRAIN.min(n - i * GRAIN), far);
    if workers.count() == 1 {
        return (0..tasks).fold(A::zero(), |sum, i| sum + task(i));
    }
    workers.map(tasks, task).into_iter().fold(A::zero(), |sum, part| sum + part)
}

/// As [`sum_run`], of all of `x` with itself.
#[inline(always)]
fn sum_over<T: Element>(
    workers: &Workers,
    x: &[T],
    take: impl Fn(FmaMode, T::Acc, T::Acc, T::Acc) -> T::Acc + Copy + Send + Sync,
) -> T::Acc {
    sum_of_tasks(workers, x.len(), |i, len, far| {
        let x = part(x, i, len);
        if is_wide::<T>() {
            return sum_run::<T::Acc>(far, cast_slice(x), cast_slice(x), take);
        }
        let mut room = accumulator_buffer();
        let mut sum = T::Acc::zero();
        for x in x.chunks(CHUNK) {
            let x = widened(x, &mut room);
            sum = sum + sum_run(false, x, x, take);
        }
        sum
    })
}

/// The sum of accumulators after `take(fused, sum, xᵢ, yᵢ)` of each pair of a run: equal lengths;
/// zeros change none, but for its sign if it is zero. Of what is `far`, more is asked for meanwhile.
#[inline(always)]
fn sum_run<A: Element + Float>(
    far: bool,
    x: &[A],
    y: &[A],
    take: impl Fn(FmaMode, A, A, A) -> A + Copy,
) -> A {
    // Not −0, which depends on where there are zeros between.
    lanes_of_run(far, x, y, take) + A::zero()
}

/// As [`sum_run`], but for the sign of zero.
#[inline(always)]
fn lanes_of_run<A: Element + Float>(
    far: bool,
    x: &[A],
    y: &[A],
    take: impl Fn(FmaMode, A, A, A) -> A + Copy,
) -> A {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 && has_avx512() {
        // SAFETY: the processor has what it is compiled for.
        #[allow(unsafe_code)]
        return cast(unsafe {
            level1::sum(
                far,
                cast_slice(x),
                cast_slice(y),
                #[inline(always)]
                |sum, x, y| cast(take(FmaMode::Hardware, cast(sum), cast(x), cast(y))),
            )
        });
    }
    vectorized_fma(
        #[inline(always)]
        |fused| {
            over_run(
                far,
                (x, y),
                #[inline(always)]
                |sum, x, y| take(fused, sum, x, y),
                |a, b| a + b,
            )
        },
    )
}

/// Folds a run: `f(accumulator, x)` takes an element in, `combine` joins accumulators. Zeros
/// may be taken in besides.
#[inline(always)]
fn fold_run<A: Element + Float>(
    far: bool,
    x: &[A],
    f: impl Fn(A, A) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    over_run(
        far,
        (x, x),
        #[inline(always)]
        |lane, x, _| f(lane, x),
        combine,
    )
}

/// Folds two runs, equally long.
///
/// An element belongs to the accumulator of its index, turned by as many as come before the first
/// line. For the tree in which they are combined, turns change no more than the order of two: so
/// results have the same bits wherever operands lie.
#[inline(always)]
fn over_run<A: Element + Float>(
    far: bool,
    (x, y): (&[A], &[A]),
    f: impl Fn(A, A, A) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let mut lanes = [[A::zero(); LANES]; ROWS];
    let before = load_peel_len(x);
    if before == 0 && !far {
        return fold_rows(from_line::<_, false>(lanes, x, y, f), combine);
    }
    let ((first_x, x), (first_y, y)) = (x.split_at(before), y.split_at(before));
    if before > 0 {
        lanes = step(lanes, &last_lanes(first_x), &last_lanes(first_y), &f);
    }
    fold_rows(from_line::<_, true>(lanes, x, y, f), combine)
}

/// Takes all of `x` and `y` into accumulators, and may have what follows fetched meanwhile.
#[inline(always)]
fn from_line<A: Element, const AHEAD: bool>(
    mut lanes: [[A; LANES]; ROWS],
    x: &[A],
    y: &[A],
    f: impl Fn(A, A, A) -> A,
) -> [[A; LANES]; ROWS] {
    let ((x, rest_x), (y, rest_y)) = (x.as_chunks(), y.as_chunks());
    for (x, y) in x.iter().zip(y) {
        if AHEAD {
            prefetch_after(x);
        }
        lanes = step(lanes, x, y, &f);
    }
    if !rest_x.is_empty() {
        lanes = step(lanes, &zero_padded(rest_x), &zero_padded(rest_y), &f);
    }
    lanes
}

/// Elements before the first line, in the lanes that are theirs when all are turned by their number.
#[inline(always)]
fn last_lanes<A: Element>(first: &[A]) -> [A; LANES * ROWS] {
    let mut whole = [A::default(); LANES * ROWS];
    whole[LANES * ROWS - first.len()..].copy_from_slice(first);
    whole
}

/// Takes one element into each accumulator; by value, which keeps them in registers.
#[inline(always)]
fn step<A: Element>(
    mut lanes: [[A; LANES]; ROWS],
    x: &[A; LANES * ROWS],
    y: &[A; LANES * ROWS],
    f: impl Fn(A, A, A) -> A,
) -> [[A; LANES]; ROWS] {
    for i in 0..LANES {
        lanes[0][i] = f(lanes[0][i], x[i], y[i]);
        lanes[1][i] = f(lanes[1][i], x[LANES + i], y[LANES + i]);
        lanes[2][i] = f(lanes[2][i], x[2 * LANES + i], y[2 * LANES + i]);
        lanes[3][i] = f(lanes[3][i], x[3 * LANES + i], y[3 * LANES + i]);
    }
    lanes
}

/// `x`, of fewer elements, filled up with zeros.
#[inline(always)]
pub(crate) fn zero_padded<A: Element, const N: usize>(x: &[A]) -> [A; N] {
    let mut whole = [A::default(); N];
    whole[..x.len()].copy_from_slice(x);
    whole
}

/// Combines accumulators: those at half the distance until one is left.
#[inline(always)]
fn fold_rows<A: Element>(lanes: [[A; LANES]; ROWS], f: impl Fn(A, A) -> A) -> A {
    let [mut a, b, c, d] = lanes;
    for i in 0..LANES {
        a[i] = f(f(a[i], c[i]), f(b[i], d[i]));
    }
    reduce_lanes(a, f)
}

/// Combines those at half the distance until one is left.
#[inline(always)]
pub(crate) fn reduce_lanes<A: Element>(mut lanes: [A; LANES], f: impl Fn(A, A) -> A) -> A {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = f(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The larger of two, or the first that is NaN.
#[inline(always)]
fn larger<A: Float>(a: A, b: A) -> A {
    if a >= b || a.is_nan() { a } else { b }
}

#[cfg(test)]
mod tests;

//! Sums of BLAS level 1: `dot`, `asum`, `sumsq` and `amax`.
//!
//! Sums divide a vector into tasks of [`GRAIN`] elements. The order of additions is fixed: each
//! task adds elements in [`LANES`] × [`ACCUMULATOR_ROWS`] accumulators, and a tree reduction adds the
//! accumulators. The sums of the tasks are added in task order. The portable loop [`accumulate`]
//! defines the order of additions. For `f32` with AVX-512 or AVX2, loops of
//! [`x86::level1`](crate::host::blas::x86::level1), whose results are bit-identical, replace
//! `accumulate`.

#[cfg(target_arch = "x86_64")]
use crate::{
    cast::cast,
    element::DType,
    host::{
        blas::x86::level1 as x86, cache::residence::alternates_places, simd::level::call_outlined,
    },
};
use crate::{
    cast::cast_slice,
    element::Element,
    error::{Result, check_len, check_min_len},
    host::{
        cache::{
            cache_line::{load_peel_len, prefetch_after},
            residence::Residence,
        },
        reduction::tree::{ACCUMULATOR_ROWS, LANES, reduce_lanes, zero_padded},
        simd::{
            accumulator::{CHUNK, accumulator_buffer, is_wide, widened},
            fma::FmaMode,
            vectorized,
        },
        threads::Workers,
    },
};
use num_traits::{Float, Zero};

/// Number of elements that one task of a sum processes. The number does not depend on the number of
/// threads, so the order of additions does not either.
const GRAIN: usize = 1 << 17;

/// Returns `Σ xᵢ·yᵢ`, accumulated in `T::Acc`. Products of `f32` are not rounded before the
/// addition.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_cpu_dot")]
pub(crate) fn dot<T: Element>(workers: &Workers, x: &[T], y: &[T]) -> Result<T::Acc> {
    check_len("dot", "y", x.len(), y.len())?;
    let f = |fma: FmaMode, sum, x, y| fma.mul_add(x, y, sum);
    let bytes = 2 * size_of_val(x);
    if const { is_wide::<T>() } {
        return Ok(sum_wide(workers, bytes, cast_slice(x), cast_slice(y), f));
    }
    Ok(sum_tasks(workers, (x.len(), bytes), |i, len, _| {
        let (x, y) = (task_slice(x, i, len), task_slice(y, i, len));
        let (mut buffer_x, mut buffer_y) = (accumulator_buffer(), accumulator_buffer());
        let mut sum = T::Acc::zero();
        for (x, y) in x.chunks(CHUNK).zip(y.chunks(CHUNK)) {
            let (x, y) = (widened(x, &mut buffer_x), widened(y, &mut buffer_y));
            sum = sum + sum_slices(false, x, y, f);
        }
        sum
    }))
}

/// Fails unless [`dot_strided`] can read `n` elements of each operand. `x` and `y` are pairs of the
/// length and the increment of an operand.
pub(crate) fn check_strided(n: usize, x: (usize, usize), y: (usize, usize)) -> Result<()> {
    let Some(last) = n.checked_sub(1) else { return Ok(()) };
    [("x", x), ("y", y)].into_iter().try_for_each(|(operand, (len, inc))| {
        check_min_len("dot_strided", operand, last.saturating_mul(inc).saturating_add(1), len)
    })
}

/// Returns `Σ x[i·incx]·y[i·incy]` over `n` elements; with an increment of 0, the first element is
/// used `n` times.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if `x` or `y` is too short for `n` elements at its
/// increment.
#[doc(alias = "caffe_cpu_strided_dot")]
pub(crate) fn dot_strided<T: Element>(
    workers: &Workers,
    n: usize,
    x: &[T],
    incx: usize,
    y: &[T],
    incy: usize,
) -> Result<T::Acc> {
    check_strided(n, (x.len(), incx), (y.len(), incy))?;
    if (incx, incy) == (1, 1) {
        return dot(workers, &x[..n], &y[..n]);
    }
    Ok(sum_tasks(workers, (n, 0), |task, len, _| {
        let (mut buffer_x, mut buffer_y) =
            (accumulator_buffer::<T::Acc>(), accumulator_buffer::<T::Acc>());
        let (start, end) = (task * GRAIN, task * GRAIN + len);
        let mut sum = T::Acc::zero();
        for start in (start..end).step_by(CHUNK) {
            let len = CHUNK.min(end - start);
            for i in 0..len {
                buffer_x[i] = x[(start + i) * incx].to_acc();
                buffer_y[i] = y[(start + i) * incy].to_acc();
            }
            sum = sum
                + sum_slices(false, &buffer_x[..len], &buffer_y[..len], |fma, sum, x, y| {
                    fma.mul_add(x, y, sum)
                });
        }
        sum
    }))
}

/// Returns `Σ |xᵢ|`.
#[doc(alias = "caffe_cpu_asum")]
pub(crate) fn asum<T: Element>(workers: &Workers, x: &[T]) -> Result<T::Acc> {
    Ok(sum_elements(workers, x, |_, sum, x, _| sum + x.abs()))
}

/// Returns `Σ xᵢ²`.
#[doc(alias = "sumsq_data")]
pub(crate) fn sumsq<T: Element>(workers: &Workers, x: &[T]) -> Result<T::Acc> {
    Ok(sum_elements(workers, x, |fma, sum, x, _| fma.mul_add(x, x, sum)))
}

/// Returns `max |xᵢ|`. The maximum is 0 if `x` is empty, and NaN if an element is NaN.
pub(crate) fn amax<T: Element>(workers: &Workers, x: &[T]) -> Result<T::Acc> {
    let tasks = x.len().div_ceil(GRAIN);
    let prefetch = tasks > 1 && Residence::of(size_of_val(x), workers.count()).prefetches_reads();
    let task = |i| {
        let x = task_slice(x, i, GRAIN.min(x.len() - i * GRAIN));
        vectorized(
            #[inline(always)]
            |_| {
                let f = |max, x: T::Acc, _| larger(max, x.abs());
                if const { is_wide::<T>() } {
                    return accumulate(prefetch, (cast_slice(x), cast_slice(x)), f, larger);
                }
                let mut buffer = accumulator_buffer();
                let mut max = T::Acc::zero();
                for x in x.chunks(CHUNK) {
                    let x = widened(x, &mut buffer);
                    max = larger(max, accumulate(false, (x, x), f, larger));
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

#[inline(always)]
fn task_slice<T>(x: &[T], i: usize, len: usize) -> &[T] {
    &x[i * GRAIN..][..len]
}

/// Splits `n` elements into tasks, and returns the sum of `body(task, len, prefetch)` over all
/// tasks, added in task order. `bytes` is the total size of the operands, from which `prefetch`
/// follows.
#[inline]
fn sum_tasks<A: Element + Float>(
    workers: &Workers,
    (n, bytes): (usize, usize),
    body: impl Fn(usize, usize, bool) -> A + Send + Sync,
) -> A {
    if n <= GRAIN { body(0, n, false) } else { sum_many_tasks(workers, (n, bytes), body) }
}

/// Runs [`sum_tasks`] for operands longer than one task. `sum_many_tasks` is not inlined, so that
/// short sums need not save the registers that it uses.
#[inline(never)]
fn sum_many_tasks<A: Element + Float>(
    workers: &Workers,
    (n, bytes): (usize, usize),
    body: impl Fn(usize, usize, bool) -> A + Send + Sync,
) -> A {
    let tasks = n.div_ceil(GRAIN);
    let prefetch = Residence::of(bytes, workers.count()).prefetches_reads();
    let task = |i| body(i, GRAIN.min(n - i * GRAIN), prefetch);
    if workers.count() == 1 {
        return (0..tasks).fold(A::zero(), |sum, i| sum + task(i));
    }
    workers.map(tasks, task).into_iter().fold(A::zero(), |sum, part| sum + part)
}

/// Returns the sum of `f(fma, sum, xᵢ, yᵢ)` over all elements of `x` and `y`, which have `bytes` bytes
/// in total.
#[inline(always)]
fn sum_wide<A: Element + Float>(
    workers: &Workers,
    bytes: usize,
    x: &[A],
    y: &[A],
    f: impl Fn(FmaMode, A, A, A) -> A + Copy + Send + Sync,
) -> A {
    if x.len() <= GRAIN {
        sum_slices(false, x, y, f)
    } else {
        sum_wide_tasks(workers, bytes, x, y, f)
    }
}

/// Runs [`sum_wide`] for operands longer than one task. `sum_wide_tasks` is not inlined, so that
/// short sums need not save the registers that it uses.
#[inline(never)]
fn sum_wide_tasks<A: Element + Float>(
    workers: &Workers,
    bytes: usize,
    x: &[A],
    y: &[A],
    f: impl Fn(FmaMode, A, A, A) -> A + Copy + Send + Sync,
) -> A {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32
        && alternates_places(bytes)
        && x.len() / PAIR >= workers.count()
        && let Some(sum) = sum_pairs_of_tasks(workers, x, y, f)
    {
        return sum;
    }
    sum_many_tasks(workers, (x.len(), bytes), |i, len, prefetch| {
        sum_slices(prefetch, task_slice(x, i, len), task_slice(y, i, len), f)
    })
}

/// Number of elements of two tasks.
#[cfg(target_arch = "x86_64")]
const PAIR: usize = 2 * GRAIN;

/// Computes the sums of two tasks in alternation. Returns the sum that [`sum_tasks`] returns, or
/// `None` at SIMD levels that have no such loop, and if the level has not been detected yet.
#[cfg(target_arch = "x86_64")]
fn sum_pairs_of_tasks<A: Element + Float>(
    workers: &Workers,
    x: &[A],
    y: &[A],
    f: impl Fn(FmaMode, A, A, A) -> A + Copy + Send + Sync,
) -> Option<A> {
    if !x86::has_alternating_sums() {
        return None;
    }
    let pair = |i: usize| {
        let range = i * PAIR..x.len().min((i + 1) * PAIR);
        let sums = x86::alternating_sums(
            GRAIN.min(range.len()),
            cast_slice(&x[range.clone()]),
            cast_slice(&y[range]),
            #[inline(always)]
            |sum, x, y| cast(f(FmaMode::Hardware, cast(sum), cast(x), cast(y))),
        );
        sums.map(|sums| sums.map(|sum| cast::<f32, A>(sum) + A::zero()))
    };
    let sums = workers.map(x.len().div_ceil(PAIR), pair);
    let sums: Option<Vec<_>> = sums.into_iter().collect();
    Some(sums?.into_iter().flatten().fold(A::zero(), |sum, part| sum + part))
}

/// Accumulates `f(fma, sum, xᵢ, xᵢ)` over all elements of `x`.
#[inline(always)]
fn sum_elements<T: Element>(
    workers: &Workers,
    x: &[T],
    f: impl Fn(FmaMode, T::Acc, T::Acc, T::Acc) -> T::Acc + Copy + Send + Sync,
) -> T::Acc {
    if const { is_wide::<T>() } {
        return sum_wide(workers, size_of_val(x), cast_slice(x), cast_slice(x), f);
    }
    sum_tasks(workers, (x.len(), size_of_val(x)), |i, len, _| {
        let x = task_slice(x, i, len);
        let mut buffer = accumulator_buffer();
        let mut sum = T::Acc::zero();
        for x in x.chunks(CHUNK) {
            let x = widened(x, &mut buffer);
            sum = sum + sum_slices(false, x, x, f);
        }
        sum
    })
}

/// Accumulates `f(fma, sum, xᵢ, yᵢ)` over all elements of `x` and `y`, which are equally long.
/// `f(fma, sum, 0, 0)` must return `sum`, but may change the sign of a zero. `sum_slices`
/// prefetches `x` if `prefetch` is true.
#[inline(always)]
fn sum_slices<A: Element + Float>(
    prefetch: bool,
    x: &[A],
    y: &[A],
    f: impl Fn(FmaMode, A, A, A) -> A + Copy,
) -> A {
    // Add 0 to turn −0 into 0, because the sign of a zero sum otherwise depends on where zeros pad
    // the operands.
    sum_slices_signed(prefetch, x, y, f) + A::zero()
}

/// Like [`sum_slices`], but a zero result may have either sign.
#[inline(always)]
fn sum_slices_signed<A: Element + Float>(
    prefetch: bool,
    x: &[A],
    y: &[A],
    f: impl Fn(FmaMode, A, A, A) -> A + Copy,
) -> A {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 {
        let sum = x86::sum(
            prefetch,
            cast_slice(x),
            cast_slice(y),
            #[inline(always)]
            |sum, x, y| cast(f(FmaMode::Hardware, cast(sum), cast(x), cast(y))),
        );
        return match sum {
            Some(sum) => cast(sum),
            None => call_outlined(move || sum_portable(prefetch, x, y, f)),
        };
    }
    sum_portable(prefetch, x, y, f)
}

#[inline(always)]
fn sum_portable<A: Element + Float>(
    prefetch: bool,
    x: &[A],
    y: &[A],
    f: impl Fn(FmaMode, A, A, A) -> A + Copy,
) -> A {
    vectorized(
        #[inline(always)]
        |fma| {
            accumulate(
                prefetch,
                (x, y),
                #[inline(always)]
                |sum, x, y| f(fma, sum, x, y),
                |a, b| a + b,
            )
        },
    )
}

/// Accumulates `f(accumulator, xᵢ, yᵢ)` over all elements of `x` and `y`, which are equally long,
/// and combines the accumulators. Zeros pad both operands to whole blocks. `accumulate` prefetches
/// `x` if `prefetch` is true.
///
/// Element `i` belongs to accumulator `i` modulo the number of accumulators. If the first
/// `peel_len` elements are peeled to align the loads, the assignment of elements to accumulators is
/// rotated by `peel_len`. Rotating the accumulators only swaps operands of the tree reduction, so
/// results are bit-identical for any alignment.
#[inline(always)]
fn accumulate<A: Element + Float>(
    prefetch: bool,
    (x, y): (&[A], &[A]),
    f: impl Fn(A, A, A) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let mut sums = [[A::zero(); LANES]; ACCUMULATOR_ROWS];
    let peel_len = load_peel_len(x);
    if peel_len == 0 && !prefetch {
        return reduce(accumulate_blocks::<_, false>(sums, x, y, f), combine);
    }
    let ((head_x, x), (head_y, y)) = (x.split_at(peel_len), y.split_at(peel_len));
    if peel_len > 0 {
        sums = accumulate_block(sums, &zero_padded_front(head_x), &zero_padded_front(head_y), &f);
    }
    reduce(accumulate_blocks::<_, true>(sums, x, y, f), combine)
}

/// Accumulates all pairs of elements of `x` and `y`, in blocks of [`BLOCK`] pairs. Prefetches `x`
/// if `PREFETCH` is true.
#[inline(always)]
fn accumulate_blocks<A: Element, const PREFETCH: bool>(
    mut sums: [[A; LANES]; ACCUMULATOR_ROWS],
    x: &[A],
    y: &[A],
    f: impl Fn(A, A, A) -> A,
) -> [[A; LANES]; ACCUMULATOR_ROWS] {
    let ((x, rest_x), (y, rest_y)) = (x.as_chunks(), y.as_chunks());
    for (x, y) in x.iter().zip(y) {
        if PREFETCH {
            prefetch_after(x);
        }
        sums = accumulate_block(sums, x, y, &f);
    }
    if !rest_x.is_empty() {
        sums = accumulate_block(sums, &zero_padded(rest_x), &zero_padded(rest_y), &f);
    }
    sums
}

/// Number of pairs of elements in a block: one pair for each accumulator.
const BLOCK: usize = LANES * ACCUMULATOR_ROWS;

/// Returns `head`, padded with leading zeros to a whole block.
#[inline(always)]
fn zero_padded_front<A: Element>(head: &[A]) -> [A; BLOCK] {
    let mut block = [A::default(); BLOCK];
    block[BLOCK - head.len()..].copy_from_slice(head);
    block
}

/// Accumulates one pair of elements of `x` and `y` in each accumulator. `accumulate_block` takes
/// and returns the accumulators by value, so that they stay in registers.
#[inline(always)]
fn accumulate_block<A: Element>(
    mut sums: [[A; LANES]; ACCUMULATOR_ROWS],
    x: &[A; BLOCK],
    y: &[A; BLOCK],
    f: impl Fn(A, A, A) -> A,
) -> [[A; LANES]; ACCUMULATOR_ROWS] {
    for i in 0..LANES {
        sums[0][i] = f(sums[0][i], x[i], y[i]);
        sums[1][i] = f(sums[1][i], x[LANES + i], y[LANES + i]);
        sums[2][i] = f(sums[2][i], x[2 * LANES + i], y[2 * LANES + i]);
        sums[3][i] = f(sums[3][i], x[3 * LANES + i], y[3 * LANES + i]);
    }
    sums
}

/// Reduces all accumulators in a tree: each round combines the lower half with the upper half.
#[inline(always)]
fn reduce<A: Element>(sums: [[A; LANES]; ACCUMULATOR_ROWS], combine: impl Fn(A, A) -> A) -> A {
    let [mut a, b, c, d] = sums;
    for i in 0..LANES {
        a[i] = combine(combine(a[i], c[i]), combine(b[i], d[i]));
    }
    reduce_lanes(a, combine)
}

/// Returns the larger of two values, or the first of the two that is NaN.
#[inline(always)]
fn larger<A: Float>(a: A, b: A) -> A {
    if a >= b || a.is_nan() { a } else { b }
}

#[cfg(test)]
mod tests;

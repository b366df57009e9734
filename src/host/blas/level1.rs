//! BLAS level 1: copies, updates and sums of vectors.
//!
//! Sums divide a vector into tasks of [`GRAIN`] elements. The order of additions is fixed: each
//! task adds elements in [`LANES`] × [`ACCUMULATOR_ROWS`] accumulators, and a tree reduction adds the
//! accumulators. The sums of the tasks are added in task order. The portable loop [`accumulate`]
//! defines the order of additions. For `f32` with AVX-512 or AVX2, loops of
//! [`x86::level1`](crate::host::blas::x86::level1), whose results are bit-identical, replace
//! `accumulate`.

#[cfg(target_arch = "x86_64")]
use crate::cast::cast;
use crate::cast::{cast_slice, cast_slice_mut};
#[cfg(target_arch = "x86_64")]
use crate::{element::DType, host::blas::x86::level1 as x86};
use crate::{
    element::Element,
    error::{Result, check_len, check_min_len},
    host::{
        cache::{
            cache_line::{
                CHUNK_ALIGN, load_peel_len, prefetch_after, with_aligned_stores, with_prefetch,
                zip_with_aligned_stores, zip_with_prefetch,
            },
            nontemporal::{bypasses_cache, copy_nontemporal},
            residence::Residence,
        },
        reduction::tree::{ACCUMULATOR_ROWS, LANES, reduce_lanes, zero_padded},
        simd::{
            accumulator::{
                CHUNK, accumulator_buffer, is_wide, overwrite_widened, update_widened, widened,
            },
            fma::FmaMode,
            vectorized,
        },
        threads::Workers,
    },
};
use num_traits::{Float, Zero};

/// Number of elements that one task of a sum processes, and the least number for a task of `scal`.
/// The number does not depend on the number of threads, so the order of additions does not either.
const GRAIN: usize = 1 << 17;

/// Smallest number of elements that one task of a copy, `axpy` or `axpby` processes. On Zen 4, a
/// second thread that is awake shortens `axpy` of 65,536 elements from 4.8 to 3.0 µs, or saves
/// nothing in some runs (decision 53).
const PAIR_GRAIN: usize = 1 << 15;

/// `y ← x`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_copy")]
pub(crate) fn copy<T: Element>(workers: &Workers, x: &[T], y: &mut [T]) -> Result<()> {
    check_len("copy", "y", x.len(), y.len())?;
    if y.len() <= PAIR_GRAIN {
        y.copy_from_slice(x)
    } else {
        copy_tasks(workers, x, y)
    }
    Ok(())
}

/// Runs [`copy`] for operands longer than one task. `copy_tasks` is not inlined, so that short
/// copies need not save the registers that it uses.
#[inline(never)]
fn copy_tasks<T: Element>(workers: &Workers, x: &[T], y: &mut [T]) {
    let nontemporal = bypasses_cache(2 * size_of_val(y), workers.count());
    let task = workers.even_chunk_len(y.len(), PAIR_GRAIN, CHUNK_ALIGN);
    workers.for_each_chunk(y, task, |i, y| {
        let x = &x[i * task..][..y.len()];
        if nontemporal { copy_nontemporal(x, y) } else { y.copy_from_slice(x) }
    });
}

/// `x ← α·x`.
#[doc(alias = "caffe_scal")]
pub(crate) fn scal<T: Element>(workers: &Workers, alpha: T::Acc, x: &mut [T]) -> Result<()> {
    if const { is_wide::<T>() } && x.len() <= GRAIN {
        scale_slice(false, alpha, cast_slice_mut(x));
    } else {
        scale_tasks(workers, alpha, x);
    }
    Ok(())
}

/// Runs [`scal`] for operands that are longer than one task or have 16-bit elements. `scale_tasks`
/// is not inlined, so that short calls need not save the registers that it uses.
#[inline(never)]
fn scale_tasks<T: Element>(workers: &Workers, alpha: T::Acc, x: &mut [T]) {
    let prefetch = Residence::of(size_of_val(x), workers.count()).prefetches_updates();
    let task = workers.even_chunk_len(x.len(), GRAIN, CHUNK_ALIGN);
    workers.for_each_chunk(x, task, |_, x| {
        if const { is_wide::<T>() } {
            return scale_slice(prefetch, alpha, cast_slice_mut(x));
        }
        let mut buffer = accumulator_buffer();
        for x in x.chunks_mut(CHUNK) {
            update_widened(x, &mut buffer, |x| {
                vectorized(
                    #[inline(always)]
                    |_| scale(alpha, x),
                );
            });
        }
    });
}

/// `x ← α·x`, with software prefetch if `prefetch` is true.
#[inline(always)]
fn scale_slice<A: Element + Float>(prefetch: bool, alpha: A, x: &mut [A]) {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 {
        let is_done = x86::update_in_place(
            prefetch,
            cast_slice_mut(x),
            #[inline(always)]
            move |x| cast(alpha * cast::<f32, A>(x)),
        );
        if !is_done {
            call_outlined(move || scale_portable(prefetch, alpha, x));
        }
        return;
    }
    scale_portable(prefetch, alpha, x);
}

#[inline(always)]
fn scale_portable<A: Element + Float>(prefetch: bool, alpha: A, x: &mut [A]) {
    vectorized(
        #[inline(always)]
        |_| {
            if prefetch {
                return with_prefetch(
                    x,
                    #[inline(always)]
                    |x| scale(alpha, x),
                );
            }
            with_aligned_stores(
                x,
                #[inline(always)]
                |x| scale(alpha, x),
            );
        },
    );
}

#[inline(always)]
fn scale<A: Element + Float>(alpha: A, x: &mut [A]) {
    for x in x {
        *x = alpha * *x;
    }
}

/// `y ← α·x + y`. For `f32`, each element of `y` is computed with a single rounding.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_axpy")]
pub(crate) fn axpy<T: Element>(
    workers: &Workers,
    alpha: T::Acc,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    check_len("axpy", "y", x.len(), y.len())?;
    update_pairs(
        workers,
        true,
        (x, y),
        #[inline(always)]
        move |fma, x, y| fma.mul_add(alpha, x, y),
    );
    Ok(())
}

/// `y ← α·x + β·y`. `y` is not read if β = 0.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_cpu_axpby")]
pub(crate) fn axpby<T: Element>(
    workers: &Workers,
    alpha: T::Acc,
    x: &[T],
    beta: T::Acc,
    y: &mut [T],
) -> Result<()> {
    check_len("axpby", "y", x.len(), y.len())?;
    if beta.is_zero() {
        update_pairs(
            workers,
            false,
            (x, y),
            #[inline(always)]
            move |_, x, _| alpha * x,
        );
    } else {
        update_pairs(
            workers,
            true,
            (x, y),
            #[inline(always)]
            move |fma, x, y| fma.mul_add(alpha, x, beta * y),
        );
    }
    Ok(())
}

/// Returns `Σ xᵢ·yᵢ`, accumulated in `T::Acc`. Products of `f32` are not rounded before the
/// addition.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `y` is as long as `x`.
#[doc(alias = "caffe_cpu_dot")]
pub(crate) fn dot<T: Element>(workers: &Workers, x: &[T], y: &[T]) -> Result<T::Acc> {
    check_len("dot", "y", x.len(), y.len())?;
    let f = |fma: FmaMode, sum, x, y| fma.mul_add(x, y, sum);
    if const { is_wide::<T>() } && x.len() <= GRAIN {
        return Ok(sum_slices(false, cast_slice(x), cast_slice(y), f));
    }
    Ok(sum_tasks(workers, (x.len(), 2 * size_of_val(x)), |i, len, prefetch| {
        let (x, y) = (task_slice(x, i, len), task_slice(y, i, len));
        if const { is_wide::<T>() } {
            return sum_slices(prefetch, cast_slice(x), cast_slice(y), f);
        }
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

/// `yᵢ ← f(fma, xᵢ, yᵢ)` for slices of equal length. `f` ignores `yᵢ` if `reads_y` is false.
#[inline(always)]
fn update_pairs<T: Element>(
    workers: &Workers,
    reads_y: bool,
    (x, y): (&[T], &mut [T]),
    f: impl Fn(FmaMode, T::Acc, T::Acc) -> T::Acc + Copy + Send + Sync,
) {
    if const { is_wide::<T>() } && y.len() <= PAIR_GRAIN {
        update_wide(false, cast_slice(x), cast_slice_mut(y), f);
    } else {
        update_tasks(workers, reads_y, (x, y), f);
    }
}

/// Runs [`update_pairs`] for operands that are longer than one task or have 16-bit elements.
/// `update_tasks` is not inlined, so that short updates need not save the registers that it uses.
#[inline(never)]
fn update_tasks<T: Element>(
    workers: &Workers,
    reads_y: bool,
    (x, y): (&[T], &mut [T]),
    f: impl Fn(FmaMode, T::Acc, T::Acc) -> T::Acc + Copy + Send + Sync,
) {
    let residence = Residence::of(2 * size_of_val(y), workers.count());
    let task = workers.even_chunk_len(y.len(), PAIR_GRAIN, CHUNK_ALIGN);
    workers.for_each_chunk(y, task, |i, y| {
        let x = &x[i * task..][..y.len()];
        if const { is_wide::<T>() } {
            let prefetch = residence.prefetches_updates();
            return update_wide(prefetch, cast_slice(x), cast_slice_mut(y), f);
        }
        let (mut buffer_x, mut buffer_y) = (accumulator_buffer(), accumulator_buffer());
        for (x, y) in x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)) {
            let x = widened(x, &mut buffer_x);
            let body = |y: &mut [T::Acc]| {
                vectorized(
                    #[inline(always)]
                    move |fma| update_slice(fma, x, y, f),
                );
            };
            if reads_y {
                update_widened(y, &mut buffer_y, body);
            } else {
                overwrite_widened(y, &mut buffer_y, body);
            }
        }
    });
}

/// `yᵢ ← f(fma, xᵢ, yᵢ)`, with software prefetch if `prefetch` is true.
#[inline(always)]
fn update_wide<A: Element>(
    prefetch: bool,
    x: &[A],
    y: &mut [A],
    f: impl Fn(FmaMode, A, A) -> A + Copy,
) {
    #[cfg(target_arch = "x86_64")]
    if A::DTYPE == DType::F32 {
        let is_done = x86::update(
            prefetch,
            cast_slice(x),
            cast_slice_mut(y),
            #[inline(always)]
            move |x, y| cast(f(FmaMode::Hardware, cast(x), cast(y))),
        );
        if !is_done {
            call_outlined(move || update_portable(prefetch, x, y, f));
        }
        return;
    }
    update_portable(prefetch, x, y, f);
}

#[inline(always)]
fn update_portable<A: Element>(
    prefetch: bool,
    x: &[A],
    y: &mut [A],
    f: impl Fn(FmaMode, A, A) -> A + Copy,
) {
    vectorized(
        #[inline(always)]
        move |fma| {
            if prefetch {
                return zip_with_prefetch(
                    x,
                    y,
                    #[inline(always)]
                    move |x, y| update_slice(fma, x, y, f),
                );
            }
            zip_with_aligned_stores(
                x,
                y,
                #[inline(always)]
                move |x, y| update_slice(fma, x, y, f),
            );
        },
    );
}

#[inline(always)]
fn update_slice<A: Element>(fma: FmaMode, x: &[A], y: &mut [A], f: impl Fn(FmaMode, A, A) -> A) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f(fma, x, *y);
    }
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

/// Accumulates `f(fma, sum, xᵢ, xᵢ)` over all elements of `x`.
#[inline(always)]
fn sum_elements<T: Element>(
    workers: &Workers,
    x: &[T],
    f: impl Fn(FmaMode, T::Acc, T::Acc, T::Acc) -> T::Acc + Copy + Send + Sync,
) -> T::Acc {
    if const { is_wide::<T>() } && x.len() <= GRAIN {
        return sum_slices(false, cast_slice(x), cast_slice(x), f);
    }
    sum_tasks(workers, (x.len(), size_of_val(x)), |i, len, prefetch| {
        let x = task_slice(x, i, len);
        if const { is_wide::<T>() } {
            return sum_slices::<T::Acc>(prefetch, cast_slice(x), cast_slice(x), f);
        }
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

/// Calls `kernel` in a function that is not inlined, so that the caller does not save the registers
/// that `kernel` uses.
#[cfg(target_arch = "x86_64")]
#[cold]
#[inline(never)]
fn call_outlined<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
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

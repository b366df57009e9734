//! BLAS level 1: copies and updates of vectors.
//!
//! The portable loops define the results. For `f32` with AVX-512 or AVX2, loops of
//! [`x86::level1`](crate::host::blas::x86::level1), whose results are bit-identical, replace them.

#[cfg(target_arch = "x86_64")]
use crate::cast::cast;
use crate::cast::{cast_slice, cast_slice_mut};
#[cfg(target_arch = "x86_64")]
use crate::{
    element::DType,
    host::{blas::x86::level1 as x86, simd::level::call_outlined},
};
use crate::{
    element::Element,
    error::{Result, check_len},
    host::{
        cache::{
            cache_line::{
                CHUNK_ALIGN, alternating_ranges, with_aligned_stores, with_prefetch,
                zip_with_aligned_stores, zip_with_prefetch,
            },
            nontemporal::{bypasses_cache, copy_nontemporal},
            residence::{Residence, alternates_places},
        },
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

/// Smallest number of elements that one task of `scal` processes.
const SCAL_GRAIN: usize = 1 << 17;

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
    if const { is_wide::<T>() } && x.len() <= SCAL_GRAIN {
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
    if const { is_wide::<T>() } && in_two_places(workers, size_of_val(x)) {
        return scale_in_two_places(alpha, cast_slice_mut(x));
    }
    let prefetch = Residence::of(size_of_val(x), workers.count()).prefetches_updates();
    let task = workers.even_chunk_len(x.len(), SCAL_GRAIN, CHUNK_ALIGN);
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

/// Returns whether an update of operands of `bytes` bytes in total is faster in two places in turn.
/// Two threads are faster in one place each (decision 63).
fn in_two_places(workers: &Workers, bytes: usize) -> bool {
    workers.count() == 1 && alternates_places(bytes)
}

/// `x ← α·x`, in two places in turn.
fn scale_in_two_places<A: Element + Float>(alpha: A, x: &mut [A]) {
    alternating_ranges(x).for_each(|range| scale_slice(false, alpha, &mut x[range]));
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
    let bytes = 2 * size_of_val(y);
    if const { is_wide::<T>() } && in_two_places(workers, bytes) {
        return update_in_two_places(cast_slice(x), cast_slice_mut(y), f);
    }
    let prefetch = Residence::of(bytes, workers.count()).prefetches_updates();
    let task = workers.even_chunk_len(y.len(), PAIR_GRAIN, CHUNK_ALIGN);
    workers.for_each_chunk(y, task, |i, y| {
        let x = &x[i * task..][..y.len()];
        if const { is_wide::<T>() } {
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

/// `yᵢ ← f(fma, xᵢ, yᵢ)`, in two places in turn.
fn update_in_two_places<A: Element>(x: &[A], y: &mut [A], f: impl Fn(FmaMode, A, A) -> A + Copy) {
    for range in alternating_ranges(y) {
        update_wide(false, &x[range.clone()], &mut y[range], f);
    }
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

#[cfg(test)]
mod tests;

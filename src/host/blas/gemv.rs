//! GEMV: matrix-vector products.
//!
//! GEMV is memory-bound, because it reads each element of `A` once. GEMV packs no operand, and
//! widens 16-bit elements in chunks.
//!
//! - [`gemv_transposed`] handles `f32` and `f64` if `A` is transposed and exceeds L1, and if the
//!   rows of `A` have at least 1 KiB.
//! - The unpacked GEMM kernels handle `f32` and `f64` in all other cases.
//! - [`dot_rows`] and [`add_rows`], compiled for each SIMD level, handle `f16` and `bf16`.

use crate::{
    element::Element,
    error::Result,
    host::{
        blas::{gemv_transposed, kernel::unpacked::row_times_matrix},
        cache::scratch::with_scratch,
        reduction::tree::{LANES, reduce_lanes, zero_padded},
        simd::{
            accumulator::{
                CHUNK, accumulator_buffer, accumulator_len, is_wide, overwrite_widened,
                update_widened, widened,
            },
            vectorized,
        },
        threads::Workers,
    },
    op::{Gemv, Transpose},
};
use num_traits::{Float, Zero};

/// Number of rows of a 16-bit `A` that are multiplied by `x` at a time.
const ROWS: usize = 4;

/// Number of elements of `A` in one task, chosen so that a second thread pays off.
const GRAIN: usize = 1 << 17;

/// Computes `y ← α·op(A)·x + β·y`. `y` is not read if β = 0; `A` and `x` are not read if α = 0.
///
/// # Errors
/// Returns any error from [`Gemv::check`].
#[doc(alias = "caffe_cpu_gemv")]
pub(crate) fn gemv<T: Element>(
    workers: &Workers,
    op: &Gemv<T>,
    a: &[T],
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check(a.len(), x.len(), y.len())?;
    if op.alpha.is_zero() || x.is_empty() {
        let mut buffer = accumulator_buffer();
        y.chunks_mut(CHUNK).for_each(|y| write_back(op, y, &mut buffer, |_| T::Acc::zero()));
        return Ok(());
    }
    if const { is_wide::<T>() } {
        // The unpacked GEMM kernels read a transposed `A` one block of columns at a time, which is
        // slow if `A` exceeds L1.
        let is_transposed = op.trans == Transpose::Yes;
        if is_transposed && gemv_transposed::adding_rows_is_faster::<T>(op.m, op.n) {
            gemv_transposed::add_rows(workers, (op.alpha, op.beta), (a, op.lda), x, y);
        } else {
            gemv_unpacked(workers, op, a, x, y);
        }
        return Ok(());
    }
    match op.trans {
        Transpose::No => with_scratch(accumulator_len::<T>(x.len()), |scratch| {
            let x = widened(x, scratch);
            // The order of additions in the dot product of a row is fixed, so results do not depend
            // on the task size.
            let rows = (GRAIN / x.len()).next_multiple_of(ROWS).max(ROWS);
            workers.for_each_chunk(y, rows, |task, y| {
                let a = &a[task * rows * op.lda..];
                vectorized(
                    #[inline(always)]
                    |_| dot_rows(op, a, x, y),
                );
            });
        }),
        Transpose::Yes => with_scratch(accumulator_len::<T>(x.len()), |scratch| {
            let x = widened(x, scratch);
            let columns = (GRAIN / x.len()).next_multiple_of(CHUNK).max(CHUNK);
            workers.for_each_chunk(y, columns, |task, y| {
                vectorized(
                    #[inline(always)]
                    |_| add_rows(op, &a[task * columns..], x, y),
                );
            });
        }),
    }
    Ok(())
}

/// Computes `yᵀ ← α·xᵀ·op(A)ᵀ + β·yᵀ` with the unpacked GEMM kernels.
fn gemv_unpacked<T: Element>(workers: &Workers, op: &Gemv<T>, a: &[T], x: &[T], y: &mut [T]) {
    let (trans, stride) = match op.trans {
        Transpose::No => (Transpose::Yes, op.lda),
        Transpose::Yes => (Transpose::No, 1),
    };
    let task = (GRAIN / x.len()).next_multiple_of(CHUNK / 4).max(CHUNK / 4);
    workers.for_each_chunk(y, task, |i, y| {
        row_times_matrix((op.alpha, op.beta), x, (trans, &a[i * task * stride..], op.lda), y);
    });
}

/// Writes `yᵢ ← α·sum(i) + β·yᵢ` for at most [`CHUNK`] elements.
#[inline(always)]
fn write_back<T: Element>(
    op: &Gemv<T>,
    y: &mut [T],
    buffer: &mut [T::Acc],
    sum: impl Fn(usize) -> T::Acc,
) {
    let (alpha, beta) = (op.alpha, op.beta);
    if beta.is_zero() {
        overwrite_widened(y, buffer, |y| {
            y.iter_mut().enumerate().for_each(|(i, y)| *y = alpha * sum(i))
        });
    } else {
        let body = |(i, y): (usize, &mut T::Acc)| *y = alpha * sum(i) + beta * *y;
        update_widened(y, buffer, |y| y.iter_mut().enumerate().for_each(body));
    }
}

/// Computes one element of `y` for each row of `a`: the dot product of the row and `x`, in chunks
/// of [`CHUNK`] elements.
#[inline(always)]
fn dot_rows<T: Element>(op: &Gemv<T>, a: &[T], x: &[T::Acc], y: &mut [T]) {
    let mut buffers: [_; ROWS] = [accumulator_buffer::<T::Acc>(); ROWS];
    for (group, y) in y.chunks_mut(ROWS).enumerate() {
        let mut sums = [T::Acc::zero(); ROWS];
        for (block, x) in x.chunks(CHUNK).enumerate() {
            // Repeat the last row to fill an incomplete group of rows.
            let [r0, r1, r2, r3] = &mut buffers;
            let row = |i: usize| {
                let i = group * ROWS + i.min(y.len() - 1);
                &a[i * op.lda + block * CHUNK..][..x.len()]
            };
            let rows = [
                widened(row(0), r0),
                widened(row(1), r1),
                widened(row(2), r2),
                widened(row(3), r3),
            ];
            let dot_products = dot_four(rows, x);
            sums.iter_mut().zip(dot_products).for_each(|(sum, dot)| *sum = *sum + dot);
        }
        write_back(op, y, &mut [T::Acc::zero(); ROWS], |i| sums[i]);
    }
}

/// Returns the dot products of four rows with `x`. All rows are as long as `x`.
#[inline(always)]
fn dot_four<A: Element + Float>(rows: [&[A]; ROWS], x: &[A]) -> [A; ROWS] {
    let (chunks, rest) = x.as_chunks();
    let [(a, rest_a), (b, rest_b), (c, rest_c), (d, rest_d)] = rows.map(|row| row.as_chunks());
    let mut lanes = [[A::zero(); LANES]; ROWS];
    for ((((x, a), b), c), d) in chunks.iter().zip(a).zip(b).zip(c).zip(d) {
        lanes = accumulate(lanes, [a, b, c, d], x);
    }
    if !rest.is_empty() {
        let [a, b, c, d] = [rest_a, rest_b, rest_c, rest_d].map(zero_padded);
        lanes = accumulate(lanes, [&a, &b, &c, &d], &zero_padded(rest));
    }
    lanes.map(|lanes| reduce_lanes(lanes, |a, b| a + b))
}

/// Adds to each accumulator the product of one element of a row and one element of `x`.
/// Accumulators passed by value stay in registers.
#[inline(always)]
fn accumulate<A: Element + Float>(
    mut lanes: [[A; LANES]; ROWS],
    [a, b, c, d]: [&[A; LANES]; ROWS],
    x: &[A; LANES],
) -> [[A; LANES]; ROWS] {
    for i in 0..LANES {
        lanes[0][i] = lanes[0][i] + a[i] * x[i];
        lanes[1][i] = lanes[1][i] + b[i] * x[i];
        lanes[2][i] = lanes[2][i] + c[i] * x[i];
        lanes[3][i] = lanes[3][i] + d[i] * x[i];
    }
    lanes
}

/// Computes one element of `y` for each column of `a`: adds the rows of `a`, multiplied by the
/// elements of `x`, four rows at a time.
#[inline(always)]
fn add_rows<T: Element>(op: &Gemv<T>, a: &[T], x: &[T::Acc], y: &mut [T]) {
    let mut buffers: [_; ROWS] = [accumulator_buffer::<T::Acc>(); ROWS];
    let mut buffer = accumulator_buffer();
    for (block, y) in y.chunks_mut(CHUNK).enumerate() {
        let mut sums = accumulator_buffer::<T::Acc>();
        let sums = &mut sums[..y.len()];
        for (group, x) in x.chunks(ROWS).enumerate() {
            let [r0, r1, r2, r3] = &mut buffers;
            let row = |i: usize| {
                let i = group * ROWS + i.min(x.len() - 1);
                &a[i * op.lda + block * CHUNK..][..y.len()]
            };
            if x.len() == ROWS {
                let rows = [
                    widened(row(0), r0),
                    widened(row(1), r1),
                    widened(row(2), r2),
                    widened(row(3), r3),
                ];
                add_four(rows, [x[0], x[1], x[2], x[3]], sums);
            } else {
                for (i, &x) in x.iter().enumerate() {
                    let row = widened(row(i), r0);
                    sums.iter_mut().zip(row).for_each(|(sum, &a)| *sum = *sum + a * x);
                }
            }
        }
        let sums = &*sums;
        write_back(op, y, &mut buffer, |i| sums[i]);
    }
}

/// Computes `sums ← sums + Σ xᵢ·rowᵢ`, where each row is as long as `sums`.
#[inline(always)]
fn add_four<A: Element + Float>(rows: [&[A]; ROWS], x: [A; ROWS], sums: &mut [A]) {
    let [a, b, c, d] = rows;
    for ((((sum, &a), &b), &c), &d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *sum = *sum + ((a * x[0] + b * x[1]) + (c * x[2] + d * x[3]));
    }
}

#[cfg(test)]
mod tests;

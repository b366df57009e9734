//! Transposed GEMV `Aᵀ·x` for matrices that exceed L1: the kernel adds multiples of the rows of `A`
//! to a vector of sums.
//!
//! With AVX-512, the kernel reads 1 KiB of a row of `A`, then 1 KiB of the next row, and so on for
//! eight rows. The sums of these columns stay in registers. If a loop reads 16 consecutive cache
//! lines of each row, the hardware prefetcher of Zen 5 fills L1 from L2 at twice the rate of 4 or 8
//! consecutive cache lines (decision 48). In a small L1 cache, the kernel adds only four rows at a
//! time (decision 56).
//!
//! Each sum is one chain of fused multiply-adds in the order of the rows, so results are
//! bit-identical for any number of threads and at all SIMD levels with FMA.

use crate::cast::{cast_slice, cast_slice_mut};
use crate::{
    element::{Element, is_same},
    host::{
        cache::{
            cache_line::{
                CACHE_LINE, CHUNK_ALIGN, L1_ALIAS_BYTES, PREFETCH_DISTANCE, prefetch, prefetch_l2,
            },
            residence::{Residence, is_amd, is_amd_with_small_l1},
            scratch::with_scratch,
        },
        simd::{
            dispatch::{SimdKernel, SimdScalar},
            fma::FmaMode,
            level::SimdLevel,
            vector::SimdVector,
            vectorized,
        },
        threads::Workers,
    },
};

/// Size in bytes of a block of sums that stays in L1 while all rows are added to the block.
const SUMS_BYTES: usize = 32 << 10;

/// Number of rows of `A` whose multiples are added to the sums at a time.
const ROWS: usize = 8;

/// Like [`ROWS`], but in a small L1 cache ([`is_amd_with_small_l1`]), which cannot hold eight rows
/// that are a multiple of 4 KiB apart and also the sums (decision 56).
const SMALL_L1_ROWS: usize = 4;

/// Like [`ROWS`], but at the portable SIMD levels.
const PORTABLE_ROWS: usize = 4;

/// Number of elements of `A` in one task, chosen so that a second thread pays off.
const GRAIN: usize = 1 << 17;

/// Smallest size in bytes of `A` at which adding rows was faster than the unpacked GEMM kernels.
const MIN_MATRIX_BYTES: usize = 32 << 10;

/// Smallest size in bytes of a row of `A` for which [`add_rows`] is used: the number of bytes of a
/// row that the AVX-512 kernel reads at a time.
const MIN_ROW_BYTES: usize = 1 << 10;

/// Elements of `A` that the kernel prefetches.
#[derive(Clone, Copy, PartialEq)]
enum RowPrefetch {
    /// The same rows, [`PREFETCH_DISTANCE`] bytes later.
    SameRows,
    /// The first cache line of each of the next rows. If rows are long, these cache lines are in
    /// new pages.
    FirstLines,
    /// The same columns of the next rows, into L2.
    NextRows,
}

/// Returns whether [`add_rows`] is faster than the unpacked GEMM kernels for the product of a
/// transposed m×n matrix.
pub(crate) fn adding_rows_is_faster<T>(m: usize, n: usize) -> bool {
    let row_bytes = n * size_of::<T>();
    row_bytes >= MIN_ROW_BYTES && m.saturating_mul(row_bytes) > MIN_MATRIX_BYTES
}

/// Computes `y ← α·Aᵀ·x + β·y` for `f32` and `f64`, where rows of `a` are `lda` elements apart.
/// `y` is not read if β = 0. `x` and `y` must not be empty.
pub(crate) fn add_rows<T: Element>(
    workers: &Workers,
    (alpha, beta): (T::Acc, T::Acc),
    (a, lda): (&[T], usize),
    x: &[T],
    y: &mut [T],
) {
    fn run<T: Element, S: SimdScalar>(
        workers: &Workers,
        scalars: (T::Acc, T::Acc),
        (a, lda): (&[T], usize),
        x: &[T],
        y: &mut [T],
    ) {
        let scalars = (S::acc(scalars.0.to_f64()), S::acc(scalars.1.to_f64()));
        let (a, x, y) = (cast_slice(a), cast_slice(x), cast_slice_mut(y));
        add_scaled_rows::<S>(workers, scalars, (a, lda), x, y);
    }
    if const { is_same::<T, f64>() } {
        run::<T, f64>(workers, (alpha, beta), (a, lda), x, y);
    } else {
        run::<T, f32>(workers, (alpha, beta), (a, lda), x, y);
    }
}

fn add_scaled_rows<S: SimdScalar>(
    workers: &Workers,
    (alpha, beta): (S, S),
    (a, lda): (&[S], usize),
    x: &[S],
    y: &mut [S],
) {
    let block = SUMS_BYTES / size_of::<S>();
    let has_small_l1 = is_amd_with_small_l1();
    let prefetch = match Residence::of(size_of_val(a), workers.count()) {
        _ if !is_amd() => RowPrefetch::SameRows,
        // On Zen 4, prefetch of the next rows makes a matrix in memory faster, and a matrix in L3
        // slower (decision 56).
        Residence::Memory if has_small_l1 => RowPrefetch::NextRows,
        // On Zen 5, transposed GEMV is faster without software prefetch of whole rows
        // (decision 48).
        _ => RowPrefetch::FirstLines,
    };
    // Each thread runs one task, unless the tasks would be too short. A task adds multiples of
    // whole rows of `A`, or of long parts of the rows.
    let even_len = y.len().div_ceil(workers.count());
    let task = even_len.max(GRAIN / x.len()).next_multiple_of(CHUNK_ALIGN);
    workers.for_each_chunk(y, task, |i, y| {
        with_scratch((SUMS_BYTES + L1_ALIAS_BYTES) / size_of::<S>(), |scratch| {
            for (j, y) in y.chunks_mut(block).enumerate() {
                let a = &a[i * task + j * block..];
                let start = sums_offset(scratch, a);
                let sums = &mut scratch[start..][..y.len()];
                sums.fill(S::zero());
                let last_row = (x.len() - 1) * lda;
                assert!(a.len() >= last_row + sums.len(), "transposed GEMV: `a` is too short");
                // SAFETY: the assertion shows that `a` holds as many rows as `x` has elements.
                unsafe { S::dispatch(AddRows { a, lda, x, sums, has_small_l1, prefetch }) };
                let sums = &scratch[start..][..y.len()];
                vectorized(
                    #[inline(always)]
                    |_| {
                        for (y, &sum) in y.iter_mut().zip(sums) {
                            *y = if beta.is_zero() { alpha * sum } else { alpha * sum + beta * *y };
                        }
                    },
                );
            }
        });
    });
}

/// Returns the offset in `scratch` at which the sums start. Modulo 4 KiB, the sums start 2 KiB from
/// the start of `rows`, so vectors of sums and of `rows` have the same alignment. The offset avoids
/// 4K aliasing, where a load waits for an earlier store whose address has the same low 12 bits.
fn sums_offset<A>(scratch: &[A], rows: &[A]) -> usize {
    let target = rows.as_ptr().addr() + L1_ALIAS_BYTES / 2;
    target.wrapping_sub(scratch.as_ptr().addr()) % L1_ALIAS_BYTES / size_of::<A>()
}

/// Kernel that computes `sums ← sums + Aᵀ·x`.
///
/// [`SimdKernel::run`] is safe if `a` holds a row of the length of `sums` for each element of `x`.
struct AddRows<'a, S> {
    a: &'a [S],
    lda: usize,
    x: &'a [S],
    sums: &'a mut [S],
    has_small_l1: bool,
    prefetch: RowPrefetch,
}

impl<S: SimdScalar> SimdKernel<S> for AddRows<'_, S> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = S>>(self) {
        // With AVX2, whose kernel reads only 256 bytes of a row at a time, eight rows were also
        // faster in a small L1 cache if the matrix was in memory.
        let has_few_rows =
            self.has_small_l1 && (V::HAS_32_REGISTERS || self.prefetch != RowPrefetch::NextRows);
        // SAFETY: the caller meets the requirements of `add`.
        unsafe { if has_few_rows { self.add::<V, SMALL_L1_ROWS>() } else { self.add::<V, ROWS>() } }
    }

    unsafe fn run_portable(self) {
        if SimdLevel::current() == SimdLevel::WithoutFma {
            self.add_portably(|a, b, c| a * b + c);
        } else {
            self.add_portably(|a, b, c| FmaMode::BASE.fused_mul_add(a, b, c));
        }
    }
}

impl<S: SimdScalar> AddRows<'_, S> {
    /// Adds multiples of `R` rows to the sums at a time.
    ///
    /// # Safety
    /// The requirements of [`AddRows`] hold, and the processor supports the vector type `V`.
    #[inline(always)]
    unsafe fn add<V: SimdVector<Scalar = S>, const R: usize>(self) {
        let Self { a, lda, x, sums, prefetch: mode, .. } = self;
        let n = sums.len();
        // If all rows have the same offset in a cache line, add the columns before the first
        // cache-line boundary separately, so that the loads of all other columns are aligned.
        let is_same_offset = (lda * size_of::<S>()).is_multiple_of(CACHE_LINE);
        let head = if is_same_offset { a.as_ptr().align_offset(CACHE_LINE).min(n) } else { 0 };
        let (groups, rest) = x.as_chunks::<R>();
        let (mut row, sums) = (a.as_ptr(), sums.as_mut_ptr());
        for x in groups {
            if mode == RowPrefetch::FirstLines {
                (R..2 * R).for_each(
                    #[inline(always)]
                    |i| prefetch(row.wrapping_add(i * lda)),
                );
            }
            // SAFETY: the caller guarantees `R` rows of n elements from `row` on.
            unsafe { add_columns::<V, R>((row, lda), x, sums, (head, n), mode) };
            row = row.wrapping_add(R * lda);
        }
        for x in rest {
            let x = std::array::from_ref(x);
            // SAFETY: the caller guarantees a row of n elements at `row`.
            unsafe { add_columns::<V, 1>((row, lda), x, sums, (head, n), RowPrefetch::FirstLines) };
            row = row.wrapping_add(lda);
        }
    }

    #[inline(always)]
    fn add_portably(self, mul_add: impl Fn(S, S, S) -> S) {
        let Self { a, lda, x, sums, .. } = self;
        let n = sums.len();
        let row = |i: usize| &a[i * lda..][..n];
        let (groups, rest) = x.as_chunks::<PORTABLE_ROWS>();
        for (group, x) in groups.iter().enumerate() {
            let rows: [_; PORTABLE_ROWS] = std::array::from_fn(|i| row(group * PORTABLE_ROWS + i));
            let [r0, r1, r2, r3] = rows;
            let rows = r0.iter().zip(r1).zip(r2.iter().zip(r3));
            for (sum, ((&a0, &a1), (&a2, &a3))) in sums.iter_mut().zip(rows) {
                let upper = mul_add(x[1], a1, mul_add(x[0], a0, *sum));
                *sum = mul_add(x[3], a3, mul_add(x[2], a2, upper));
            }
        }
        let rest_start = x.len() - rest.len();
        for (i, &x) in rest.iter().enumerate() {
            for (sum, &a) in sums.iter_mut().zip(row(rest_start + i)) {
                *sum = mul_add(x, a, *sum);
            }
        }
    }
}

/// Adds the products of `R` rows, `lda` elements apart, and `x` to n sums. The first `head` columns
/// end at a cache-line boundary, or `head` is 0 or n.
///
/// # Safety
/// The processor supports the vector type `V`. `row` is valid for reads of `R` rows of n elements,
/// and `sums` for reads and writes of n elements. `head` is at most n.
#[inline(always)]
unsafe fn add_columns<V: SimdVector, const R: usize>(
    (row, lda): (*const V::Scalar, usize),
    x: &[V::Scalar; R],
    sums: *mut V::Scalar,
    (head, n): (usize, usize),
    prefetch: RowPrefetch,
) {
    /// Adds blocks of `$vectors` vectors of columns, from `$column` to `$end`.
    macro_rules! add_blocks {
        ($vectors:literal, $column:ident, $end:expr) => {
            while $column + $vectors * V::WIDTH <= $end {
                let (row, sums) = (row.wrapping_add($column), sums.wrapping_add($column));
                prefetch_block::<_, R>((row, lda), $vectors * V::WIDTH, prefetch);
                add_block::<V, R, $vectors>((row, lda), x, sums);
                $column += $vectors * V::WIDTH;
            }
        };
    }
    let mut column = 0;
    // SAFETY: the columns of every block are before n.
    unsafe {
        for end in [head, n] {
            if end - column >= 8 * V::WIDTH {
                if V::HAS_32_REGISTERS {
                    add_blocks!(16, column, end);
                }
                add_blocks!(8, column, end);
            }
            add_blocks!(1, column, end);
            if column < end {
                let (row, sums) = (row.wrapping_add(column), sums.wrapping_add(column));
                add_partial_vector::<V, R>((row, lda), x, sums, end - column);
                column = end;
            }
        }
    }
}

/// Prefetches `len` elements of each of `R` rows, if `mode` selects elements that depend on the
/// columns at `row`.
#[inline(always)]
fn prefetch_block<S, const R: usize>((row, lda): (*const S, usize), len: usize, mode: RowPrefetch) {
    let line = CACHE_LINE / size_of::<S>();
    match mode {
        RowPrefetch::FirstLines => {}
        RowPrefetch::SameRows => {
            for i in 0..R {
                let start = row.wrapping_add(i * lda + PREFETCH_DISTANCE / size_of::<S>());
                (0..len).step_by(line).for_each(|offset| prefetch(start.wrapping_add(offset)));
            }
        }
        RowPrefetch::NextRows => {
            for i in R..2 * R {
                let start = row.wrapping_add(i * lda);
                (0..len).step_by(line).for_each(|offset| prefetch_l2(start.wrapping_add(offset)));
            }
        }
    }
}

/// Adds the products of `R` rows and `x` to `VECTORS` vectors of sums.
///
/// # Safety
/// The requirements of [`add_columns`] hold for `VECTORS` vectors of columns.
#[inline(always)]
unsafe fn add_block<V: SimdVector, const R: usize, const VECTORS: usize>(
    (row, lda): (*const V::Scalar, usize),
    x: &[V::Scalar; R],
    sums: *mut V::Scalar,
) {
    // SAFETY: row indices are less than `R`, and vector indices are less than `VECTORS`.
    unsafe {
        let mut block = [V::splat(x[0]); VECTORS];
        for (j, sum) in block.iter_mut().enumerate() {
            *sum = V::load(sums.add(j * V::WIDTH));
        }
        for (i, &x) in x.iter().enumerate() {
            let x = V::splat(x);
            for (j, sum) in block.iter_mut().enumerate() {
                *sum = x.mul_add(V::load(row.add(i * lda + j * V::WIDTH)), *sum);
            }
        }
        for (j, sum) in block.into_iter().enumerate() {
            sum.store(sums.add(j * V::WIDTH));
        }
    }
}

/// Like [`add_block`], for fewer columns than a vector has.
///
/// # Safety
/// The requirements of [`add_columns`] hold for `count` columns.
#[inline(always)]
unsafe fn add_partial_vector<V: SimdVector, const R: usize>(
    (row, lda): (*const V::Scalar, usize),
    x: &[V::Scalar; R],
    sums: *mut V::Scalar,
    count: usize,
) {
    // SAFETY: row indices are less than `R`, and only `count` columns are accessed.
    unsafe {
        let mut sum = V::load_first(sums, count);
        for (i, &x) in x.iter().enumerate() {
            sum = V::splat(x).mul_add(V::load_first(row.add(i * lda), count), sum);
        }
        sum.store_first(sums, count);
    }
}

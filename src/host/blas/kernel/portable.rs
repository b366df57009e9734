//! Portable loops of GEMM: the reference implementation of the micro-kernel and the dot kernel.
//!
//! At [`SimdLevel::Portable`], the loops use FMA, by an instruction or emulated. Results are
//! bit-identical to those of the kernels for AVX-512, AVX2 and NEON. At [`SimdLevel::WithoutFma`],
//! the loops round each product, and the compiler vectorizes the loops.

use crate::{
    element::Element,
    host::{
        blas::kernel::{
            args::RawGemm,
            dot_kernel::{self, LANES_BYTES},
        },
        simd::{dispatch::SimdScalar, fma::FmaMode, level::SimdLevel},
    },
};
use num_traits::Float;
use std::ops::Range;

/// Rows of a tile of `C`.
pub(crate) const ROWS: usize = 4;

/// Columns of a tile of `C`.
pub(crate) const COLUMNS: usize = 8;

/// Largest number of lanes of a dot product: that of `f32`.
const MAX_LANES: usize = LANES_BYTES / size_of::<f32>();

/// Calls `$function` with fused multiply-adds, or with separate multiplications and additions if
/// the SIMD level is [`SimdLevel::WithoutFma`].
macro_rules! at_current_level {
    ($function:ident($($argument:expr),*)) => {
        match SimdLevel::current() {
            SimdLevel::WithoutFma => $function::<_, false>($($argument),*),
            _ => $function::<_, true>($($argument),*),
        }
    };
}

/// Computes `C ← α·op(A)·B + β·C + bias` in blocks of `kc` terms. Each block is added to `C` before
/// the next block, and the terms of a block are added in the order of k. The strides of `A` along m
/// and k are `strides`.
///
/// # Safety
/// `p.a` is valid for reads of m×k elements with strides `strides`, and `p.b` for reads of k rows of
/// n elements. `p.bias` is null or valid for reads of m elements. `p.c` is valid for reads and writes
/// of m rows of n elements, and no other thread accesses `C`.
pub(crate) unsafe fn multiply<S: SimdScalar>(p: &RawGemm<S>, strides: (usize, usize), kc: usize) {
    for start in (0..p.k).step_by(kc.max(1)) {
        // SAFETY: the block of terms is within k, and the caller guarantees that the operands are
        // valid.
        unsafe {
            let block = &RawGemm {
                k: kc.min(p.k - start),
                beta: if start == 0 { p.beta } else { S::one() },
                a: p.a.add(start * strides.1),
                b: p.b.add(start * p.ldb),
                bias: if start == 0 { p.bias } else { std::ptr::null() },
                ..*p
            };
            at_current_level!(multiply_tiles(block, strides));
        }
    }
}

/// Computes `C ← α·A·B + β·C + bias` from panels of micro-panels of [`ROWS`] rows of `A`, and of
/// [`COLUMNS`] columns of `B`. Zeros pad the last micro-panel of each operand.
///
/// # Safety
/// `p.a` and `p.b` are panels of m×k and k×n elements. `p.bias` and `p.c` are valid as [`multiply`]
/// requires.
pub(crate) unsafe fn multiply_packed<S: SimdScalar>(p: &RawGemm<S>) {
    debug_assert!(SimdLevel::current() != SimdLevel::WithoutFma, "`matrixmultiply` replaces this");
    // SAFETY: the caller meets the requirements of `multiply_panels`.
    unsafe { multiply_panels::<_, true>(p) }
}

/// Computes `C ← α·A·Bᵀ + β·C`, in the order of the dot kernel.
///
/// # Safety
/// `p.a` is valid for reads of m rows of k elements, and `p.b` for reads of n rows of k elements.
/// `p.c` is valid for reads and writes of m rows of n elements, and no other thread accesses `C`.
pub(crate) unsafe fn multiply_transposed<S: SimdScalar>(p: &RawGemm<S>) {
    // SAFETY: the caller meets the requirements of `multiply_rows`.
    unsafe { at_current_level!(multiply_rows(p)) }
}

/// # Safety
/// The requirements of [`multiply_packed`] hold.
unsafe fn multiply_panels<S: SimdScalar, const FUSED: bool>(p: &RawGemm<S>) {
    for row in (0..p.m).step_by(ROWS) {
        for column in (0..p.n).step_by(COLUMNS) {
            let (rows, columns) = (ROWS.min(p.m - row), COLUMNS.min(p.n - column));
            let (a, b) = (p.a.wrapping_add(row * p.k), p.b.wrapping_add(column * p.k));
            // SAFETY: each micro-panel holds a whole tile, and only rows and columns of `C` are
            // written.
            unsafe {
                let panels = RawGemm { a, b, ldb: COLUMNS, ..*p };
                let sums = tile_sums::<S, FUSED, ROWS, true>(&panels, (1, ROWS), COLUMNS);
                write_back::<S, FUSED>(p, &sums[..rows], row, column..column + columns);
            }
        }
    }
}

/// # Safety
/// The requirements of [`multiply`] hold.
unsafe fn multiply_tiles<S: SimdScalar, const FUSED: bool>(
    p: &RawGemm<S>,
    strides: (usize, usize),
) {
    for column in (0..p.n).step_by(COLUMNS) {
        let columns = column..p.n.min(column + COLUMNS);
        // SAFETY: each tile is within m rows and n columns.
        unsafe {
            if p.m < ROWS {
                for row in 0..p.m {
                    let sums = sums_at::<S, FUSED, 1>(p, strides, row, &columns);
                    write_back::<S, FUSED>(p, &sums, row, columns.clone());
                }
                continue;
            }
            for row in (0..p.m).step_by(ROWS) {
                // The last tile overlaps the previous tile, and does not write the overlapping rows.
                let first = row.min(p.m - ROWS);
                let sums = sums_at::<S, FUSED, ROWS>(p, strides, first, &columns);
                write_back::<S, FUSED>(p, &sums[row - first..], row, columns.clone());
            }
        }
    }
}

/// Returns the sums of the `M` rows of `C` from `row` on, in `columns`.
///
/// # Safety
/// The requirements of [`multiply`] hold, and the tile is within m rows and n columns.
unsafe fn sums_at<S: SimdScalar, const FUSED: bool, const M: usize>(
    p: &RawGemm<S>,
    strides: (usize, usize),
    row: usize,
    columns: &Range<usize>,
) -> [[S; COLUMNS]; M] {
    // SAFETY: the caller guarantees that the tile is within `C`.
    unsafe {
        let (a, b) = (p.a.add(row * strides.0), p.b.add(columns.start));
        let tile = &RawGemm { a, b, ..*p };
        match columns.len() {
            COLUMNS => tile_sums::<S, FUSED, M, true>(tile, strides, COLUMNS),
            count => tile_sums::<S, FUSED, M, false>(tile, strides, count),
        }
    }
}

/// Returns the sums of the first `M` rows and `columns` columns of `C`. `WHOLE` says whether
/// `columns` is [`COLUMNS`].
///
/// # Safety
/// `p.a` is valid for reads of `M` rows of k elements with strides `strides`, and `p.b` for reads of
/// k rows of `columns` elements.
unsafe fn tile_sums<S: SimdScalar, const FUSED: bool, const M: usize, const WHOLE: bool>(
    p: &RawGemm<S>,
    (stride_m, stride_k): (usize, usize),
    columns: usize,
) -> [[S; COLUMNS]; M] {
    let mut sums = [[S::zero(); COLUMNS]; M];
    for l in 0..p.k {
        // SAFETY: the caller guarantees that the rows and columns of the tile are readable.
        unsafe {
            let b = p.b.add(l * p.ldb);
            let row: [S; COLUMNS] = if WHOLE {
                b.cast::<[S; COLUMNS]>().read_unaligned()
            } else {
                std::array::from_fn(|j| if j < columns { *b.add(j) } else { S::zero() })
            };
            for (i, sums) in sums.iter_mut().enumerate() {
                let a = *p.a.add(i * stride_m + l * stride_k);
                // Avoid `zip`, because without link-time optimization the constructor of `zip` is a
                // function call.
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = mul_add::<S, FUSED>(a, row[j], *sum);
                }
            }
        }
    }
    sums
}

/// Computes `C ← α·sums + β·C + bias` for the rows of `sums` from `row` on, in `columns`.
///
/// # Safety
/// `p.c` and `p.bias` are valid as [`multiply`] requires, and the rows and columns are within `C`.
unsafe fn write_back<S: SimdScalar, const FUSED: bool>(
    p: &RawGemm<S>,
    sums: &[[S; COLUMNS]],
    row: usize,
    columns: Range<usize>,
) {
    for (row, sums) in (row..).zip(sums) {
        // SAFETY: the caller guarantees that the row and the columns are within `C`.
        let c = unsafe {
            let first = p.c.add(row * p.ldc + columns.start);
            std::slice::from_raw_parts_mut(first, columns.len())
        };
        // SAFETY: the bias is null, or has an element for each row of `C`.
        let bias = (!p.bias.is_null()).then(|| unsafe { *p.bias.add(row) });
        for (c, &sum) in c.iter_mut().zip(sums) {
            let value = match p.beta.is_zero() {
                true => p.alpha * sum,
                false => mul_add::<S, FUSED>(p.alpha, sum, p.beta * *c),
            };
            *c = bias.map_or(value, |bias| value + bias);
        }
    }
}

/// # Safety
/// The requirements of [`multiply_transposed`] hold.
unsafe fn multiply_rows<S: SimdScalar, const FUSED: bool>(p: &RawGemm<S>) {
    let kc = if p.m == 1 { p.k } else { dot_kernel::kc::<S>(p.k) };
    for start in (0..p.k).step_by(kc.max(1)) {
        let k = kc.min(p.k - start);
        let beta = if start == 0 { p.beta } else { S::one() };
        for (i, j) in (0..p.m).flat_map(|i| (0..p.n).map(move |j| (i, j))) {
            // SAFETY: the row `i` of `A` and the row `j` of `B` have k elements, and `C` has an
            // element at `i` and `j`.
            unsafe {
                let a = std::slice::from_raw_parts(p.a.add(i * p.lda + start), k);
                let b = std::slice::from_raw_parts(p.b.add(j * p.ldb + start), k);
                let (sum, c) = (p.alpha * dot::<S, FUSED>(a, b), p.c.add(i * p.ldc + j));
                // The dot kernel fuses β·C with the addition only if `A` has one row. For several
                // rows, it adds 0 if β is 0, so that -0 becomes 0.
                *c = match (beta.is_zero(), p.m) {
                    (true, 1) => sum,
                    (true, _) => sum + S::zero(),
                    (false, 1) => mul_add::<S, FUSED>(beta, *c, sum),
                    (false, _) => sum + beta * *c,
                };
            }
        }
    }
}

/// Returns the dot product of two slices of one length, accumulated in the lanes of the dot kernel.
fn dot<S: SimdScalar, const FUSED: bool>(a: &[S], b: &[S]) -> S {
    let mut lanes = [S::zero(); MAX_LANES];
    let count = LANES_BYTES / size_of::<S>();
    for start in (0..a.len()).step_by(count) {
        let (a, b) = (&a[start..], &b[start..]);
        for (i, lane) in lanes.iter_mut().enumerate().take(count.min(a.len())) {
            *lane = mul_add::<S, FUSED>(a[i], b[i], *lane);
        }
    }
    let mut half_len = count / 2;
    while half_len > 0 {
        for i in 0..half_len {
            lanes[i] = lanes[i] + lanes[i + half_len];
        }
        half_len /= 2;
    }
    lanes[0]
}

/// Returns `a·b + c`, rounded once if `FUSED` is true.
#[inline(always)]
fn mul_add<S: Element + Float, const FUSED: bool>(a: S, b: S, c: S) -> S {
    if FUSED { FmaMode::BASE.fused_mul_add(a, b, c) } else { a * b + c }
}

//! GEMM without packing: kernels that read both operands in place.
//!
//! Packing costs more than it saves if an operand is reused only a few times, or stays in cache. If
//! `A` has few rows, an untransposed `B` that exceeds L1 is streamed: the micro-kernel multiplies a
//! few rows of `B` at a time.
//!
//! - If `B` is not transposed, the micro-kernel adds multiples of rows of `B` to rows of `C`, in
//!   the order of k.
//! - If only `B` is transposed, the dot kernel multiplies rows of `A` by rows of `B`.
//!
//! Neither the micro-kernel nor the dot kernel supports two transposed operands, so the caller of
//! such a GEMM first transposes `B`. Each kernel computes every element of `C` by the same sequence
//! of operations, in any tile.

use crate::cast::{cast_slice, cast_slice_mut};
use crate::{
    element::{Element, is_same},
    host::{
        blas::kernel::{
            args::{BatchStrides, RawGemm, unaligned_prefix},
            dot_kernel::{LANES_BYTES, gemm_dot},
            micro_kernel::{B_MASKED, B_MASKED_TAIL, B_WHOLE_VECTORS, MicroTile, micro_kernel},
            packed_dot::{gemm_packed_dot, packed_dot_is_faster},
            portable,
        },
        cache::residence::is_amd_with_small_l1,
        simd::{
            dispatch::{SimdKernel, SimdScalar},
            vector::SimdVector,
        },
    },
    op::{Gemm, Transpose},
};
use num_traits::One;

/// Smallest n, in vectors, at which rows of `B` are read with aligned loads.
const ALIGN_MIN_VECTORS: usize = 16;

/// Largest number of vectors in a tile of one row.
const MAX_ROW_VECTORS: usize = 8;

/// Largest size of `B`, in elements, at which most of `B` stays in L1.
const L1_B_MAX_LEN: usize = 1 << 14;

/// Largest size, in elements, of an operand that is transposed for the dot kernel.
const TRANSPOSED_MAX_LEN: usize = 1 << 14;

/// Largest size of `A`, in elements, at which the dot kernel with a transposed copy of `B` is used.
/// The dot kernel reads all of `A` once for each tile of columns, so `A` must stay in L2.
const DOT_A_MAX_LEN: usize = 1 << 16;

/// Largest m at which streaming an untransposed `B` that exceeds L1 was faster than packing, at all
/// sizes of `B`, for `f32` and `f64`, with AVX-512 and AVX2 (decision 49).
const STREAMED_MAX_M: usize = 24;

/// Number of rows of a streamed `B` that the micro-kernel multiplies at a time. The partial sums
/// stay in `C` between two blocks of rows. In larger blocks, rows that are a multiple of 4 KiB
/// apart evict one another from L1.
pub(crate) const STREAMED_ROWS: usize = 32;

/// Number of columns of a streamed `B` that are multiplied at a time, for all blocks of rows, so
/// that these columns of a block of rows and of `C` stay in L2.
const STREAMED_COLUMNS: usize = 512;

/// Returns whether unpacked kernels were faster than packing in measurements of GEMMs with shapes
/// similar to that of `op`.
pub(crate) fn unpacked_is_faster<S: Element>(op: &Gemm<S>) -> bool {
    match (op.trans_a, op.trans_b) {
        (_, Transpose::No) => op.k * op.n < L1_B_MAX_LEN,
        (Transpose::No, Transpose::Yes) => dot_is_faster(op),
        // Transposing a small `B` costs less time than packing both operands.
        (Transpose::Yes, Transpose::Yes) => op.k * op.n < L1_B_MAX_LEN,
    }
}

/// Returns whether the dot kernel was faster than packing in measurements of GEMMs with the extents
/// of `op` and a transposed `B`.
fn dot_is_faster<S: Element>(op: &Gemm<S>) -> bool {
    // With few rows of `A`, packing a transposed `B` costs more time than it saves. With a large k,
    // the horizontal reduction takes a small share of the time of each dot product.
    op.k >= 32 && op.k >= 12 * op.m && (op.m * op.n <= 1024 || op.m <= 16)
}

/// Returns whether the dot kernel, after a transposition of `A` or `B`, was faster than the
/// micro-kernel in measurements of GEMMs with shapes similar to that of `op` (decision 56).
pub(crate) fn dot_of_copy_is_faster<S: Element>(op: &Gemm<S>) -> bool {
    match (op.trans_a, op.trans_b) {
        (Transpose::Yes, Transpose::Yes) => op.k * op.m < TRANSPOSED_MAX_LEN && dot_is_faster(op),
        // The micro-kernel multiplies whole vectors of columns. With few columns, many lanes are
        // after the last column, and their products are unused. In the dot kernel, vectors extend
        // along k.
        (Transpose::No, Transpose::No) => {
            let lanes = op.n.next_multiple_of(LANES_BYTES / size_of::<S>());
            let has_unused_lanes = (4..=16).contains(&op.n) && 4 * op.n < 3 * lanes;
            has_unused_lanes
                && op.m >= 16
                && op.k >= 128
                && op.k * op.n < TRANSPOSED_MAX_LEN
                && op.m * op.k <= DOT_A_MAX_LEN
        }
        _ => false,
    }
}

/// Returns whether streaming `B` was faster than packing in measurements of GEMMs with shapes
/// similar to that of `op`.
pub(crate) fn streaming_is_faster<S: Element>(op: &Gemm<S>) -> bool {
    op.trans_b == Transpose::No && op.m <= STREAMED_MAX_M && op.k * op.n >= L1_B_MAX_LEN
}

/// Calls `$multiply` for each GEMM of the batch `$batch`, in a separate function that is compiled
/// for the vector type `$V`.
macro_rules! outlined {
    ($V:ident, $batch:ident, $multiply:expr) => {
        $V::outline(
            #[inline(always)]
            || {
                $batch.for_each(
                    #[inline(always)]
                    $multiply,
                )
            },
        )
    };
}

/// Batch of GEMMs `C ← α·op(A)·op(B) + β·C` of one shape, with at most one transposed operand.
///
/// [`SimdKernel::run`] is safe if all matrices `A` and `B` of the batch are valid for reads, and
/// all matrices `C` are valid for reads and writes by this thread alone.
pub(crate) struct UnpackedGemm<'a, S> {
    pub(crate) trans_a: Transpose,
    pub(crate) trans_b: Transpose,
    /// Whether an untransposed `B` is streamed. The choice determines the order of additions, so it
    /// must not depend on the number of threads that share a GEMM.
    pub(crate) streamed: bool,
    pub(crate) p: &'a RawGemm<S>,
    pub(crate) batch: BatchStrides,
}

impl<S: SimdScalar> SimdKernel<S> for UnpackedGemm<'_, S> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = S>>(self) {
        let stride_k = if self.trans_a == Transpose::Yes { self.p.lda } else { 1 };
        // SAFETY: the caller guarantees that the operands of every GEMM of the batch are valid.
        unsafe {
            match (self.trans_a, self.trans_b) {
                (Transpose::No, Transpose::Yes) if packed_dot_is_faster::<V>(self.p) => {
                    outlined!(V, self, |p| gemm_packed_dot::<V>(p));
                }
                (Transpose::No, Transpose::Yes) => outlined!(V, self, |p| gemm_dot::<V>(p)),
                _ if self.p.m == 1 => outlined!(V, self, |p| multiply_row::<V>(p, stride_k)),
                (Transpose::No, _) => self.outer::<V, false>(),
                (Transpose::Yes, _) => self.outer::<V, true>(),
            }
        }
    }

    unsafe fn run_portable(self) {
        let kc = if self.streamed && self.p.m > 1 { STREAMED_ROWS } else { self.p.k };
        // SAFETY: the caller guarantees that the operands of every GEMM of the batch are valid.
        self.for_each(|p| unsafe {
            match (self.trans_a, self.trans_b) {
                (Transpose::No, Transpose::Yes) => portable::multiply_transposed(p),
                (Transpose::No, _) => portable::multiply(p, (p.lda, 1), kc),
                (Transpose::Yes, _) => portable::multiply(p, (1, p.lda), kc),
            }
        });
    }
}

impl<S: Copy> UnpackedGemm<'_, S> {
    /// Calls `multiply` for each GEMM of the batch.
    #[inline(always)]
    fn for_each(&self, multiply: impl Fn(&RawGemm<S>)) {
        let batch = self.batch;
        for i in 0..batch.count {
            let (a, b) = (self.p.a.wrapping_add(i * batch.a), self.p.b.wrapping_add(i * batch.b));
            multiply(&RawGemm { a, b, c: self.p.c.wrapping_add(i * batch.c), ..*self.p });
        }
    }

    /// Computes `C ← α·op(A)·B + β·C` for each GEMM of the batch, where `A` is transposed if
    /// `TRANS_A` is true. Each tile of `C` is two vectors wide. The tile height is chosen once per
    /// batch, because the choice takes a quarter of the time of a 16×16×16 GEMM.
    ///
    /// # Safety
    /// The processor supports the vector type `V`. For each GEMM, `p.a` is valid for reads of m×k
    /// elements, and `p.b` for reads of k rows of n elements. `p.c` is valid for reads and writes
    /// of m rows of n elements, and no other thread accesses `C`. m is not 1.
    #[inline(always)]
    unsafe fn outer<V: SimdVector<Scalar = S>, const TRANS_A: bool>(&self) {
        let m = self.p.m;
        let sizes: &[usize] = if V::HAS_32_REGISTERS { &[12, 10, 8] } else { &[6, 5, 4] };
        // Choose the tile height that minimizes the number of rows computed twice by overlapping
        // tiles. Among tile heights with equally few redundant rows, choose the largest height.
        let fitting_sizes = sizes.iter().copied().filter(|&mr| mr <= m);
        let mr = fitting_sizes.min_by_key(|&mr| m.div_ceil(mr) * mr).unwrap_or(if m >= 4 {
            4
        } else {
            2
        });
        // SAFETY: the caller meets the requirements of `outer`. `mr` is at most m, unless m is 0,
        // for which there are no tiles.
        unsafe {
            match mr {
                12 if V::HAS_32_REGISTERS => {
                    outlined!(V, self, |p| multiply_tiles::<V, 12>(
                        p,
                        strides::<S, TRANS_A>(p),
                        self.streamed
                    ))
                }
                10 if V::HAS_32_REGISTERS => {
                    outlined!(V, self, |p| multiply_tiles::<V, 10>(
                        p,
                        strides::<S, TRANS_A>(p),
                        self.streamed
                    ))
                }
                8 if V::HAS_32_REGISTERS => {
                    outlined!(V, self, |p| multiply_tiles::<V, 8>(
                        p,
                        strides::<S, TRANS_A>(p),
                        self.streamed
                    ))
                }
                6 if !V::HAS_32_REGISTERS => {
                    outlined!(V, self, |p| multiply_tiles::<V, 6>(
                        p,
                        strides::<S, TRANS_A>(p),
                        self.streamed
                    ))
                }
                5 if !V::HAS_32_REGISTERS => {
                    outlined!(V, self, |p| multiply_tiles::<V, 5>(
                        p,
                        strides::<S, TRANS_A>(p),
                        self.streamed
                    ))
                }
                4 => outlined!(V, self, |p| multiply_tiles::<V, 4>(
                    p,
                    strides::<S, TRANS_A>(p),
                    self.streamed
                )),
                _ => outlined!(V, self, |p| multiply_tiles::<V, 2>(
                    p,
                    strides::<S, TRANS_A>(p),
                    self.streamed
                )),
            }
        }
    }
}

/// Returns the strides of `op(A)` along m and k. `TRANS_A` is a constant, so that one of the
/// strides is the constant 1. With two variable strides, the compiler keeps the offsets of rows on
/// the stack, which costs 8 % of the time of a 20×576×25 GEMM.
#[inline(always)]
fn strides<S, const TRANS_A: bool>(p: &RawGemm<S>) -> (usize, usize) {
    if TRANS_A { (1, p.lda) } else { (p.lda, 1) }
}

/// Multiplies the only row of `A`, whose elements are `stride_k` apart, by `B`.
///
/// # Safety
/// The requirements of [`UnpackedGemm::outer`] on the operands hold, and m is 1.
#[inline(always)]
unsafe fn multiply_row<V: SimdVector>(p: &RawGemm<V::Scalar>, stride_k: usize) {
    let prefix = if p.n >= ALIGN_MIN_VECTORS * V::WIDTH { unaligned_prefix::<V>(p) } else { 0 };
    let end = prefix + p.n;
    let vectors = end.div_ceil(V::WIDTH);
    // Use tiles of almost equal width, because a narrow tile has too few independent sums to hide
    // the latency of additions.
    let tile_vectors = vectors.div_ceil(vectors.div_ceil(MAX_ROW_VECTORS));
    let (b, c) = (p.b.wrapping_sub(prefix), p.c.wrapping_sub(prefix));
    let p = &RawGemm { b, c, ..*p };
    for vector in (0..vectors).step_by(tile_vectors) {
        let column = vector * V::WIDTH;
        let columns = prefix.saturating_sub(column)..(end - column).min(tile_vectors * V::WIDTH);
        let count = columns.end.div_ceil(V::WIDTH);
        let is_full_width = columns == (0..count * V::WIDTH);
        let tile = MicroTile { row: 0, rows: 0..1, column, columns };
        let strides = (0, stride_k);
        macro_rules! tile {
            ($($vectors:literal)*) => {
                match count {
                    $(
                        $vectors => match is_full_width {
                            true => micro_kernel::<V, 1, $vectors, B_WHOLE_VECTORS>(p, strides, tile),
                            false => micro_kernel::<V, 1, $vectors, B_MASKED>(p, strides, tile),
                        },
                    )*
                    _ => debug_assert!(false, "GEMM tile: unexpected width of {count} vectors"),
                }
            };
        }
        // SAFETY: the n columns of `B` and `C` range from `prefix` to `end`; masks exclude all
        // other columns.
        unsafe { tile!(1 2 3 4 5 6 7 8) }
    }
}

/// Computes `C` in tiles of `MR` rows, two vectors wide.
///
/// # Safety
/// The requirements of [`UnpackedGemm::outer`] hold, and m is 0 or at least `MR`.
#[inline(always)]
unsafe fn multiply_tiles<V: SimdVector, const MR: usize>(
    p: &RawGemm<V::Scalar>,
    strides: (usize, usize),
    streamed: bool,
) {
    debug_assert!(!streamed || p.bias.is_null(), "the bias would be added once per block of rows");
    let (kc, nc) = if streamed { (STREAMED_ROWS, STREAMED_COLUMNS) } else { (p.k, p.n) };
    let prefetches = streamed && V::HAS_32_REGISTERS;
    let prefetches_below = streamed && !V::HAS_32_REGISTERS;
    let has_small_l1 = prefetches_below && is_amd_with_small_l1();
    for first_column in (0..p.n).step_by(nc.max(1)) {
        let n = nc.min(p.n - first_column);
        for start in (0..p.k).step_by(kc.max(1)) {
            let block = &RawGemm {
                n,
                k: kc.min(p.k - start),
                beta: if start == 0 { p.beta } else { V::Scalar::one() },
                a: p.a.wrapping_add(start * strides.1),
                b: p.b.wrapping_add(start * p.ldb + first_column),
                c: p.c.wrapping_add(first_column),
                prefetch_rows: if prefetches && start + kc < p.k { kc } else { 0 },
                ..*p
            };
            for column in (0..n).step_by(2 * V::WIDTH) {
                // SAFETY: the columns from `column` on are within the block, which is within the
                // operands of `p`.
                unsafe {
                    if prefetches_below {
                        prefetch_below::<V>(block, column, has_small_l1);
                    }
                    multiply_columns::<V, MR>(block, strides, column);
                }
            }
        }
    }
}

/// Prefetches two vectors of columns, from `column` on. The prefetched rows of `B` follow the block
/// of `STREAMED_ROWS` rows at `p.b`. The hardware prefetcher cannot replace this software prefetch,
/// because it follows fewer sequences of addresses at a time than a block has rows.
///
/// The prefetch is into L1, or into L2 if `has_small_l1` is true: rows that are a multiple of 4 KiB
/// apart would evict one another from a small L1 cache before they are read (decision 56).
///
/// On processors with 32 registers, the micro-kernel itself prefetches these rows in each step
/// along k. On processors with 16 registers, prefetches in each step slowed down streaming
/// (decision 49).
///
/// # Safety
/// The processor supports the vector type `V`.
#[inline(always)]
unsafe fn prefetch_below<V: SimdVector>(p: &RawGemm<V::Scalar>, column: usize, has_small_l1: bool) {
    for row in STREAMED_ROWS..2 * STREAMED_ROWS {
        let b = p.b.wrapping_add(row * p.ldb + column);
        // SAFETY: the caller guarantees the processor's features.
        unsafe {
            for b in [b, b.wrapping_add(2 * V::WIDTH - 1)] {
                match has_small_l1 {
                    true => V::prefetch_l2(b),
                    false => V::prefetch(b),
                }
            }
        }
    }
}

/// Computes at most two vectors of columns of `C`, from `column` on.
///
/// # Safety
/// The requirements of [`multiply_tiles`] hold, and `column` is less than n.
#[inline(always)]
unsafe fn multiply_columns<V: SimdVector, const MR: usize>(
    p: &RawGemm<V::Scalar>,
    strides: (usize, usize),
    column: usize,
) {
    let columns = (p.n - column).min(2 * V::WIDTH);
    for row in (0..p.m).step_by(MR) {
        // The last tile of `MR` rows overlaps the previous tile, and does not write the overlapping
        // rows.
        let start = row.min(p.m - MR);
        let tile = MicroTile { row: start, rows: row - start..MR, column, columns: 0..columns };
        // Only the first tile prefetches, because all tiles read the same elements of `B`.
        let p = &RawGemm { prefetch_rows: if row == 0 { p.prefetch_rows } else { 0 }, ..*p };
        // SAFETY: the tile is within m rows and n columns, and the micro-kernel loads only columns
        // of `B` in the tile.
        unsafe {
            if columns == 2 * V::WIDTH {
                micro_kernel::<V, MR, 2, B_WHOLE_VECTORS>(p, strides, tile);
            } else if columns > V::WIDTH {
                micro_kernel::<V, MR, 2, B_MASKED_TAIL>(p, strides, tile);
            } else {
                micro_kernel::<V, MR, 1, B_MASKED_TAIL>(p, strides, tile);
            }
        }
    }
}

/// Computes `yᵀ ← α·xᵀ·op(B) + β·yᵀ` on the calling thread, for `f32` and `f64`. `x` and `y` must
/// not be empty.
///
/// # Panics
/// Panics if `b` is too short for the matrix `B`.
pub(crate) fn row_times_matrix<T: Element>(
    (alpha, beta): (T::Acc, T::Acc),
    x: &[T],
    (trans, b, ldb): (Transpose, &[T], usize),
    y: &mut [T],
) {
    fn run<T: Element, S: SimdScalar>(
        scalars: (T::Acc, T::Acc),
        x: &[T],
        (trans_b, b, ldb): (Transpose, &[T], usize),
        y: &mut [T],
    ) {
        let (alpha, beta) = (S::acc(scalars.0.to_f64()), S::acc(scalars.1.to_f64()));
        let (n, k, lda, ldc) = (y.len(), x.len(), x.len(), y.len());
        let (rows, columns) = if trans_b == Transpose::No { (k, n) } else { (n, k) };
        assert!(
            (rows - 1) * ldb + columns <= b.len(),
            "row_times_matrix: b has {} elements, expected {rows}×{columns}",
            b.len()
        );
        let (a, b) = (cast_slice::<T, S>(x).as_ptr(), cast_slice::<T, S>(b).as_ptr());
        let (c, bias) = (cast_slice_mut::<T, S>(y).as_mut_ptr(), std::ptr::null());
        let p =
            &RawGemm { m: 1, n, k, alpha, beta, a, lda, b, ldb, c, ldc, bias, prefetch_rows: 0 };
        let (trans_a, batch) = (Transpose::No, BatchStrides::ONE);
        // SAFETY: `x` has k elements, and `y` has n elements and is borrowed exclusively. The
        // assertion shows that `b` holds the matrix `B`.
        unsafe { S::dispatch(UnpackedGemm { trans_a, trans_b, streamed: false, p, batch }) };
    }
    if const { is_same::<T, f64>() } {
        run::<T, f64>((alpha, beta), x, (trans, b, ldb), y);
    } else {
        run::<T, f32>((alpha, beta), x, (trans, b, ldb), y);
    }
}

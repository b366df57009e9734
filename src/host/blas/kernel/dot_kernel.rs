//! GEMM by dot products, for `A` not transposed and `B` transposed. The dot kernel reads rows of
//! `A` and `B` in place.
//!
//! At every SIMD level, the dot kernel accumulates each element of `C` in 64 bytes of lanes: one
//! AVX-512 register, two AVX2 registers or four NEON registers. At the end, the dot kernel adds the
//! upper half of the lanes to the lower half, repeatedly, until one lane is left. The order of
//! additions depends on k alone, so results are bit-identical for any number of threads and with
//! all three instruction sets.

use crate::host::{
    blas::kernel::args::{RawGemm, unaligned_prefix},
    cache::residence::is_amd_with_small_l1,
    simd::vector::SimdVector,
};
use num_traits::{Float, One, Zero};
use std::ops::Range;

/// Size in bytes of the lanes in which one element of `C` is accumulated.
pub(crate) const LANES_BYTES: usize = 64;

/// Largest number of vectors that hold the lanes of one element of `C`.
const MAX_LANE_VECTORS: usize = 4;

/// KC in bytes, chosen so that the rows of a tile stay in L1 between two horizontal reductions.
pub(super) const KC_BYTES: usize = 4096;

/// Number of elements in a block of `B`, which stays in L2 while all rows of `A` are multiplied by
/// the block.
pub(super) const L2_B_LEN: usize = 1 << 16;

/// Smallest size of `B`, in bytes, that exceeds the core's private caches, so that the kernel
/// prefetches `B` in software.
const PREFETCH_B_MIN_BYTES: usize = 2 << 20;

/// Smallest k, in vectors, for which rows of `B` are read with aligned loads.
const ALIGN_MIN_VECTORS: usize = 8;

/// Number of vectors of one row of `B` that are multiplied before the kernel moves on to the next
/// row. A multiple of every number of vectors that hold the lanes of one element of `C`.
const K_UNROLL: usize = 4;

/// Number of rows of `B` by which a single row of `A` is multiplied at a time.
const N_UNROLL: usize = 8;

/// Returns the number of vectors that hold the lanes of one element of `C`.
pub(super) const fn lane_vectors<V: SimdVector>() -> usize {
    LANES_BYTES / (V::WIDTH * size_of::<V::Scalar>())
}

/// Returns KC for a GEMM of at least two rows, whose inner dimension is `k`. KC depends on k and the
/// element type alone.
pub(crate) fn kc<S>(k: usize) -> usize {
    let blocks = k.div_ceil(KC_BYTES / size_of::<S>());
    k.div_ceil(blocks.max(1)).max(1)
}

/// Computes `C ← α·A·Bᵀ + β·C`.
///
/// # Safety
/// The processor supports the vector type `V`. `p.a` is valid for reads of m rows of k elements,
/// and `p.b` for reads of n rows of k elements. Only this thread accesses `p.c`, which is valid for
/// reads and writes of m rows of n elements.
#[inline(always)]
pub(crate) unsafe fn gemm_dot<V: SimdVector>(p: &RawGemm<V::Scalar>) {
    if p.m == 1 {
        // SAFETY: m is 1, and the caller meets the requirements of `gemm_dot`.
        return unsafe { multiply_row::<V>(p) };
    }
    let kc = kc::<V::Scalar>(p.k);
    for start in (0..p.k).step_by(kc) {
        let k = kc.min(p.k - start);
        let nc = (L2_B_LEN / k + 1).next_multiple_of(64);
        for column in (0..p.n).step_by(nc) {
            // SAFETY: the block is within n and k, so the operands of the block are within the
            // operands of `p`. The block has at least as many rows and columns as the chosen tile.
            unsafe {
                let block = RawGemm {
                    n: nc.min(p.n - column),
                    k,
                    beta: if start == 0 { p.beta } else { V::Scalar::one() },
                    a: p.a.add(start),
                    b: p.b.add(column * p.ldb + start),
                    c: p.c.add(column),
                    ..*p
                };
                match (V::HAS_32_REGISTERS, block.m, block.n) {
                    (true, 4.., 5..) if block.n.div_ceil(5) * 5 <= block.n.div_ceil(4) * 4 => {
                        multiply_tiles::<V, 4, 5>(&block);
                    }
                    (true, 4.., 4..) => multiply_tiles::<V, 4, 4>(&block),
                    (false, 2.., 4..) => multiply_tiles::<V, 2, 4>(&block),
                    (_, _, 4..) => multiply_tiles::<V, 1, 4>(&block),
                    (_, 4.., _) => multiply_tiles::<V, 4, 1>(&block),
                    _ => multiply_tiles::<V, 1, 1>(&block),
                }
            }
        }
    }
}

/// Computes `C` for an `A` of one row, by multiplying this row by all rows of `B`.
///
/// # Safety
/// The requirements of [`gemm_dot`] hold, and m is 1.
#[inline(always)]
unsafe fn multiply_row<V: SimdVector>(p: &RawGemm<V::Scalar>) {
    let prefix = if p.k >= ALIGN_MIN_VECTORS * V::WIDTH { unaligned_prefix::<V>(p) } else { 0 };
    // On Zen 4, the hardware prefetchers alone are faster (decision 56).
    let exceeds_cache = p.n * p.k * size_of::<V::Scalar>() > PREFETCH_B_MIN_BYTES;
    let prefetches = exceeds_cache && !is_amd_with_small_l1();
    // SAFETY: the caller meets the requirements of `multiply_row`, and `prefix` is less than
    // `V::WIDTH`.
    unsafe {
        match (prefetches, prefix) {
            (false, 0) => multiply_row_by::<V, false, false>(p, 0),
            (false, _) => multiply_row_by::<V, false, true>(p, prefix),
            (true, 0) => multiply_row_by::<V, true, false>(p, 0),
            (true, _) => multiply_row_by::<V, true, true>(p, prefix),
        }
    }
}

/// Multiplies `A`, which has one row, by [`N_UNROLL`] rows of `B` at a time. Prefetches `B` if
/// `PREFETCH` is true. If `UNALIGNED` is true, rows of `B` start `prefix` elements after a
/// vector-aligned address.
///
/// # Safety
/// The requirements of [`multiply_row`] hold, and `prefix` is less than `V::WIDTH`.
#[inline(always)]
unsafe fn multiply_row_by<V: SimdVector, const PREFETCH: bool, const UNALIGNED: bool>(
    p: &RawGemm<V::Scalar>,
    prefix: usize,
) {
    let prefix = if UNALIGNED { prefix } else { 0 };
    let mut column = 0;
    while column < p.n {
        let (rest_columns, b) = (p.n - column, p.b.wrapping_add(column * p.ldb));
        let step = match rest_columns {
            N_UNROLL.. => N_UNROLL,
            4.. => 4,
            2.. => 2,
            _ => 1,
        };
        // SAFETY: `step` is at most `rest_columns`, so `B` has `step` rows and `C` has `step`
        // columns from `column` on.
        unsafe {
            let sums = match step {
                // The lanes of eight rows would occupy all 16 registers of AVX2, or all 32 of NEON.
                N_UNROLL if lane_vectors::<V>() > 1 => {
                    let b_half = b.wrapping_add(N_UNROLL / 2 * p.ldb);
                    let [a, b, c, d, ..] = row_sums::<V, 4, PREFETCH>(p.a, (b, p.ldb), p.k, prefix);
                    let [e, f, g, h, ..] =
                        row_sums::<V, 4, PREFETCH>(p.a, (b_half, p.ldb), p.k, prefix);
                    [a, b, c, d, e, f, g, h]
                }
                N_UNROLL => row_sums::<V, N_UNROLL, PREFETCH>(p.a, (b, p.ldb), p.k, prefix),
                4 => row_sums::<V, 4, PREFETCH>(p.a, (b, p.ldb), p.k, prefix),
                2 => row_sums::<V, 2, PREFETCH>(p.a, (b, p.ldb), p.k, prefix),
                _ => row_sums::<V, 1, PREFETCH>(p.a, (b, p.ldb), p.k, prefix),
            };
            write_back::<V>(p, sums, column, step);
        }
        column += step;
    }
}

/// Reduces each of the first `count` vectors in `sums` to one sum, and writes `C ← α·sums + β·C` to
/// `count` columns from `column` on.
///
/// # Safety
/// The processor supports the vector type `V`. `p.c` is valid for reads and writes of `count`
/// elements at `column`.
#[inline(always)]
unsafe fn write_back<V: SimdVector>(
    p: &RawGemm<V::Scalar>,
    sums: [V; N_UNROLL],
    column: usize,
    count: usize,
) {
    // SAFETY: the calls of `load_first` and `store_first` access only the `count` elements.
    unsafe {
        let (alpha, beta) = (V::splat(p.alpha), V::splat(p.beta));
        for (i, sums) in sums.chunks_exact(V::WIDTH.min(N_UNROLL)).enumerate() {
            let mut vectors = [V::splat(V::Scalar::zero()); N_UNROLL];
            vectors[..sums.len()].copy_from_slice(sums);
            let count = count.saturating_sub(i * V::WIDTH).min(sums.len());
            let c = p.c.wrapping_add(column + i * V::WIDTH);
            let mut value = alpha.mul(V::horizontal_sum8(vectors));
            if !p.beta.is_zero() {
                value = beta.mul_add(V::load_first(c, count), value);
            }
            value.store_first(c, count);
        }
    }
}

/// Returns the lane-wise sums of the `k` products of row `a` with each of `ROWS` rows of `b`. The
/// lanes of each sum are added until one vector is left. Aligned loads start `prefix` elements
/// before each row.
///
/// # Safety
/// The processor supports the vector type `V`. `a` is valid for reads of `k` elements, and `b` for
/// reads of `ROWS` rows of `k` elements. `prefix` is less than `V::WIDTH`. If `prefix` is not 0, `k`
/// is at least [`ALIGN_MIN_VECTORS`] vectors.
#[inline(always)]
unsafe fn row_sums<V: SimdVector, const ROWS: usize, const PREFETCH: bool>(
    a: *const V::Scalar,
    (b, ldb): (*const V::Scalar, usize),
    k: usize,
    prefix: usize,
) -> [V; N_UNROLL] {
    let (a, b, end) = (a.wrapping_sub(prefix), b.wrapping_sub(prefix), prefix + k);
    let lanes = lane_vectors::<V>() * V::WIDTH;
    // SAFETY: masks exclude elements before `prefix` and from `end` on. Loads without a mask read
    // only elements between `prefix` and `end`.
    unsafe {
        let mut lane_sums = [[V::splat(V::Scalar::zero()); MAX_LANE_VECTORS]; N_UNROLL];
        let mut i = 0;
        if prefix > 0 {
            add_masked::<V, ROWS>((a, b, ldb), prefix..lanes, &mut lane_sums);
            i = lanes;
        }
        while i + K_UNROLL * V::WIDTH <= end {
            let (a, b) = (a.wrapping_add(i), b.wrapping_add(i));
            add_vectors::<V, ROWS, PREFETCH>(a, (b, ldb), K_UNROLL, &mut lane_sums);
            i += K_UNROLL * V::WIDTH;
        }
        while i + lanes <= end {
            let (a, b) = (a.wrapping_add(i), b.wrapping_add(i));
            add_vectors::<V, ROWS, PREFETCH>(a, (b, ldb), lane_vectors::<V>(), &mut lane_sums);
            i += lanes;
        }
        if i < end {
            let (a, b) = (a.wrapping_add(i), b.wrapping_add(i));
            add_masked::<V, ROWS>((a, b, ldb), 0..end - i, &mut lane_sums);
        }
        let mut sums = [V::splat(V::Scalar::zero()); N_UNROLL];
        for (j, sum) in sums.iter_mut().enumerate() {
            *sum = add_vectors_of_lanes(lane_sums[j]);
        }
        if prefix > 0 {
            // Rotate the lanes of each vector of sums to their positions for an aligned row, so
            // that results do not depend on addresses. `add_vectors_of_lanes` may run before the
            // rotation: the rotation at most exchanges the two lanes of an addition, and addition
            // is commutative.
            for sum in &mut sums {
                *sum = sum.rotate(prefix);
            }
        }
        sums
    }
}

/// Adds the upper half of the vectors that hold the lanes of one element of `C` to the lower half,
/// repeatedly, until one vector is left.
///
/// # Safety
/// The processor supports the vector type `V`.
#[inline(always)]
unsafe fn add_vectors_of_lanes<V: SimdVector>(mut lanes: [V; MAX_LANE_VECTORS]) -> V {
    let mut half_len = lane_vectors::<V>() / 2;
    while half_len > 0 {
        for i in 0..half_len {
            // SAFETY: the caller guarantees the processor's features.
            lanes[i] = unsafe { lanes[i].add(lanes[i + half_len]) };
        }
        half_len /= 2;
    }
    lanes[0]
}

/// For each j below `ROWS`, adds to the lanes `sums[j]` the products of `a` and row j of `b`.
/// Reads only the elements in `range`, and adds 0 to all other lanes.
///
/// # Safety
/// The processor supports the vector type `V`. `a` and `ROWS` rows of `b` are valid for reads of the
/// elements in `range`, which ends at most at the number of lanes.
#[inline(always)]
unsafe fn add_masked<V: SimdVector, const ROWS: usize>(
    (a, b, ldb): (*const V::Scalar, *const V::Scalar, usize),
    range: Range<usize>,
    sums: &mut [[V; MAX_LANE_VECTORS]; N_UNROLL],
) {
    for i in 0..lane_vectors::<V>() {
        let start = i * V::WIDTH;
        let clamp = |lane: usize| lane.saturating_sub(start).min(V::WIDTH);
        // SAFETY: masks exclude the elements outside `range`.
        unsafe {
            let mask = V::mask(clamp(range.start), clamp(range.end));
            let x = V::load_masked(a.wrapping_add(start), mask);
            for (j, sums) in sums.iter_mut().enumerate().take(ROWS) {
                let row = b.wrapping_add(j * ldb + start);
                sums[i] = x.mul_add(V::load_masked(row, mask), sums[i]);
            }
        }
    }
}

/// For each j below `ROWS`, adds to the lanes `sums[j]` the products of `count` vectors at `a`
/// and `count` vectors of row j of `b`. `count` is at most `K_UNROLL`, and a multiple of the number
/// of vectors that hold the lanes of one element of `C`.
///
/// # Safety
/// The processor supports the vector type `V`. `a` and `ROWS` rows of `b` are valid for reads of
/// `count` vectors.
#[inline(always)]
unsafe fn add_vectors<V: SimdVector, const ROWS: usize, const PREFETCH: bool>(
    a: *const V::Scalar,
    (b, ldb): (*const V::Scalar, usize),
    count: usize,
    sums: &mut [[V; MAX_LANE_VECTORS]; N_UNROLL],
) {
    // SAFETY: row and vector indices are less than `ROWS` and `count`; prefetches never fault.
    unsafe {
        let mut x = [V::splat(V::Scalar::zero()); K_UNROLL];
        for (i, x) in x.iter_mut().enumerate().take(count) {
            *x = V::load(a.wrapping_add(i * V::WIDTH));
        }
        for (j, sums) in sums.iter_mut().enumerate().take(ROWS) {
            for (i, x) in x.iter().enumerate().take(count) {
                let row = b.wrapping_add(j * ldb + i * V::WIDTH);
                if PREFETCH {
                    // Prefetch the next `ROWS` rows, because the hardware prefetcher must detect
                    // the access pattern of each row anew.
                    V::prefetch(row.wrapping_add(ROWS * ldb));
                }
                let sum = &mut sums[i % lane_vectors::<V>()];
                *sum = x.mul_add(V::load(row), *sum);
            }
        }
    }
}

/// Computes `C` in tiles of `MR` rows and `NR` columns. At the right and bottom edges of `C`, a
/// tile overlaps the preceding tile.
///
/// # Safety
/// The requirements of [`gemm_dot`] hold, m is at least `MR`, and n is at least `NR`.
#[inline(always)]
unsafe fn multiply_tiles<V: SimdVector, const MR: usize, const NR: usize>(p: &RawGemm<V::Scalar>) {
    let row_tiles = p.m.div_ceil(MR);
    for (column_tile, column) in (0..p.n).step_by(NR).enumerate() {
        let first_column = column.min(p.n - NR);
        for i in 0..row_tiles {
            // Alternate between ascending and descending rows, so that a tile reads the rows of `A`
            // that the preceding tiles have left in L1.
            let row_tile = if column_tile % 2 == 0 { i } else { row_tiles - 1 - i };
            let row = row_tile * MR;
            let first_row = row.min(p.m - MR);
            // Only the last tile of a pass over `A` prefetches, because all tiles of the pass read
            // the same rows of `B`.
            let prefetch_rows = if i + 1 == row_tiles { NR } else { 0 };
            // SAFETY: the tile is within the m rows of `A` and `C`, and the n rows of `B`.
            unsafe {
                let sums = dot_tile::<V, MR, NR>(p, first_row, first_column, prefetch_rows);
                let c = p.c.add(first_row * p.ldc + first_column);
                if (row, column) == (first_row, first_column) {
                    // Constant ranges let the compiler unroll the loops.
                    add_to_c(&sums, 0..MR, 0..NR, p.beta, (c, p.ldc));
                } else {
                    let (rows, columns) = (row - first_row..MR, column - first_column..NR);
                    add_to_c(&sums, rows, columns, p.beta, (c, p.ldc));
                }
            }
        }
    }
}

/// Computes `C ← sums + β·C` for the given rows and columns of a tile of `C`. The first element of
/// the tile is at `c`.
///
/// # Safety
/// The rows and columns are within `sums`, and are valid for reads and writes in `C`.
#[inline(always)]
pub(super) unsafe fn add_to_c<S: Float, const MR: usize, const NR: usize>(
    sums: &[[S; NR]; MR],
    rows: Range<usize>,
    columns: Range<usize>,
    beta: S,
    (c, ldc): (*mut S, usize),
) {
    for i in rows {
        for j in columns.clone() {
            // SAFETY: the caller guarantees that the element is valid.
            unsafe {
                let c = c.add(i * ldc + j);
                let scaled_c = if beta.is_zero() { S::zero() } else { beta * *c };
                *c = sums[i][j] + scaled_c;
            }
        }
    }
}

/// Returns α times the dot products of `MR` rows of `A` with `NR` rows of `B`. Prefetches `NR` rows
/// of `B`, which start `prefetch_rows` rows after row `column` of `B`.
///
/// # Safety
/// The requirements of [`gemm_dot`] hold, `row + MR` is at most m, and `column + NR` is at most n.
#[inline(always)]
unsafe fn dot_tile<V: SimdVector, const MR: usize, const NR: usize>(
    p: &RawGemm<V::Scalar>,
    row: usize,
    column: usize,
    prefetch_rows: usize,
) -> [[V::Scalar; NR]; MR] {
    // SAFETY: the whole vectors and the remaining `tail_len` elements are the k elements of each
    // row.
    unsafe {
        let vectors = lane_vectors::<V>();
        let (lanes, tail_len) = (vectors * V::WIDTH, p.k % (vectors * V::WIDTH));
        let mut groups = [[[V::splat(V::Scalar::zero()); NR]; MR]; MAX_LANE_VECTORS];
        // The registers hold one vector of lanes of each dot product at a time. The rows of the tile
        // stay in L1 until all vectors of lanes are computed.
        for (group, sums) in groups.iter_mut().enumerate().take(vectors) {
            let mut a = p.a.add(row * p.lda).wrapping_add(group * V::WIDTH);
            let mut b = p.b.add(column * p.ldb).wrapping_add(group * V::WIDTH);
            let mut lane_sums = *sums;
            for _ in 0..p.k / lanes {
                let mut y = [V::splat(V::Scalar::zero()); NR];
                for (j, y) in y.iter_mut().enumerate() {
                    *y = V::load(b.add(j * p.ldb));
                    // Prefetch the rows of the next tile, because the hardware prefetcher must
                    // detect the access pattern of each row anew. A prefetch of the current row
                    // (for `prefetch_rows` = 0) costs less than a branch.
                    V::prefetch(b.wrapping_add((j + prefetch_rows) * p.ldb));
                }
                for (i, sums) in lane_sums.iter_mut().enumerate() {
                    let x = V::load(a.add(i * p.lda));
                    // Avoid `zip`, because without link-time optimization the constructor of `zip`
                    // is a function call.
                    for (j, sum) in sums.iter_mut().enumerate() {
                        *sum = x.mul_add(y[j], *sum);
                    }
                }
                a = a.wrapping_add(lanes);
                b = b.wrapping_add(lanes);
            }
            if tail_len > 0 {
                let count = tail_len.saturating_sub(group * V::WIDTH).min(V::WIDTH);
                for (i, sums) in lane_sums.iter_mut().enumerate() {
                    let x = V::load_first(a.wrapping_add(i * p.lda), count);
                    for (j, sum) in sums.iter_mut().enumerate() {
                        let y = V::load_first(b.wrapping_add(j * p.ldb), count);
                        *sum = x.mul_add(y, *sum);
                    }
                }
            }
            *sums = lane_sums;
        }
        let [first, second, third, fourth] = groups;
        let mut sums = [[V::Scalar::zero(); NR]; MR];
        let sums_at_once = if V::WIDTH >= 8 { 8 } else { 4 };
        for (i, sums) in sums.as_flattened_mut().chunks_mut(sums_at_once).enumerate() {
            // The indices are constants, so that the compiler keeps the vectors in registers.
            let mut vectors = [V::splat(V::Scalar::zero()); 8];
            for (j, vector) in vectors.iter_mut().enumerate().take(sums.len().max(4)) {
                let index = (i * sums_at_once + j) % (MR * NR);
                let (i, j) = (index / NR, index % NR);
                *vector =
                    add_vectors_of_lanes([first[i][j], second[i][j], third[i][j], fourth[i][j]]);
            }
            if sums.len() > 4 {
                let scaled_sums = V::splat(p.alpha).mul(V::horizontal_sum8(vectors));
                scaled_sums.store_first(sums.as_mut_ptr(), sums.len());
            } else {
                let [a, b, c, d, ..] = vectors;
                let group = V::horizontal_sum4([a, b, c, d]);
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = p.alpha * group[j];
                }
            }
        }
        sums
    }
}

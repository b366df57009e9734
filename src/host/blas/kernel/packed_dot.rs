//! Dot kernel with a packed `A`, for few rows of `A` and a large `B`.

use crate::host::{
    blas::kernel::{
        args::RawGemm,
        dot_kernel::{KC_BYTES, L2_B_LEN, LANES_BYTES, add_to_c, kc, lane_vectors},
    },
    simd::vector::SimdVector,
};
use num_traits::{One, Zero};
use std::{
    mem::MaybeUninit,
    ops::{Range, RangeInclusive},
};

/// Number of vectors of 64 bytes in KC.
const KC_VECTORS: usize = KC_BYTES / LANES_BYTES;

/// Values of m for which `A` is packed. A tile with fewer rows would have too few sums to hide the
/// latency of additions, and a tile with more rows would need too many registers.
const PACKED_M: RangeInclusive<usize> = 5..=MAX_MR;

const MAX_MR: usize = 12;

/// Number of columns of a tile with a packed `A`.
const NR: usize = 2;

/// Number of columns for which the lanes are buffered between two parts of k.
const COLUMNS: usize = 64;

/// Largest number of steps along k, in vectors, that a tile with a packed `A` adds at a time.
const PART_VECTORS: usize = 32;

/// Returns whether [`gemm_packed_dot`] supports the GEMM, and was faster than
/// [`gemm_dot`](super::dot_kernel::gemm_dot) for similar shapes. Both compute the same bits.
#[inline(always)]
pub(super) fn packed_dot_is_faster<V: SimdVector>(p: &RawGemm<V::Scalar>) -> bool {
    let has_one_vector = V::HAS_32_REGISTERS && lane_vectors::<V>() == 1;
    has_one_vector && p.n * p.k > L2_B_LEN && PACKED_M.contains(&p.m)
}

/// Computes `C ← α·A·Bᵀ + β·C` with a packed `A`.
///
/// # Safety
/// The requirements of [`gemm_dot`](super::dot_kernel::gemm_dot) hold, and
/// [`packed_dot_is_faster`] returns true.
#[inline(always)]
pub(super) unsafe fn gemm_packed_dot<V: SimdVector>(p: &RawGemm<V::Scalar>) {
    let kc = kc::<V::Scalar>(p.k);
    for start in (0..p.k).step_by(kc) {
        let k = kc.min(p.k - start);
        let beta = if start == 0 { p.beta } else { V::Scalar::one() };
        // SAFETY: the block is within k, so its operands are within those of `p`.
        unsafe {
            let (a, b) = (p.a.add(start), p.b.add(start));
            multiply_few_rows::<V>(&RawGemm { k, beta, a, b, ..*p });
        }
    }
}

/// Calls [`multiply_packed`] with the smallest tile that has at least m rows.
///
/// # Safety
/// The requirements of [`multiply_packed`] hold, and [`PACKED_M`] contains m.
#[inline(always)]
unsafe fn multiply_few_rows<V: SimdVector>(p: &RawGemm<V::Scalar>) {
    macro_rules! run {
        ($mr:literal) => {
            V::outline(
                #[inline(always)]
                || multiply_packed::<V, $mr>(p),
            )
        };
    }
    // SAFETY: the caller meets the requirements of `multiply_packed`.
    unsafe {
        match p.m {
            0..9 => run!(8),
            9..11 => run!(10),
            _ => run!(12),
        }
    }
}

/// Computes `C ← α·A·Bᵀ + β·C` for a large `B`, in tiles of `MR` rows and [`NR`] columns.
/// `MR` is at least m: the tile repeats the last row of `A`.
///
/// Rows of `A` and `B` are often a multiple of 4 KiB apart, so that the vectors of all rows at one
/// step along k share a set of L1. `multiply_packed` therefore copies the rows of `A` into one
/// panel. The part of the panel that [`PART_VECTORS`] steps along k read occupies up to six of the
/// eight ways of a 32 KiB L1, which leaves a way for each of the two rows of `B`. Between two
/// parts, the lanes of the sums stay in a buffer, so the order of additions is that of the other
/// tiles.
///
/// # Safety
/// The requirements of [`gemm_packed_dot`] hold. k is at most [`kc`], m is at most `MR`, and `MR` is
/// at most [`MAX_MR`].
#[inline(always)]
unsafe fn multiply_packed<V: SimdVector, const MR: usize>(p: &RawGemm<V::Scalar>) {
    let mut panel = [const { MaybeUninit::<V>::uninit() }; MAX_MR * KC_VECTORS];
    let mut lanes = [const { MaybeUninit::<V>::uninit() }; MAX_MR * COLUMNS];
    let panel = panel.as_mut_ptr().cast::<V::Scalar>();
    let lanes = lanes.as_mut_ptr().cast::<V::Scalar>();
    let vectors = p.k.div_ceil(V::WIDTH);
    let part_vectors = vectors.div_ceil(vectors.div_ceil(PART_VECTORS));
    // SAFETY: the panel holds `MR` vectors for each of at most `KC_VECTORS` steps along k. The
    // buffer `lanes` holds `MR` vectors for each of at most `COLUMNS` columns. All rows,
    // columns and steps along k are within the operands of `p`.
    unsafe {
        for v in 0..vectors {
            let count = V::WIDTH.min(p.k - v * V::WIDTH);
            for i in 0..MR {
                let a = p.a.add(i.min(p.m - 1) * p.lda + v * V::WIDTH);
                V::load_first(a, count).store(panel.add((v * MR + i) * V::WIDTH));
            }
        }
        for first_column in (0..p.n).step_by(COLUMNS) {
            let columns = COLUMNS.min(p.n - first_column);
            for first in (0..vectors).step_by(part_vectors) {
                let end = vectors.min(first + part_vectors);
                for column in (0..columns).step_by(NR) {
                    let tile = PackedTile {
                        panel,
                        lanes: lanes.add(column * MR * V::WIDTH),
                        steps: first..end,
                        column: first_column + column,
                        columns: NR.min(columns - column),
                    };
                    packed_tile::<V, MR>(p, &tile);
                }
            }
        }
    }
}

/// A tile of [`multiply_packed`], and the steps along k that it adds, in vectors.
struct PackedTile<S> {
    panel: *const S,
    /// Lanes of the tile's sums between two parts of k.
    lanes: *mut S,
    steps: Range<usize>,
    column: usize,
    columns: usize,
}

/// Adds `tile.steps` to the lanes of a tile. After the last step of k, writes the tile to `C`.
///
/// # Safety
/// The requirements of [`multiply_packed`] hold, and the tile is within `C`. The panel and the
/// lanes are valid for the accesses of the tile. The lanes are initialized unless `tile.steps`
/// starts at 0.
#[inline(always)]
unsafe fn packed_tile<V: SimdVector, const MR: usize>(
    p: &RawGemm<V::Scalar>,
    tile: &PackedTile<V::Scalar>,
) {
    // SAFETY: row, column and vector indices are within the tile, the panel and the lanes. The
    // masked loads read only the k elements of each row of `B`. Prefetches never fault.
    unsafe {
        let lane = |i: usize, j: usize| (i * NR + j) * V::WIDTH;
        let mut sums = [[V::splat(V::Scalar::zero()); NR]; MR];
        if tile.steps.start > 0 {
            for (i, sums) in sums.iter_mut().enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = V::load(tile.lanes.add(lane(i, j)));
                }
            }
        }
        // If only one column is left, the second sum of each row repeats the first.
        let stride = if tile.columns == NR { p.ldb } else { 0 };
        let mut b = p.b.add(tile.column * p.ldb + tile.steps.start * V::WIDTH);
        let mut a = tile.panel.add(tile.steps.start * MR * V::WIDTH);
        let whole_end = tile.steps.end.min(p.k / V::WIDTH);
        for _ in tile.steps.start..whole_end {
            let mut y = [V::splat(V::Scalar::zero()); NR];
            for (j, y) in y.iter_mut().enumerate() {
                *y = V::load(b.add(j * stride));
                // Prefetch the rows of the next tile, because the hardware prefetcher must detect
                // the access pattern of each row anew. In L1, these rows would evict `A`.
                V::prefetch_l2(b.wrapping_add((NR + j) * p.ldb));
            }
            add_step::<V, MR>(&mut sums, a, y);
            a = a.wrapping_add(MR * V::WIDTH);
            b = b.wrapping_add(V::WIDTH);
        }
        if whole_end < tile.steps.end {
            let count = p.k % V::WIDTH;
            let mut y = [V::splat(V::Scalar::zero()); NR];
            for (j, y) in y.iter_mut().enumerate() {
                *y = V::load_first(b.add(j * stride), count);
            }
            add_step::<V, MR>(&mut sums, a, y);
        }
        if tile.steps.end * V::WIDTH < p.k {
            for (i, sums) in sums.iter().enumerate() {
                for (j, &sum) in sums.iter().enumerate() {
                    sum.store(tile.lanes.add(lane(i, j)));
                }
            }
            return;
        }
        let mut dot_products = [[V::Scalar::zero(); NR]; MR];
        let mut chunks = dot_products.as_flattened_mut().chunks_exact_mut(8);
        for (i, chunk) in chunks.by_ref().enumerate() {
            // The indices are constants, so that the compiler keeps the vectors in registers.
            let mut vectors = [V::splat(V::Scalar::zero()); 8];
            for (j, vector) in vectors.iter_mut().enumerate() {
                let index = (8 * i + j) % (MR * NR);
                *vector = sums[index / NR][index % NR];
            }
            let scaled_sums = V::splat(p.alpha).mul(V::horizontal_sum8(vectors));
            scaled_sums.store_first(chunk.as_mut_ptr(), 8);
        }
        for (i, chunk) in chunks.into_remainder().chunks_exact_mut(4).enumerate() {
            let first = MR * NR / 8 * 8 + 4 * i;
            let mut vectors = [V::splat(V::Scalar::zero()); 4];
            for (j, vector) in vectors.iter_mut().enumerate() {
                let index = (first + j) % (MR * NR);
                *vector = sums[index / NR][index % NR];
            }
            let group = V::horizontal_sum4(vectors);
            for (sum, &group) in chunk.iter_mut().zip(&group) {
                *sum = p.alpha * group;
            }
        }
        add_to_c(&dot_products, 0..p.m, 0..tile.columns, p.beta, (p.c.add(tile.column), p.ldc));
    }
}

/// Adds to the lanes of each sum the products of one vector of each packed row at `a` and the
/// vectors `y` of the rows of `B`.
///
/// # Safety
/// The processor supports the vector type `V`, and `a` is valid for reads of `MR` vectors.
#[inline(always)]
unsafe fn add_step<V: SimdVector, const MR: usize>(
    sums: &mut [[V; NR]; MR],
    a: *const V::Scalar,
    y: [V; NR],
) {
    for (i, sums) in sums.iter_mut().enumerate() {
        // SAFETY: `i` is less than `MR`.
        unsafe {
            let x = V::load(a.add(i * V::WIDTH));
            // Avoid `zip`, because without link-time optimization the constructor of `zip` is a
            // function call.
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = x.mul_add(y[j], *sum);
            }
        }
    }
}

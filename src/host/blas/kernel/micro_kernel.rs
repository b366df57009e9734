//! GEMM micro-kernel: updates one MR×NR tile of `C`, held in registers, with a sum over k.
//!
//! NR is `NR_VECTORS` times the number of elements in a vector. Each element of `C` is computed by
//! one chain of fused multiply-adds in the order of k, wherever the element lies in the tile.

use crate::host::{
    blas::kernel::args::RawGemm, cache::cache_line::CACHE_LINE, simd::vector::SimdVector,
};
use num_traits::Zero;
use std::ops::Range;

/// Prefetch distance within a packed panel, in steps along k.
const PREFETCH_K_STEPS: usize = 16;

// Modes of `micro_kernel`, which select how the kernel loads rows of `B`. Modes are integers,
// because stable Rust does not support enums as const parameters.

/// Mode in which `B` is a packed micro-panel: every vector is loaded whole, and the panels are
/// prefetched.
pub(crate) const B_PACKED: u8 = 0;

/// Mode in which `B` is an unpacked matrix, and the tile covers whole vectors of each row of `B`.
pub(crate) const B_WHOLE_VECTORS: u8 = 1;

/// Mode in which `B` is an unpacked matrix, and the tile may cover only a part of the last vector
/// of each row of `B`.
pub(crate) const B_MASKED_TAIL: u8 = 2;

/// Mode in which `B` is an unpacked matrix, and the tile may begin and end within a vector of each
/// row of `B`.
pub(crate) const B_MASKED: u8 = 3;

/// Tile of `C` whose first element is at row `row` and column `column` of `C`. The micro-kernel
/// writes only the ranges `rows` and `columns` of the tile.
pub(crate) struct MicroTile {
    pub(crate) row: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) column: usize,
    pub(crate) columns: Range<usize>,
}

/// Computes one tile of `C`. The const parameter `B_MODE` is a mode, such as [`B_PACKED`], that
/// selects how rows of `B` are loaded. The strides of `A` along m and k are `stride_m` and
/// `stride_k`.
///
/// `micro_kernel` is not inlined in unoptimized builds, where the stack frames of all tile sizes
/// together would overflow the stack.
///
/// # Safety
/// - The processor supports the vector type `V`.
/// - `p.a` is valid for reads of k elements in each of the `MR` rows from row `tile.row` on.
/// - `p.b` is valid for reads of k rows from column `tile.column` on. In each row of `B`, the
///   columns `tile.columns` are readable, or all vectors if `B_MODE` selects loads of whole
///   vectors.
/// - `p.c` is valid for reads and writes of the tile's rows and columns, and no other thread
///   accesses `C`. If β is 0, the micro-kernel does not read `p.c`.
/// - `p.bias` is null or valid for reads of the tile's rows.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) unsafe fn micro_kernel<
    V: SimdVector,
    const MR: usize,
    const NR_VECTORS: usize,
    const B_MODE: u8,
>(
    p: &RawGemm<V::Scalar>,
    (stride_m, stride_k): (usize, usize),
    tile: MicroTile,
) {
    // SAFETY: `accumulate` reads only steps of `a` and `b` below k, and `write_back` accesses only
    // rows and columns of the tile. The caller guarantees that the pointers in `p` are valid for
    // the accesses of `accumulate` and `write_back`.
    unsafe {
        let mut a = p.a.add(tile.row * stride_m);
        let mut b = p.b.wrapping_add(tile.column);
        // If all columns are written, a constant column range lets the compiler evaluate the masks
        // at compile time.
        let columns =
            if B_MODE == B_WHOLE_VECTORS { 0..NR_VECTORS * V::WIDTH } else { tile.columns };
        let tile = MicroTile { columns: columns.clone(), ..tile };
        let masks = masks::<V, NR_VECTORS>(&columns);
        let mut sums = [[V::splat(V::Scalar::zero()); NR_VECTORS]; MR];
        // Process two steps along k at a time, to halve the number of address computations. If the
        // two steps also prefetched `B`, the compiler would load all their elements of `A` at once,
        // and spill these elements to the stack.
        let has_pairs = V::HAS_32_REGISTERS && NR_VECTORS <= 2 && p.prefetch_rows == 0;
        let pairs = if has_pairs { p.k / 2 } else { 0 };
        let prefetch = p.prefetch_rows * p.ldb;
        let strides = (stride_m, stride_k);
        for _ in 0..pairs {
            let b_strides = (p.ldb, 0);
            accumulate::<V, MR, NR_VECTORS, B_MODE, 2>(&mut sums, a, strides, b, b_strides, &masks);
            a = a.wrapping_add(2 * stride_k);
            b = b.wrapping_add(2 * p.ldb);
        }
        for _ in 2 * pairs..p.k {
            let b_strides = (p.ldb, prefetch);
            accumulate::<V, MR, NR_VECTORS, B_MODE, 1>(&mut sums, a, strides, b, b_strides, &masks);
            a = a.wrapping_add(stride_k);
            b = b.wrapping_add(p.ldb);
        }
        write_back::<V, MR, NR_VECTORS, B_MODE>(p, &sums, &tile, masks);
    }
}

/// Adds the products of `STEPS` steps along k to each sum of the tile. Rows of `B` are `ldb`
/// elements apart. With 32 registers and two vectors in the mode [`B_WHOLE_VECTORS`], a single step
/// also prefetches into L2, with a prefetch distance of `prefetch` elements of `B`.
///
/// # Safety
/// The processor supports the vector type `V`. `a` is valid for reads of `MR` rows of `STEPS`
/// elements. In `STEPS` rows of `b`, the elements that are loaded in the mode `B_MODE` are
/// readable.
#[inline(always)]
unsafe fn accumulate<
    V: SimdVector,
    const MR: usize,
    const NR_VECTORS: usize,
    const B_MODE: u8,
    const STEPS: usize,
>(
    sums: &mut [[V; NR_VECTORS]; MR],
    a: *const V::Scalar,
    (stride_m, stride_k): (usize, usize),
    b: *const V::Scalar,
    (ldb, prefetch): (usize, usize),
    masks: &[V::Mask; NR_VECTORS],
) {
    // SAFETY: step, row and vector indices are less than `STEPS`, `MR` and `NR_VECTORS`. Masks
    // exclude the elements of `b` that may be unreadable.
    unsafe {
        let mut rows = [[V::splat(V::Scalar::zero()); NR_VECTORS]; STEPS];
        for (t, row) in rows.iter_mut().enumerate() {
            for (j, row) in row.iter_mut().enumerate() {
                let b = b.wrapping_add(t * ldb + j * V::WIDTH);
                *row = match B_MODE {
                    B_MASKED => V::load_masked(b, masks[j]),
                    B_MASKED_TAIL if j + 1 == NR_VECTORS => V::load_masked(b, masks[j]),
                    _ => V::load(b),
                };
                // A distance of 0 prefetches the vector that has just been loaded, which costs less
                // than a branch.
                if V::HAS_32_REGISTERS && B_MODE == B_WHOLE_VECTORS && NR_VECTORS == 2 && STEPS == 1
                {
                    V::prefetch_l2(b.wrapping_add(prefetch));
                }
                if B_MODE == B_PACKED {
                    V::prefetch(b.wrapping_add(PREFETCH_K_STEPS * ldb));
                }
            }
        }
        // Do not prefetch rows of `A` that are read in place (`stride_k` = 1), because the hardware
        // prefetcher detects these sequential reads.
        if B_MODE == B_PACKED && stride_k > 1 {
            for offset in (0..STEPS * MR).step_by(CACHE_LINE / size_of::<V::Scalar>()) {
                V::prefetch(a.wrapping_add(PREFETCH_K_STEPS * stride_k + offset));
            }
        }
        for (i, sums) in sums.iter_mut().enumerate() {
            for (t, row) in rows.iter().enumerate() {
                let x = V::splat(*a.add(i * stride_m + t * stride_k));
                // Avoid `zip`, because without link-time optimization the constructor of `zip` is a
                // function call.
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = x.mul_add(row[j], *sum);
                }
            }
        }
    }
}

/// Returns, for each vector of a tile row, the mask that selects the vector's elements in
/// `columns`.
///
/// # Safety
/// The processor supports the vector type `V`.
#[inline(always)]
unsafe fn masks<V: SimdVector, const NR_VECTORS: usize>(
    columns: &Range<usize>,
) -> [V::Mask; NR_VECTORS] {
    // SAFETY: the processor supports the vector type `V`, and bounds are clamped to `V::WIDTH`.
    unsafe {
        let mut masks = [V::mask(0, 0); NR_VECTORS];
        for (j, mask) in masks.iter_mut().enumerate() {
            let clamp = |column: usize| column.saturating_sub(j * V::WIDTH).min(V::WIDTH);
            *mask = V::mask(clamp(columns.start), clamp(columns.end));
        }
        masks
    }
}

/// Computes `C ← α·sums + β·C + bias` for the elements of the tile.
///
/// # Safety
/// The processor supports the vector type `V`, and `p.c` and `p.bias` are valid as [`micro_kernel`]
/// requires.
#[inline(always)]
unsafe fn write_back<V: SimdVector, const MR: usize, const NR_VECTORS: usize, const B_MODE: u8>(
    p: &RawGemm<V::Scalar>,
    sums: &[[V; NR_VECTORS]; MR],
    tile: &MicroTile,
    masks: [V::Mask; NR_VECTORS],
) {
    // SAFETY: either the tile writes all `MR` rows, or `write_back_rows` writes only the rows
    // `tile.rows`. Masks exclude columns outside the tile, and stores are unmasked only if the tile
    // writes all columns.
    unsafe {
        let c = p.c.wrapping_add(tile.row * p.ldc + tile.column);
        let (alpha, beta) = (V::splat(p.alpha), V::splat(p.beta));
        let adds_bias = !p.bias.is_null();
        if tile.rows != (0..MR) || (adds_bias && !p.beta.is_zero()) {
            return write_back_rows::<V, MR, NR_VECTORS>(p, *sums, tile, masks);
        }
        // In the modes that mask loads of `B`, mask the stores as well: a constant `is_full_width`
        // of `false` lets the compiler omit two of the four loops below.
        let is_full_width = match B_MODE {
            B_MASKED | B_MASKED_TAIL => false,
            _ => tile.columns == (0..NR_VECTORS * V::WIDTH),
        };
        // The compiler unrolls branch-free loops of constant length, so sums stay in registers.
        macro_rules! for_each_sum {
            (|$i:ident, $c:ident, $sum:ident, $mask:ident| $store:expr) => {
                for ($i, sums) in sums.iter().enumerate() {
                    for (j, &$sum) in sums.iter().enumerate() {
                        let ($c, $mask) = (c.wrapping_add($i * p.ldc + j * V::WIDTH), masks[j]);
                        $store
                    }
                }
            };
        }
        match (p.beta.is_zero(), is_full_width) {
            (true, true) if adds_bias => for_each_sum!(|i, c, sum, _mask| {
                alpha.mul(sum).add(V::splat(*p.bias.add(tile.row + i))).store(c)
            }),
            (true, false) if adds_bias => for_each_sum!(|i, c, sum, mask| {
                alpha.mul(sum).add(V::splat(*p.bias.add(tile.row + i))).store_masked(c, mask)
            }),
            (true, true) => for_each_sum!(|i, c, sum, _mask| alpha.mul(sum).store(c)),
            (true, false) => for_each_sum!(|i, c, sum, mask| alpha.mul(sum).store_masked(c, mask)),
            (false, true) => {
                for_each_sum!(|i, c, sum, _mask| {
                    alpha.mul_add(sum, beta.mul(V::load(c))).store(c);
                });
            }
            (false, false) => {
                for_each_sum!(|i, c, sum, mask| {
                    let scaled_c = beta.mul(V::load_masked(c, mask));
                    alpha.mul_add(sum, scaled_c).store_masked(c, mask);
                });
            }
        }
    }
}

/// Like [`write_back`], but writes only the rows `tile.rows`, and supports a bias together with any
/// β.
///
/// # Safety
/// The requirements of [`write_back`] hold.
#[inline(always)]
unsafe fn write_back_rows<V: SimdVector, const MR: usize, const NR_VECTORS: usize>(
    p: &RawGemm<V::Scalar>,
    sums: [[V; NR_VECTORS]; MR],
    tile: &MicroTile,
    masks: [V::Mask; NR_VECTORS],
) {
    // SAFETY: only the tile's rows are accessed, and masks exclude columns outside the tile.
    unsafe {
        let (alpha, beta) = (V::splat(p.alpha), V::splat(p.beta));
        for i in tile.rows.clone() {
            let row = tile.row + i;
            for (j, &sum) in sums[i].iter().enumerate() {
                let c = p.c.wrapping_add(row * p.ldc + tile.column + j * V::WIDTH);
                let mut value = alpha.mul(sum);
                if !p.beta.is_zero() {
                    let old_c = V::load_masked(c, masks[j]);
                    value = alpha.mul_add(sum, beta.mul(old_c));
                }
                if !p.bias.is_null() {
                    value = value.add(V::splat(*p.bias.add(row)));
                }
                value.store_masked(c, masks[j]);
            }
        }
    }
}

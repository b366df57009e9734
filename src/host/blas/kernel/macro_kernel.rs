//! Packed GEMM: the loops around the micro-kernel, after Goto and van de Geijn (2008) and BLIS.
//!
//! Packing copies both operands into panels, so that the micro-kernel reads memory sequentially.
//! `A` is read in place if packing would not be faster.

use crate::host::{
    blas::kernel::{
        args::RawGemm,
        blocking::{a_is_read_in_place, kc, mc, mr, nc, split_workspace},
        micro_kernel::{B_PACKED, MicroTile, micro_kernel},
        packing::PackSource,
        portable::{COLUMNS, ROWS, multiply_packed},
    },
    cache::cache_line::CACHE_LINE,
    simd::{
        dispatch::{SimdKernel, SimdScalar},
        vector::SimdVector,
    },
};

/// Largest number of rows of `A` that are packed at a time if only one panel of `B` multiplies `A`.
/// The kernel rounds the number down to a multiple of MR. Such a panel of `A` is still in L2 when the
/// micro-kernel reads it, but MC rows may exceed L2 (decision 56).
const SHORT_A_ROWS: usize = 64;

/// Packed GEMM `C ← α·op(A)·op(B) + β·C + bias` on the calling thread.
///
/// Calling [`SimdKernel::run`] is safe if all of these conditions hold:
/// - `p.c` is valid for reads and writes of m rows of n elements, and no other thread accesses
///   them;
/// - `p.bias` is null or valid for reads of m elements;
/// - `a_strides` is `None`, or `p.a` is valid for reads of m×k elements with strides `a_strides`.
pub(crate) struct PackedGemm<'a, S> {
    pub(crate) a: &'a dyn PackSource<S>,
    /// Strides along m and k of `op(A)`, which starts at `p.a`; one of the two strides is 1. `None`
    /// if `op(A)` exists only as the pack source `a`, and not as a matrix in memory.
    pub(crate) a_strides: Option<(usize, usize)>,
    pub(crate) b: &'a dyn PackSource<S>,
    /// Arguments of the GEMM. The kernel ignores `p.b` and `p.ldb`, because `b` supplies the panels
    /// of `B`.
    pub(crate) p: &'a RawGemm<S>,
    /// Buffer of [`workspace_len`](super::blocking::workspace_len) elements for the panels, which
    /// starts at a cache-line boundary.
    pub(crate) workspace: &'a mut [S],
}

impl<S: SimdScalar> SimdKernel<S> for PackedGemm<'_, S> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = S>>(self) {
        macro_rules! run {
            ($mr:literal, $nr_vectors:literal) => {
                V::outline(
                    #[inline(always)]
                    || self.run_with_tile::<V, $mr, $nr_vectors>(),
                )
            };
        }
        // SAFETY: the caller meets the requirements of `run_with_tile`.
        unsafe {
            match mr::<V>(self.p.m) {
                12 if V::HAS_32_REGISTERS => run!(12, 2),
                10 if V::HAS_32_REGISTERS => run!(10, 2),
                8 if V::HAS_32_REGISTERS => run!(8, 2),
                _ if V::HAS_32_REGISTERS => run!(4, 2),
                _ => run!(4, 3),
            }
        }
    }

    unsafe fn run_portable(self) {
        let Self { a, b, p, workspace, .. } = self;
        let (mc, nc, kc) = (mc(ROWS), nc::<S>([p.m, p.n, p.k], COLUMNS), kc::<S>(p.k));
        let (b_panel, a_panel) = split_workspace(workspace, kc, nc);
        for start in (0..p.k).step_by(kc) {
            let k = kc.min(p.k - start);
            for row in (0..p.m).step_by(mc) {
                let m = mc.min(p.m - row);
                a.pack(row..row + m, start..start + k, ROWS, a_panel);
                for column in (0..p.n).step_by(nc) {
                    let n = nc.min(p.n - column);
                    b.pack(column..column + n, start..start + k, COLUMNS, b_panel);
                    let beta = if start == 0 { p.beta } else { S::one() };
                    let bias = if start == 0 { bias_at(p.bias, row) } else { std::ptr::null() };
                    // SAFETY: the block lies within the GEMM that `p` describes, and the panels
                    // hold its operands.
                    unsafe {
                        let (a, b) = (a_panel.as_ptr(), b_panel.as_ptr());
                        let c = p.c.add(row * p.ldc + column);
                        multiply_packed(&RawGemm { m, n, k, beta, a, b, c, bias, ..*p });
                    }
                }
            }
        }
    }
}

impl<S: SimdScalar> PackedGemm<'_, S> {
    /// Runs the GEMM loops over blocks of MC, KC and NC, with tiles of `MR` rows by `NR_VECTORS`
    /// vectors.
    ///
    /// # Safety
    /// The requirements of [`PackedGemm`] hold, and the processor supports the vector type `V`.
    #[inline(always)]
    unsafe fn run_with_tile<V: SimdVector<Scalar = S>, const MR: usize, const NR_VECTORS: usize>(
        self,
    ) {
        let Self { a, a_strides, b, p, workspace } = self;
        let nr = NR_VECTORS * V::WIDTH;
        let (mc, nc, kc) = (mc(MR), nc::<S>([p.m, p.n, p.k], nr), kc::<S>(p.k));
        let (k_blocks, n_blocks) = (p.k.div_ceil(kc), p.n.div_ceil(nc));
        let last_block_rows = p.m.saturating_sub(1) % mc + 1;
        let in_place = a_strides
            .filter(|&strides| last_block_rows >= MR && a_is_read_in_place::<S>(strides, MR, p.n));
        let (b_panel, a_panel) = split_workspace(workspace, kc, nc);
        // If only one panel of `B` multiplies `A`, short panels of `A` stay in L2, and `B` is packed
        // no more often.
        let has_short_a = in_place.is_none() && n_blocks == 1;
        let a_rows = if has_short_a { SHORT_A_ROWS / MR * MR } else { mc };
        for row in (0..p.m).step_by(mc) {
            let end = p.m.min(row + mc);
            for i in 0..k_blocks * n_blocks {
                // If `A` is read in place, the loop over k is the inner loop, so that the block of
                // `C` stays in cache. If `A` is packed, the loop over k is the outer loop, so that
                // each panel of `A` is packed once.
                let (k_block, n_block) = match in_place {
                    Some(_) => (i % k_blocks, i / k_blocks),
                    None => (i / n_blocks, i % n_blocks),
                };
                let (start, column) = (k_block * kc, n_block * nc);
                let (k, n) = (kc.min(p.k - start), nc.min(p.n - column));
                b.pack(column..column + n, start..start + k, nr, b_panel);
                let beta = if start == 0 { p.beta } else { S::one() };
                for row in (row..end).step_by(a_rows) {
                    let m = a_rows.min(end - row);
                    if in_place.is_none() && column == 0 {
                        a.pack(row..row + m, start..start + k, MR, a_panel);
                    }
                    // SAFETY: the rows, columns and steps along k of the block lie within the GEMM
                    // that `p` describes. `b_panel` has micro-panels of `nr` columns, and a packed
                    // `A` has micro-panels of `MR` rows. If `A` is read in place, each block of `A`
                    // has at least `MR` rows.
                    unsafe {
                        let c = p.c.add(row * p.ldc + column);
                        let bias = if start == 0 { bias_at(p.bias, row) } else { std::ptr::null() };
                        let block = RawGemm { m, n, k, beta, b: b_panel.as_ptr(), c, bias, ..*p };
                        let block = |a| RawGemm { a, ..block };
                        // A stride that is the constant 1 lets the compiler specialize the
                        // micro-kernel.
                        match in_place {
                            None => {
                                let block = block(a_panel.as_ptr());
                                multiply_panels::<V, MR, NR_VECTORS>(&block, (1, MR), true);
                            }
                            Some((1, stride_k)) => {
                                let block = block(p.a.add(row + start * stride_k));
                                multiply_panels::<V, MR, NR_VECTORS>(&block, (1, stride_k), false);
                            }
                            Some((stride_m, _)) => {
                                let block = block(p.a.add(row * stride_m + start));
                                multiply_panels::<V, MR, NR_VECTORS>(&block, (stride_m, 1), false);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a pointer to the bias of row `row`, or null if there is no bias.
#[inline(always)]
fn bias_at<S>(bias: *const S, row: usize) -> *const S {
    if bias.is_null() { bias } else { bias.wrapping_add(row) }
}

/// Runs the micro-kernel over all tiles of a block of `C`, for a packed panel of `B`. `strides` are
/// the strides of a micro-panel of `A` if `a_packed` is true, else the strides of `op(A)`.
///
/// # Safety
/// The processor supports the vector type `V`. `p.b` is a panel of k×NR micro-panels, and `p.a` a
/// panel of k×MR micro-panels or an m×k matrix with m ≥ `MR`. `p.c` and `p.bias` are valid as
/// [`PackedGemm`] requires.
#[inline(always)]
unsafe fn multiply_panels<V: SimdVector, const MR: usize, const NR_VECTORS: usize>(
    p: &RawGemm<V::Scalar>,
    strides: (usize, usize),
    a_packed: bool,
) {
    let nr = NR_VECTORS * V::WIDTH;
    for row in (0..p.m).step_by(MR) {
        // Zeros pad the last micro-panel of a packed `A`. If `A` is read in place, the last tile of
        // `MR` rows overlaps the previous tile, and does not write the overlapping rows.
        let start = if a_packed { row } else { row.min(p.m - MR) };
        let rows = row - start..MR.min(p.m - start);
        for column in (0..p.n).step_by(nr) {
            let columns = nr.min(p.n - column);
            // SAFETY: the offsets select the micro-panels of this tile, or the tile's rows if `A`
            // is read in place. The micro-kernel writes only the rows and columns of `C` that
            // belong to the block.
            unsafe {
                let args = RawGemm {
                    a: p.a.add(if a_packed { row * p.k } else { start * strides.0 }),
                    b: p.b.add(column * p.k),
                    ldb: nr,
                    c: p.c.add(start * p.ldc + column),
                    bias: bias_at(p.bias, start),
                    ..*p
                };
                for i in 0..rows.end {
                    for offset in (0..columns).step_by(CACHE_LINE / size_of::<V::Scalar>()) {
                        V::prefetch(args.c.wrapping_add(i * p.ldc + offset));
                    }
                }
                let tile = MicroTile { row: 0, rows: rows.clone(), column: 0, columns: 0..columns };
                if columns <= V::WIDTH {
                    micro_kernel::<V, MR, 1, B_PACKED>(&args, strides, tile);
                } else if NR_VECTORS == 3 && columns <= 2 * V::WIDTH {
                    micro_kernel::<V, MR, 2, B_PACKED>(&args, strides, tile);
                } else {
                    micro_kernel::<V, MR, NR_VECTORS, B_PACKED>(&args, strides, tile);
                }
            }
        }
    }
}

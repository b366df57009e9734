//! Large products: panels of both operands are copied, so that tiles read them in order.
//!
//! `C` is computed in tiles that stay in registers. A block of `B` stays in the second-level
//! cache, a panel of `A` in the first-level one, while every tile of both is computed. Where sums
//! are cut depends on k alone, so that no bit depends on how products are shared among threads.
//! Source of the scheme: Goto, van de Geijn 2008.

use crate::host::{
    blas::{
        gemm::dispatch::{SimdKernel, SimdScalar},
        kernel::{
            micro_kernel::{B_PACKED, MicroTile, micro_kernel},
            packing::PackSource,
            unpacked::{L1_ALIAS_BYTES, RawGemm},
        },
    },
    simd::vector::SimdVector,
};

/// Bytes of a block of `B`: what a second-level cache holds beside the rest.
const B_BLOCK_BYTES: usize = 576 << 10;

/// Rows of `C` so few that a block of `B` is soon done with: a small one leaves what comes next in
/// the cache.
const SMALL_M: usize = 96;

/// Bytes of `B` that come from a cache: what comes from memory is read in longer pieces.
const CACHED_B_MAX_BYTES: usize = 16 << 20;

/// Bytes between columns of `A` that are close together.
const IN_PLACE_A_MAX_STRIDE_BYTES: usize = 192;

/// Bytes of a line of a cache, at which panels begin.
const CACHE_LINE: usize = 64;

/// Rows of `A` copied at a time.
const MC: usize = 1536;

/// Places of a panel that may be written beyond the last.
pub(crate) const PANEL_SLACK: usize = 4;

/// Most lines of a panel.
const MAX_NR: usize = 32;

/// Terms of a sum of `k` between two writes to `C`: a panel of `A` takes half of a first-level
/// cache at most.
fn depth<S>(k: usize) -> usize {
    let most = if size_of::<S>() == 4 { 512 } else { 256 };
    k.div_ceil(k.div_ceil(most).max(1))
}

/// Elements of a block of `B`.
fn block<S>(m: usize, n: usize, k: usize) -> usize {
    let bytes = if m > SMALL_M {
        B_BLOCK_BYTES
    } else if n * k * size_of::<S>() <= CACHED_B_MAX_BYTES {
        B_BLOCK_BYTES / 4
    } else {
        // As many elements of a row in either type: pieces of 1 KiB and more.
        B_BLOCK_BYTES / (size_of::<S>() / size_of::<f32>())
    };
    bytes / size_of::<S>()
}

/// Elements needed for panels of a product of this extent.
pub(crate) fn workspace_len<S>(m: usize, n: usize, k: usize) -> usize {
    // Panels of any size fit: of up to 12 rows, of 24 or 32 columns or fewer.
    let depth = depth::<S>(k);
    let width = (n.next_multiple_of(96) * depth).min(block::<S>(m, n, k));
    MC.min(m + 12) * depth + width + 2 * PANEL_SLACK * MAX_NR + CACHE_LINE / size_of::<S>()
}

/// `C ← α·op(A)·op(B) + β·C`
///
/// To run it is safe if operands and `C` are of the extents that `p` says, all of `C` can be
/// written, exclusively, and the room is what [`room`] says.
pub(crate) struct PackedGemm<'a, S> {
    /// Rows of `op(A)`.
    pub(crate) a: &'a dyn PackSource<S>,
    /// `A`'s strides along m and k, if it lies in memory, as `p` says.
    pub(crate) strides: Option<(usize, usize)>,
    /// Columns of `op(B)`; what `p` says of `B` is not used.
    pub(crate) b: &'a dyn PackSource<S>,
    pub(crate) p: &'a RawGemm<S>,
    pub(crate) room: &'a mut [S],
}

#[allow(unsafe_code)]
impl<S: SimdScalar> SimdKernel<S> for PackedGemm<'_, S> {
    #[inline(always)]
    unsafe fn run<L: SimdVector<Scalar = S>>(self) {
        // SAFETY: handed on.
        unsafe {
            match rows::<L>(self.p.m) {
                12 if L::MANY => self.run_with_tile::<L, 12, 2>(),
                10 if L::MANY => self.run_with_tile::<L, 10, 2>(),
                8 if L::MANY => self.run_with_tile::<L, 8, 2>(),
                _ if L::MANY => self.run_with_tile::<L, 4, 2>(),
                _ => self.run_with_tile::<L, 4, 3>(),
            }
        }
    }
}

/// Rows of a tile.
fn rows<L: SimdVector>(m: usize) -> usize {
    let sizes: &[usize] = if L::MANY && m > 4 { &[12, 10, 8] } else { &[4] };
    // As few rows computed in vain as possible; a small tile reads more for what it computes.
    let cost = |&rows: &usize| m.div_ceil(rows) * (rows + 1);
    sizes.iter().copied().min_by_key(cost).unwrap_or(4)
}

#[allow(unsafe_code)]
impl<S: SimdScalar> PackedGemm<'_, S> {
    /// In tiles of `ROWS` rows and `VECTORS` vectors.
    #[inline(always)]
    unsafe fn run_with_tile<L: SimdVector<Scalar = S>, const ROWS: usize, const VECTORS: usize>(
        self,
    ) {
        let Self { a, strides, b, p, room } = self;
        let (depth, columns) = (depth::<S>(p.k), VECTORS * L::WIDTH);
        let width = block::<S>(p.m, p.n, p.k) / depth / columns * columns;
        let width = width.min(p.n.next_multiple_of(columns));
        let (cuts, blocks) = (p.k.div_ceil(depth), p.n.div_ceil(width));
        let height = MC / ROWS * ROWS;
        let last = p.m.saturating_sub(1) % height + 1;
        let in_place = strides.filter(|&strides| last >= ROWS && is_panel::<S>(strides));
        let start = room.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE / size_of::<S>());
        let (panels_b, panels_a) = room[start..].split_at_mut(width * depth + PANEL_SLACK * MAX_NR);
        for row in (0..p.m).step_by(height) {
            let m = height.min(p.m - row);
            for i in 0..cuts * blocks {
                // A block of `C` stays in the cache while its terms are added, unless panels of
                // `A` would have to be packed for each.
                let (cut, column) = if in_place.is_some() {
                    (i % cuts, i / cuts)
                } else {
                    (i / blocks, i % blocks)
                };
                let (term, column) = (cut * depth, column * width);
                let (k, n) = (depth.min(p.k - term), width.min(p.n - column));
                if in_place.is_none() && column == 0 {
                    a.pack(row..row + m, term..term + k, ROWS, panels_a);
                }
                b.pack(column..column + n, term..term + k, columns, panels_b);
                let beta = if term == 0 { p.beta } else { S::one() };
                // SAFETY: rows, columns and terms are within those of the product; all panels
                // are there.
                unsafe {
                    let c = p.c.add(row * p.ldc + column);
                    let bias = if term == 0 { skip(p.bias, row) } else { std::ptr::null() };
                    let block = RawGemm { m, n, k, beta, b: panels_b.as_ptr(), c, bias, ..*p };
                    let of = |a| RawGemm { a, ..block };
                    match in_place {
                        None => {
                            let block = of(panels_a.as_ptr());
                            tiles::<L, ROWS, VECTORS>(&block, (1, ROWS), true);
                        }
                        Some((1, along_k)) => {
                            let block = of(p.a.add(row + term * along_k));
                            tiles::<L, ROWS, VECTORS>(&block, (1, along_k), false);
                        }
                        Some((along_m, _)) => {
                            let block = of(p.a.add(row * along_m + term));
                            tiles::<L, ROWS, VECTORS>(&block, (along_m, 1), false);
                        }
                    }
                }
            }
        }
    }
}

/// Whether rows of `A` of these strides are as good as a panel.
fn is_panel<S>(strides: (usize, usize)) -> bool {
    match strides {
        // Columns that lie close together are read from one end to the other.
        (1, along_k) => along_k * size_of::<S>() <= IN_PLACE_A_MAX_STRIDE_BYTES,
        // Rows do not push each other out of the cache.
        (along_m, _) => !(along_m * size_of::<S>()).is_multiple_of(L1_ALIAS_BYTES),
    }
}

/// The bias of row `row`, if there is one.
#[inline(always)]
fn skip<S>(bias: *const S, row: usize) -> *const S {
    if bias.is_null() { bias } else { bias.wrapping_add(row) }
}

/// Every tile; `A`'s strides along m and k, and whether it is in panels.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn tiles<L: SimdVector, const ROWS: usize, const VECTORS: usize>(
    p: &RawGemm<L::Scalar>,
    strides: (usize, usize),
    panels: bool,
) {
    let columns = VECTORS * L::WIDTH;
    for row in (0..p.m).step_by(ROWS) {
        // A panel is filled up with zeros; without panels the last tile ends with the last row,
        // and has rows in common with the one before it.
        let start = if panels { row } else { row.min(p.m - ROWS) };
        let rows = row - start..ROWS.min(p.m - start);
        for column in (0..p.n).step_by(columns) {
            let left = columns.min(p.n - column);
            // SAFETY: the caller's: all panels are there, and all of `c`.
            unsafe {
                let tile = RawGemm {
                    a: p.a.add(if panels { row * p.k } else { start * strides.0 }),
                    b: p.b.add(column * p.k),
                    ldb: columns,
                    c: p.c.add(start * p.ldc + column),
                    bias: skip(p.bias, start),
                    ..*p
                };
                for i in 0..rows.end {
                    for line in (0..left).step_by(CACHE_LINE / size_of::<L::Scalar>()) {
                        L::prefetch(tile.c.wrapping_add(i * p.ldc + line));
                    }
                }
                let tile_of = MicroTile { row: 0, rows: rows.clone(), column: 0, columns: 0..left };
                if left <= L::WIDTH {
                    micro_kernel::<L, ROWS, 1, B_PACKED>(&tile, strides, tile_of);
                } else {
                    micro_kernel::<L, ROWS, VECTORS, B_PACKED>(&tile, strides, tile_of);
                }
            }
        }
    }
}

//! Cache blocking of the packed GEMM (MR, MC, KC and NC), and the workspace for panels.
//!
//! KC depends on k alone, so results are bit-identical however m and n are divided among threads.

use crate::host::{cache::cache_line::L1_ALIAS_BYTES, simd::vector::SimdVector};

/// Size in bytes of a panel of `B`, which shares L2 with the panel of `A` and with `C`.
const B_PANEL_BYTES: usize = 576 << 10;

/// Largest m at which a smaller panel of `B` is faster. A GEMM with few rows hardly reuses a panel
/// of `B`, and a small panel does not evict the rows of `B` that the next panel is packed from.
const SMALL_M: usize = 96;

/// Largest size of `B`, in bytes, at which packing is assumed to read `B` from cache. A `B` of more
/// than `CACHED_B_MAX_BYTES` is packed in bigger panels, whose rows are read in longer contiguous
/// runs. `CACHED_B_MAX_BYTES` has an effect only if m is at most [`SMALL_M`].
const CACHED_B_MAX_BYTES: usize = 16 << 20;

/// Largest distance in bytes between columns of `op(A)` at which a transposed `A` is read in place
/// for all values of n and MR.
const IN_PLACE_A_MAX_STRIDE_BYTES: usize = 192;

/// Largest n at which a transposed `A` with a large stride is read in place, if tiles have at least
/// [`IN_PLACE_A_MIN_MR`] rows. If `B` has few columns, the micro-kernel uses each packed element of
/// `A` too rarely for packing to pay off.
const IN_PLACE_A_MAX_N: usize = 256;

/// Smallest MR at which a transposed `A` with a large stride is read in place. For each column of
/// `op(A)`, a tile of 4 rows of `f32` uses only a quarter of a cache line that it reads.
const IN_PLACE_A_MIN_MR: usize = 8;

/// Upper limit of MC, the number of rows in a panel of `A`. MC is rounded down to a multiple of MR.
const MC: usize = 1536;

const MAX_MR: usize = 12;

const MAX_NR: usize = 32;

/// Number of spare steps along k that are allocated after a packed panel. Packing may write up to
/// three steps and three elements past the end of the panel.
const PANEL_SLACK: usize = 4;

/// Returns MC, a multiple of the `mr` rows of a tile.
pub(crate) fn mc(mr: usize) -> usize {
    MC / mr * mr
}

/// Returns KC for a GEMM whose inner dimension is `k`. An MR×KC micro-panel of `A` takes at most 24
/// KiB, half of a 48 KiB L1 cache.
pub(crate) fn kc<S>(k: usize) -> usize {
    let max_kc = if size_of::<S>() == 4 { 512 } else { 256 };
    k.div_ceil(k.div_ceil(max_kc).max(1))
}

/// Returns NC, a multiple of `nr`, for an m×n×k GEMM.
pub(crate) fn nc<S>([m, n, k]: [usize; 3], nr: usize) -> usize {
    (b_panel_len::<S>(m, n, k) / kc::<S>(k) / nr * nr).min(n.next_multiple_of(nr))
}

/// Returns the largest number of elements in a panel of `B`.
fn b_panel_len<S>(m: usize, n: usize, k: usize) -> usize {
    let bytes = if m > SMALL_M {
        B_PANEL_BYTES
    } else if n * k * size_of::<S>() <= CACHED_B_MAX_BYTES {
        B_PANEL_BYTES / 4
    } else {
        // A panel of `B_PANEL_BYTES` for `f32`, or of half that size for `f64`, is wide enough that
        // each of its rows is a contiguous run of at least 1 KiB in `B`.
        B_PANEL_BYTES / (size_of::<S>() / size_of::<f32>())
    };
    bytes / size_of::<S>()
}

/// Returns the buffer length, in elements, for a panel of `mn`×`k` elements in micro-panels of
/// `panel_dim` (MR or NR).
pub(crate) fn panel_len(mn: usize, k: usize, panel_dim: usize) -> usize {
    mn.next_multiple_of(panel_dim.max(1)) * k + PANEL_SLACK * panel_dim.max(PANEL_SLACK)
}

/// Returns the workspace length, in elements, for the panels of an m×n×k GEMM, sufficient for any
/// MR and NR.
pub(crate) fn workspace_len<S>(m: usize, n: usize, k: usize) -> usize {
    let kc = kc::<S>(k);
    // Round up n to a multiple of 96, because all values of NR (12, 16, 24 and 32) divide 96.
    let b_panel = (n.next_multiple_of(96) * kc).min(b_panel_len::<S>(m, n, k));
    let a_panel = MC.min(m + MAX_MR) * kc;
    a_panel + b_panel + 2 * PANEL_SLACK * MAX_NR
}

/// Splits a workspace of [`workspace_len`] elements into a `kc`×`nc` panel of `B` and a panel of
/// `A`.
pub(crate) fn split_workspace<S>(
    workspace: &mut [S],
    kc: usize,
    nc: usize,
) -> (&mut [S], &mut [S]) {
    workspace.split_at_mut(nc * kc + PANEL_SLACK * MAX_NR)
}

/// Returns the MR whose tiles compute the fewest padding or overlapping rows in a GEMM of `m` rows.
/// The term `+ 1` models the additional loads per multiplication in a small tile.
pub(crate) fn mr<V: SimdVector>(m: usize) -> usize {
    let sizes: &[usize] = if V::HAS_32_REGISTERS && m > 4 { &[12, 10, 8] } else { &[4] };
    let cost = |&mr: &usize| m.div_ceil(mr) * (mr + 1);
    sizes.iter().copied().min_by_key(cost).unwrap_or(4)
}

/// Returns whether reading `op(A)` in place, with `strides` along m and k, is as fast as packing
/// it, in a GEMM with `n` columns and tiles of `mr` rows.
pub(crate) fn a_is_read_in_place<S>(strides: (usize, usize), mr: usize, n: usize) -> bool {
    let has_few_uses = n <= IN_PLACE_A_MAX_N && mr >= IN_PLACE_A_MIN_MR;
    // Rows or columns that are a multiple of 4 KiB apart would evict one another from L1.
    let is_aliased = |stride: usize| (stride * size_of::<S>()).is_multiple_of(L1_ALIAS_BYTES);
    match strides {
        // The hardware prefetcher follows columns with a small stride as one sequential stream.
        (1, stride_k) => {
            stride_k * size_of::<S>() <= IN_PLACE_A_MAX_STRIDE_BYTES
                || has_few_uses && !is_aliased(stride_k)
        }
        (stride_m, _) => !is_aliased(stride_m),
    }
}

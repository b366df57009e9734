//! Shapes of packed tiles, and the number of `bf16` terms of a 16-bit element.

use crate::element::{DType, Element};

/// Number of rows in a tile. A packed tile has the shape of an AMX tile. A tile row holds a row of
/// `A`, a row of sums, or two consecutive steps along k of `B`.
pub(crate) const TILE_ROWS: usize = 16;

/// Number of elements along k in a tile of 16-bit elements.
pub(crate) const TILE_K: usize = 32;

/// Size in bytes of a row of a tile.
pub(crate) const TILE_ROW_BYTES: usize = 64;

/// Number of 32-bit words in a tile.
pub(crate) const TILE_WORDS: usize = 256;

/// MR and NR of the AMX kernel: the number of rows, and of columns, of the four tiles of `C` that
/// AMX computes together. Packing pads operands to multiples of `BLOCK_ROWS` rows or columns, for
/// AMX and `vdpbf16ps`.
pub(crate) const BLOCK_ROWS: usize = 2 * TILE_ROWS;

/// Returns the number of `bf16` terms into which an element splits: two for `f16`, one for `bf16`.
pub(crate) const fn bf16_terms<H: Element>() -> usize {
    if matches!(H::DTYPE, DType::F16) { 2 } else { 1 }
}

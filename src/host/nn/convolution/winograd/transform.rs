//! The transforms of Winograd's algorithm F(2×2, 3×3), for sixteen tiles or filters at a time.
//!
//! Every function adds and multiplies in a fixed order, without fused multiply-adds, so results are
//! bit-identical at every SIMD level.

// Each iteration reads and writes one lane of many arrays.
#![allow(clippy::needless_range_loop)]

use std::array::from_fn;

/// Number of tiles or filters that a function transforms at a time.
pub(crate) const LANES: usize = 16;

/// One element of each of [`LANES`] tiles or filters.
pub(crate) type Lanes = [f32; LANES];

/// Number of elements in a transformed tile or filter.
pub(crate) const TILE_LEN: usize = 16;

/// Returns `V = Bᵀ·d·B` of tiles `d` of 4×4 image elements.
#[inline(always)]
pub(crate) fn transform_image(d: [[&Lanes; 4]; 4]) -> [Lanes; TILE_LEN] {
    let mut v = [[0.0; LANES]; TILE_LEN];
    for lane in 0..LANES {
        let tile = from_fn(|row| from_fn(|column| d[row][column][lane]));
        let tile = in_both_axes(tile, |[a, b, c, d]| [a - c, b + c, c - b, b - d]);
        store_tile(&mut v, lane, tile);
    }
    v
}

/// Returns `U = G·g·Gᵀ` of filters `g` of 3×3 taps.
#[inline(always)]
pub(crate) fn transform_filters(g: &[Lanes; 9]) -> [Lanes; TILE_LEN] {
    let mut u = [[0.0; LANES]; TILE_LEN];
    for lane in 0..LANES {
        let taps = from_fn(|row| from_fn(|column| g[3 * row + column][lane]));
        let tile = in_both_axes(taps, |[a, b, c]| {
            let (sum, half) = (0.5 * (a + c), 0.5 * b);
            [a, sum + half, sum - half, c]
        });
        store_tile(&mut u, lane, tile);
    }
    u
}

/// Returns the rows of `y = Aᵀ·M·A + bias`, tiles of 2×2 outputs. Each row contains the two outputs
/// of the first tile, then those of the second tile, and so on.
#[inline(always)]
pub(crate) fn transform_products(m: [&Lanes; TILE_LEN], bias: f32) -> [[f32; 2 * LANES]; 2] {
    let mut y = [[0.0; 2 * LANES]; 2];
    for lane in 0..LANES {
        let tile = from_fn(|row| from_fn(|column| m[4 * row + column][lane]));
        let tile = in_both_axes(tile, |[a, b, c, d]| [a + b + c, b - c - d]);
        for row in 0..2 {
            y[row][2 * lane] = tile[row][0] + bias;
            y[row][2 * lane + 1] = tile[row][1] + bias;
        }
    }
    y
}

/// Returns `A·dy·Aᵀ`, the gradient of `M`, of tiles of 2×2 output gradients. Only the first two
/// columns of `dy` are read.
#[inline(always)]
pub(crate) fn transform_output_gradient(dy: [[&Lanes; 4]; 2]) -> [Lanes; TILE_LEN] {
    let mut dm = [[0.0; LANES]; TILE_LEN];
    for lane in 0..LANES {
        let tile = from_fn(|row| from_fn(|column| dy[row][column][lane]));
        let tile = in_both_axes(tile, |[a, b]| [a, a + b, a - b, -b]);
        store_tile(&mut dm, lane, tile);
    }
    dm
}

/// Returns `Gᵀ·dU·G`, the gradient of filters of 3×3 taps.
#[inline(always)]
pub(crate) fn transform_filter_gradient(du: &[Lanes; TILE_LEN]) -> [Lanes; 9] {
    let mut dg = [[0.0; LANES]; 9];
    for lane in 0..LANES {
        let tile = from_fn(|row| from_fn(|column| du[4 * row + column][lane]));
        let taps: [[f32; 3]; 3] = in_both_axes(tile, |[a, b, c, d]| {
            let (sum, half) = (0.5 * (b + c), 0.5 * (b - c));
            [a + sum, half, sum + d]
        });
        for tap in 0..9 {
            dg[tap][lane] = taps[tap / 3][tap % 3];
        }
    }
    dg
}

/// Applies `transform` to each column of a tile, and then to each row of the result.
#[inline(always)]
fn in_both_axes<const N: usize, const M: usize>(
    tile: [[f32; N]; N],
    transform: impl Fn([f32; N]) -> [f32; M],
) -> [[f32; M]; M] {
    let columns: [[f32; M]; N] = from_fn(|column| transform(from_fn(|row| tile[row][column])));
    from_fn(|row| transform(from_fn(|column| columns[column][row])))
}

#[inline(always)]
fn store_tile(lanes: &mut [Lanes; TILE_LEN], lane: usize, tile: [[f32; 4]; 4]) {
    for i in 0..TILE_LEN {
        lanes[i][lane] = tile[i / 4][i % 4];
    }
}

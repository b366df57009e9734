//! The transforms of Winograd's algorithms F(2×2, 3×3) and F(2×2, 5×5), for sixteen tiles or filters
//! at a time.
//!
//! Every function adds and multiplies in a fixed order, without fused multiply-adds, so results are
//! bit-identical at every SIMD level.

// Each iteration reads and writes one lane of many arrays.
#![allow(clippy::needless_range_loop)]

use crate::host::simd::lanes::{LANES, Lanes};

/// The transforms of F(2, `TAPS`) in one axis, whose tiles have `TILE` elements: one more than
/// taps.
pub(crate) trait Axis<const TAPS: usize, const TILE: usize> {
    /// Returns `Bᵀ·d` of image elements `d`.
    fn image(d: [f32; TILE]) -> [f32; TILE];

    /// Returns `B·dv`, the gradient of image elements.
    fn image_gradient(dv: [f32; TILE]) -> [f32; TILE];

    /// Returns `G·g` of taps `g`.
    fn filter(g: [f32; TAPS]) -> [f32; TILE];

    /// Returns `Gᵀ·du`.
    fn filter_gradient(du: [f32; TILE]) -> [f32; TAPS];

    /// Returns the outputs `Aᵀ·m`.
    fn products(m: [f32; TILE]) -> [f32; 2];

    /// Returns `A·dy` of output gradients `dy`.
    fn output_gradient(dy: [f32; 2]) -> [f32; TILE];
}

/// F(2, 3) with the interpolation points 0, 1, −1 and ∞ (Lavin and Gray 2015).
pub(crate) struct ThreeTaps;

impl Axis<3, 4> for ThreeTaps {
    #[inline(always)]
    fn image([a, b, c, d]: [f32; 4]) -> [f32; 4] {
        [a - c, b + c, c - b, b - d]
    }

    #[inline(always)]
    fn image_gradient([a, b, c, d]: [f32; 4]) -> [f32; 4] {
        [a, (b - c) + d, (b + c) - a, -d]
    }

    #[inline(always)]
    fn filter([a, b, c]: [f32; 3]) -> [f32; 4] {
        let (sum, half) = (0.5 * (a + c), 0.5 * b);
        [a, sum + half, sum - half, c]
    }

    #[inline(always)]
    fn filter_gradient([a, b, c, d]: [f32; 4]) -> [f32; 3] {
        let (sum, half) = (0.5 * (b + c), 0.5 * (b - c));
        [a + sum, half, sum + d]
    }

    #[inline(always)]
    fn products([a, b, c, d]: [f32; 4]) -> [f32; 2] {
        [a + b + c, b - c - d]
    }

    #[inline(always)]
    fn output_gradient([a, b]: [f32; 2]) -> [f32; 4] {
        [a, a + b, a - b, -b]
    }
}

/// F(2, 5) with the interpolation points 0, 1, −1, ½, −2 and ∞. The points ½ and −2 give smaller
/// errors than ±2 or ±½ (Barabasz et al. 2018, arXiv:1803.10986).
pub(crate) struct FiveTaps;

impl Axis<5, 6> for FiveTaps {
    #[inline(always)]
    fn image(d: [f32; 6]) -> [f32; 6] {
        let (even, odd) = (d[4] - d[2], d[3] - d[1]);
        let (sum, difference) = (even + 1.5 * d[3], odd + 1.5 * d[2]);
        [
            (d[0] - d[2]) + even + 1.5 * odd,
            sum + difference,
            sum - difference,
            even + 2.0 * odd,
            even - 0.5 * odd,
            (d[5] - d[3]) - odd + 1.5 * even,
        ]
    }

    #[inline(always)]
    fn image_gradient(dv: [f32; 6]) -> [f32; 6] {
        let (sum, difference) = (dv[1] + dv[2], dv[1] - dv[2]);
        let even = (dv[0] + sum) + (dv[3] + dv[4]) + 1.5 * dv[5];
        let odd = (1.5 * dv[0] + difference) + (2.0 * dv[3] - 0.5 * dv[4]) - dv[5];
        [dv[0], -odd, 1.5 * difference - dv[0] - even, 1.5 * sum + odd - dv[5], even, dv[5]]
    }

    #[inline(always)]
    fn filter(g: [f32; 5]) -> [f32; 6] {
        let (even, odd) = (g[0] + g[2] + g[4], g[1] + g[3]);
        let at_half = (16.0 * g[0] + 4.0 * g[2] + g[4]) + (8.0 * g[1] + 2.0 * g[3]);
        let at_minus_2 = (g[0] + 4.0 * g[2] + 16.0 * g[4]) - (2.0 * g[1] + 8.0 * g[3]);
        [
            g[0],
            (even + odd) * (1.0 / 3.0),
            (odd - even) * (1.0 / 3.0),
            at_half * (-1.0 / 15.0),
            at_minus_2 * (1.0 / 15.0),
            g[4],
        ]
    }

    #[inline(always)]
    fn filter_gradient(du: [f32; 6]) -> [f32; 5] {
        let (even, odd) = ((du[1] - du[2]) * (1.0 / 3.0), (du[1] + du[2]) * (1.0 / 3.0));
        let (half, minus_2) = (du[3] * (-1.0 / 15.0), du[4] * (1.0 / 15.0));
        [
            (du[0] + even) + (16.0 * half + minus_2),
            odd + (8.0 * half - 2.0 * minus_2),
            even + (4.0 * half + 4.0 * minus_2),
            odd + (2.0 * half - 8.0 * minus_2),
            (du[5] + even) + (half + 16.0 * minus_2),
        ]
    }

    #[inline(always)]
    fn products(m: [f32; 6]) -> [f32; 2] {
        let (even, odd) = (m[1] + m[2], m[1] - m[2]);
        [(m[0] + even) + (m[3] + m[4]), (odd + m[5]) + (0.5 * m[3] - 2.0 * m[4])]
    }

    #[inline(always)]
    fn output_gradient([a, b]: [f32; 2]) -> [f32; 6] {
        [a, a + b, a - b, a + 0.5 * b, a - 2.0 * b, b]
    }
}

/// Computes `V = Bᵀ·d·B` of tiles `d` of image elements.
#[inline(always)]
pub(crate) fn transform_image<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
    d: [[&Lanes; TILE]; TILE],
    v: &mut Tiles<TILE, TILE>,
) {
    in_both_axes(
        d,
        #[inline(always)]
        |d| A::image(d),
        v,
    );
}

/// Computes `U = G·g·Gᵀ` of filters `g`.
#[inline(always)]
pub(crate) fn transform_filters<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
    g: [[&Lanes; TAPS]; TAPS],
    u: &mut Tiles<TILE, TILE>,
) {
    in_both_axes(
        g,
        #[inline(always)]
        |g| A::filter(g),
        u,
    );
}

/// Computes the outputs `y = Aᵀ·M·A`, tiles of 2×2 outputs.
#[inline(always)]
pub(crate) fn transform_products<A: Axis<TAPS, TILE>, const TAPS: usize, const TILE: usize>(
    m: [[&Lanes; TILE]; TILE],
    y: &mut Tiles<2, 2>,
) {
    in_both_axes(
        m,
        #[inline(always)]
        |m| A::products(m),
        y,
    );
}

/// Computes `A·dy·Aᵀ`, the gradient of `M`, of tiles of 2×2 output gradients.
#[inline(always)]
pub(crate) fn transform_output_gradient<
    A: Axis<TAPS, TILE>,
    const TAPS: usize,
    const TILE: usize,
>(
    dy: [[&Lanes; 2]; 2],
    dm: &mut Tiles<TILE, TILE>,
) {
    in_both_axes(
        dy,
        #[inline(always)]
        |dy| A::output_gradient(dy),
        dm,
    );
}

/// Computes `B·dV·Bᵀ`, the gradient of image elements.
#[inline(always)]
pub(crate) fn transform_image_gradient<
    A: Axis<TAPS, TILE>,
    const TAPS: usize,
    const TILE: usize,
>(
    dv: [[&Lanes; TILE]; TILE],
    dx: &mut Tiles<TILE, TILE>,
) {
    in_both_axes(
        dv,
        #[inline(always)]
        |dv| A::image_gradient(dv),
        dx,
    );
}

/// Computes `Gᵀ·dU·G`, the gradient of filters.
#[inline(always)]
pub(crate) fn transform_filter_gradient<
    A: Axis<TAPS, TILE>,
    const TAPS: usize,
    const TILE: usize,
>(
    du: [[&Lanes; TILE]; TILE],
    dg: &mut Tiles<TAPS, TAPS>,
) {
    in_both_axes(
        du,
        #[inline(always)]
        |du| A::filter_gradient(du),
        dg,
    );
}

/// Array that starts at a cache line, so that no [`Lanes`] in the array straddles two cache lines.
#[repr(align(64))]
pub(crate) struct Aligned<T>(pub T);

/// Tiles of `ROWS`×`COLUMNS` elements.
pub(crate) type Tiles<const ROWS: usize, const COLUMNS: usize> = Aligned<[[Lanes; COLUMNS]; ROWS]>;

impl<const ROWS: usize, const COLUMNS: usize> Tiles<ROWS, COLUMNS> {
    /// Tiles of zeros.
    pub(crate) const ZERO: Self = Self([[[0.0; LANES]; COLUMNS]; ROWS]);
}

/// Applies `transform` to each column of each tile, and then to each row of the result.
///
/// The function has loops instead of calls of `from_fn` and `map`. The compiler does not inline
/// such a call for tiles of 6×6 elements, and then compiles it without the vectors of the SIMD
/// level. The body of the loop over lanes is so long that the compiler does not unroll the loop, and
/// therefore vectorizes it. The caller owns `result`, because the function would otherwise write
/// zeros to it first.
#[inline(always)]
fn in_both_axes<const N: usize, const M: usize>(
    tiles: [[&Lanes; N]; N],
    transform: impl Fn([f32; N]) -> [f32; M],
    Aligned(result): &mut Tiles<M, M>,
) {
    for lane in 0..LANES {
        let mut columns = [[0.0; N]; M];
        for column in 0..N {
            let mut from = [0.0; N];
            for row in 0..N {
                from[row] = tiles[row][column][lane];
            }
            let to = transform(from);
            for row in 0..M {
                columns[row][column] = to[row];
            }
        }
        for row in 0..M {
            let to = transform(columns[row]);
            for column in 0..M {
                result[row][column][lane] = to[column];
            }
        }
    }
}

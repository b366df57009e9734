//! Ink on paper: lines drawn into a field of distances.

use super::{SIDE, strokes::Point};
use crate::host::vectorized;

/// A straight piece of a line, in pixels, whose half width changes on the way.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) from: Point,
    pub(super) to: Point,
    /// Half the width at either end.
    pub(super) radii: [f32; 2],
}

/// Ink and paper.
#[derive(Clone, Copy)]
pub(super) struct Ink {
    /// Width in pixels over which a line's edge fades, less than 2.
    pub(super) fade: f32,
    /// Value of a pixel full of ink, at most 255.
    pub(super) value: f32,
    /// Part of that which the grain of the paper takes at most.
    pub(super) grain: f32,
}

/// Values in a row of the field, padded.
const ROW: usize = SIDE.next_multiple_of(LANES);
/// 2²³, to which a float up to 255 is added to round it to a whole number, found in the sum's
/// lowest bits. (A cast saturates, which does not vectorise.)
const WHOLE: f32 = 8_388_608.0;
/// Pixels taken at once.
const LANES: usize = 8;

/// Draws `pieces` in `ink` on paper of grain `noise`.
pub(super) fn draw(pieces: &[Piece], ink: Ink, noise: &[u8], image: &mut [u8]) {
    vectorized(
        #[inline(always)]
        || {
            // Per pixel, how deep it lies inside the lines: the greatest, over these, of the
            // line's half width less the distance to its middle.
            let mut depth = [-9.0; ROW * SIDE];
            for &piece in pieces {
                add(piece, &mut depth);
            }
            dry(&depth, ink, noise, image);
        },
    );
}

#[inline(always)]
fn add(Piece { from, to, radii }: Piece, depth: &mut [f32; ROW * SIDE]) {
    let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
    let square = dx * dx + dy * dy;
    let inverse = if square > 0.0 { 1.0 / square } else { 0.0 };
    let growth = radii[1] - radii[0];
    let reach = radii[0].max(radii[1]) + 1.0; // edges fade over less than 2
    let (left, right) = span(from[0], to[0], reach, ROW);
    let (top, bottom) = span(from[1], to[1], reach, SIDE);
    let left = left.min(ROW - LANES);
    let width = (right - left.min(right)).next_multiple_of(LANES).min(ROW - left);
    for y in top..bottom {
        let v = y as f32 - from[1];
        let row = &mut depth[y * ROW + left..][..width];
        for (chunk, lanes) in row.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let x = (left + chunk * LANES) as f32 - from[0];
            for (lane, depth) in lanes.iter_mut().enumerate() {
                let u = x + lane as f32;
                let along = ((u * dx + v * dy) * inverse).clamp(0.0, 1.0);
                let (a, b) = (u - along * dx, v - along * dy);
                let inside = radii[0] + along * growth - (a * a + b * b).sqrt();
                *depth = if inside > *depth { inside } else { *depth };
            }
        }
    }
}

#[inline(always)]
fn dry(depth: &[f32; ROW * SIDE], ink: Ink, noise: &[u8], image: &mut [u8]) {
    let (slope, grain) = (1.0 / ink.fade, ink.grain / 255.0);
    let rows = depth.chunks_exact(ROW).zip(noise.chunks_exact(SIDE));
    for ((depth, noise), image) in rows.zip(image.chunks_exact_mut(SIDE)) {
        for ((&depth, &noise), pixel) in depth.iter().zip(noise).zip(image) {
            let cover = (depth * slope + 0.5).clamp(0.0, 1.0);
            let value = cover * ink.value * (1.0 - grain * f32::from(noise));
            *pixel = (value + WHOLE).to_bits() as u8;
        }
    }
}

/// The pixels `start..end` of `0..len` within `reach` of what lies from `a` to `b`.
#[inline(always)]
fn span(a: f32, b: f32, reach: f32, len: usize) -> (usize, usize) {
    // A cast from a float saturates: negative ones become 0.
    let start = (a.min(b) - reach) as usize;
    let end = (a.max(b) + reach + 1.0) as usize;
    (start.min(len), end.min(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition, pixel by pixel in `f64`.
    #[test]
    fn pixels_are_covered_by_their_distance() {
        let ink = Ink { fade: 1.5, value: 250.0, grain: 0.5 };
        let noise: Vec<u8> = (0..SIDE * SIDE).map(|i| (i * 37 % 256) as u8).collect();
        let inside = [([3.2, 4.1], [20.3, 15.0]), ([20.3, 15.0], [20.3, 15.0])];
        let beyond = [([-9.0, 3.0], [2.0, 40.0]), ([24.0, -3.0], [40.0, 5.0])];
        for ends in [inside, beyond, [([-50.0; 2], [-40.0; 2]), ([90.0; 2], [70.0; 2])]] {
            let pieces = ends.map(|(from, to)| Piece { from, to, radii: [1.0, 2.5] });
            let mut image = vec![7; SIDE * SIDE];
            draw(&pieces, ink, &noise, &mut image);
            for (i, &pixel) in image.iter().enumerate() {
                let at = [i % SIDE, i / SIDE].map(|x| x as f64);
                let depth = pieces.iter().map(|piece| depth(piece, at)).fold(-9.0, f64::max);
                let cover = (depth / 1.5 + 0.5).clamp(0.0, 1.0);
                let want = cover * 250.0 * (1.0 - 0.5 * f64::from(noise[i]) / 255.0);
                assert!((f64::from(pixel) - want).abs() < 0.51, "{at:?}: {pixel}, {want}");
            }
        }
    }

    /// The piece's half width next to a point, less the distance to there.
    fn depth(piece: &Piece, at: [f64; 2]) -> f64 {
        let [from, to] = [piece.from, piece.to].map(|end| end.map(f64::from));
        let (d, p) = ([to[0] - from[0], to[1] - from[1]], [at[0] - from[0], at[1] - from[1]]);
        let square = d[0] * d[0] + d[1] * d[1];
        let along = if square > 0.0 { (p[0] * d[0] + p[1] * d[1]) / square } else { 0.0 };
        let along = along.clamp(0.0, 1.0);
        let distance = (p[0] - along * d[0]).hypot(p[1] - along * d[1]);
        f64::from(piece.radii[0]) * (1.0 - along) + f64::from(piece.radii[1]) * along - distance
    }
}

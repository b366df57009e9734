//! Rasterization of line segments with a distance field.

use super::strokes::Point;
use crate::host::vectorized;

pub(super) const SIDE: usize = 28;

/// A line segment whose width changes linearly along its length, in pixel coordinates.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) from: Point,
    pub(super) to: Point,
    pub(super) radii: [f32; 2],
}

#[derive(Clone, Copy)]
pub(super) struct Ink {
    /// The width in pixels of the soft edge of a stroke; less than 2.
    pub(super) fade: f32,
    /// The pixel value of a fully covered pixel, at most 255.
    pub(super) value: f32,
    /// The largest fraction by which the pixel noise reduces the value of a pixel.
    pub(super) grain: f32,
}

const ROW: usize = SIDE.next_multiple_of(LANES);
/// The constant 2²³. Adding 2²³ to an `f32` between 0 and 255 rounds the `f32` to an integer, which
/// the low bits of the sum hold. The compiler vectorizes an addition of 2²³, but not a saturating
/// cast to `u8`.
const ROUND: f32 = 8_388_608.0;
const LANES: usize = 8;

/// Draws `segments` into `image`, with the line style `ink` and the pixel noise `noise`.
pub(super) fn draw(segments: &[Segment], ink: Ink, noise: &[u8], image: &mut [u8]) {
    vectorized(
        #[inline(always)]
        |_| {
            // The distance field: for each pixel, the maximum over all segments of half the
            // segment's width minus the pixel's distance to the segment.
            let mut depth = [-9.0; ROW * SIDE];
            for &segment in segments {
                add_segment(segment, &mut depth);
            }
            shade(&depth, ink, noise, image);
        },
    );
}

#[inline(always)]
fn add_segment(Segment { from, to, radii }: Segment, depth: &mut [f32; ROW * SIDE]) {
    let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
    let squared_length = dx * dx + dy * dy;
    let inverse_square = if squared_length > 0.0 { 1.0 / squared_length } else { 0.0 };
    let growth = radii[1] - radii[0];
    let reach = radii[0].max(radii[1]) + 1.0; // half the largest `Ink::fade`
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
                let t = ((u * dx + v * dy) * inverse_square).clamp(0.0, 1.0);
                let (a, b) = (u - t * dx, v - t * dy);
                let pixel_depth = radii[0] + t * growth - (a * a + b * b).sqrt();
                *depth = if pixel_depth > *depth { pixel_depth } else { *depth };
            }
        }
    }
}

#[inline(always)]
fn shade(depth: &[f32; ROW * SIDE], ink: Ink, noise: &[u8], image: &mut [u8]) {
    let (slope, grain) = (1.0 / ink.fade, ink.grain / 255.0);
    let rows = depth.chunks_exact(ROW).zip(noise.chunks_exact(SIDE));
    for ((depth, noise), image) in rows.zip(image.chunks_exact_mut(SIDE)) {
        for ((&depth, &noise), pixel) in depth.iter().zip(noise).zip(image) {
            let coverage = (depth * slope + 0.5).clamp(0.0, 1.0);
            let value = coverage * ink.value * (1.0 - grain * f32::from(noise));
            *pixel = (value + ROUND).to_bits() as u8;
        }
    }
}

/// Returns the start and end of the pixels of `0..len` that lie within `reach` of the interval from
/// `a` to `b`.
#[inline(always)]
fn span(a: f32, b: f32, reach: f32, len: usize) -> (usize, usize) {
    // A cast from `f32` to `usize` saturates, so a negative value becomes 0.
    let start = (a.min(b) - reach) as usize;
    let end = (a.max(b) + reach + 1.0) as usize;
    (start.min(len), end.min(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_pixels_match_a_distance_field_in_f64() {
        let ink = Ink { fade: 1.5, value: 250.0, grain: 0.5 };
        let noise: Vec<u8> = (0..SIDE * SIDE).map(|i| (i * 37 % 256) as u8).collect();
        let inner_ends = [([3.2, 4.1], [20.3, 15.0]), ([20.3, 15.0], [20.3, 15.0])];
        let edge_crossings = [([-9.0, 3.0], [2.0, 40.0]), ([24.0, -3.0], [40.0, 5.0])];
        for ends in [inner_ends, edge_crossings, [([-50.0; 2], [-40.0; 2]), ([90.0; 2], [70.0; 2])]]
        {
            let segments = ends.map(|(from, to)| Segment { from, to, radii: [1.0, 2.5] });
            let mut image = vec![7; SIDE * SIDE];
            draw(&segments, ink, &noise, &mut image);
            for (i, &pixel) in image.iter().enumerate() {
                let point = [i % SIDE, i / SIDE].map(|x| x as f64);
                let depths = segments.iter().map(|segment| depth(segment, point));
                let depth = depths.fold(-9.0, f64::max);
                let coverage = (depth / 1.5 + 0.5).clamp(0.0, 1.0);
                let want = coverage * 250.0 * (1.0 - 0.5 * f64::from(noise[i]) / 255.0);
                assert!((f64::from(pixel) - want).abs() < 0.51, "{point:?}: {pixel}, {want}");
            }
        }
    }

    /// Returns half the width of the segment at its point nearest to `[x, y]`, minus the distance
    /// between this point and `[x, y]`.
    fn depth(segment: &Segment, [x, y]: [f64; 2]) -> f64 {
        let [from, to] = [segment.from, segment.to].map(|end| end.map(f64::from));
        let (d, p) = ([to[0] - from[0], to[1] - from[1]], [x - from[0], y - from[1]]);
        let squared_length = d[0] * d[0] + d[1] * d[1];
        let t =
            if squared_length > 0.0 { (p[0] * d[0] + p[1] * d[1]) / squared_length } else { 0.0 };
        let t = t.clamp(0.0, 1.0);
        let distance = (p[0] - t * d[0]).hypot(p[1] - t * d[1]);
        f64::from(segment.radii[0]) * (1.0 - t) + f64::from(segment.radii[1]) * t - distance
    }
}

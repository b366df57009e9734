//! Random distortion of the strokes of a digit.
//!
//! Digits are bit-identical on every machine, because the code uses only operations whose rounding
//! IEEE 754 defines: sums, products, quotients and square roots.

use super::{
    raster::{Ink, Segment},
    strokes::{DIGITS, Point, Stroke},
};
use crate::op::{Philox, RngKey};
use rand::Rng;

pub(super) struct ImageRng(Philox);

impl ImageRng {
    pub(super) fn new(key: RngKey) -> Self {
        Self(key.rng())
    }

    /// Returns a uniformly distributed integer in `0..bound`.
    fn integer(&mut self, bound: usize) -> usize {
        ((u64::from(self.0.next_u32()) * bound as u64) >> 32) as usize
    }

    /// Returns a uniformly distributed number in `[low, high)`.
    fn uniform(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.0.next_u32() >> 8) as f32 * (1.0 / (1 << 24) as f32)
    }

    /// Returns an approximately normally distributed number between −3.5 `std` and 3.5 `std`, with
    /// mean 0 and standard deviation `std`. The number is a scaled sum of four uniformly
    /// distributed bytes, each with variance (256² − 1)/12.
    fn normal(&mut self, std: f32) -> f32 {
        let sum: u32 = self.0.next_u32().to_le_bytes().map(u32::from).iter().sum();
        (sum as f32 - 510.0) * (std / 147.8)
    }
}

pub(super) struct Handwriting {
    /// The row-major matrix of the affine map from stroke coordinates to pixels.
    matrix: [f32; 4],
    centre: Point,
    /// The nonlinear distortion: the coefficients of x², xy, y², x³ and y³ for each coordinate.
    bend: [[f32; 5]; 2],
    /// The standard deviation of the random displacement of each point.
    jitter: f32,
    /// Half the line width in pixels.
    radius: f32,
    growth: f32,
    pub(super) ink: Ink,
}

impl Handwriting {
    pub(super) fn new(rng: &mut ImageRng) -> Self {
        let height = 9.0 + rng.normal(0.9);
        let width = height * (1.0 + rng.normal(0.14));
        let slant = 0.12 + rng.normal(0.22);
        // Compute the rotation by θ from t = tan(θ/2), without calls of sine and cosine.
        let t = rng.normal(0.06);
        let (sin, cos) = (2.0 * t / (1.0 + t * t), (1.0 - t * t) / (1.0 + t * t));
        // The affine matrix is the product rotation · shear · scale.
        let matrix = [
            cos * width,
            (-cos * slant - sin) * height,
            sin * width,
            (-sin * slant + cos) * height,
        ];
        Self {
            matrix,
            centre: [13.5 + rng.normal(1.1), 13.5 + rng.normal(1.1)],
            bend: [(); 2].map(|()| [(); 5].map(|()| rng.normal(0.09))),
            jitter: rng.uniform(0.02, 0.09),
            radius: rng.uniform(0.75, 1.75),
            growth: rng.normal(0.2),
            ink: Ink {
                fade: rng.uniform(0.9, 1.5),
                value: rng.uniform(190.0, 255.0),
                grain: rng.uniform(0.0, 0.3),
            },
        }
    }

    /// Appends the line segments of a randomly chosen and distorted variant of `digit` to
    /// `segments`.
    pub(super) fn write(&self, digit: usize, rng: &mut ImageRng, segments: &mut Vec<Segment>) {
        let variants = DIGITS[digit];
        // The first variant of a digit is twice as likely as any other variant.
        let variant = rng.integer(variants.len() + 1).saturating_sub(1);
        for stroke in variants[variant] {
            self.stroke(stroke, rng, segments);
        }
    }

    fn stroke(&self, stroke: Stroke, rng: &mut ImageRng, segments: &mut Vec<Segment>) {
        let (stroke, _) = stroke.as_chunks::<2>();
        let mut points = [[0.0; 2]; MAX_POINTS];
        for (i, &point) in stroke.iter().take(MAX_POINTS).enumerate() {
            let corner = i > 0 && stroke[i - 1] == point;
            points[i] = if corner { points[i - 1] } else { self.to_pixels(point, rng) };
        }
        let points = &points[..stroke.len().min(MAX_POINTS)];
        let last = points.len().saturating_sub(1);
        let mut radius = self.radius * (1.0 - 0.5 * self.growth);
        let growth = self.radius * self.growth / (last * SEGMENTS) as f32;
        for i in 0..last {
            let (before, after) = (points[i.saturating_sub(1)], points[(i + 2).min(last)]);
            let mut from = points[i];
            for segment in 1..=SEGMENTS {
                let t = segment as f32 / SEGMENTS as f32;
                let to = spline(before, points[i], points[i + 1], after, t);
                segments.push(Segment { from, to, radii: [radius, radius + growth] });
                from = to;
                radius += growth;
            }
        }
    }

    /// Distorts a point of a stroke and returns its pixel coordinates.
    fn to_pixels(&self, [x, y]: Point, rng: &mut ImageRng) -> Point {
        let bend_offset = self.bend.map(|[xx, xy, yy, xxx, yyy]| {
            x * x * xx + x * y * xy + y * y * yy + x * x * x * xxx + y * y * y * yyy
        });
        let x = x + bend_offset[0] + rng.normal(self.jitter);
        let y = y + bend_offset[1] + rng.normal(self.jitter);
        let [xx, xy, yx, yy] = self.matrix;
        [self.centre[0] + xx * x + xy * y, self.centre[1] + yx * x + yy * y]
    }
}

const MAX_POINTS: usize = 16;
/// The number of straight segments that approximate a stroke between two successive points.
const SEGMENTS: usize = 4;

/// Evaluates the Catmull-Rom spline from `b` to `c`, with neighbours `a` and `d`, at `t` in [0, 1].
fn spline(a: Point, b: Point, c: Point, d: Point, t: f32) -> Point {
    std::array::from_fn(|i| {
        let (a, b, c, d) = (a[i], b[i], c[i], d[i]);
        let square = 2.0 * a - 5.0 * b + 4.0 * c - d;
        let cube = 3.0 * (b - c) + d - a;
        b + 0.5 * t * (c - a + t * (square + t * cube))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strokes_have_2_to_16_points_within_their_range() {
        for stroke in DIGITS.iter().flat_map(|variants| variants.iter().copied().flatten()) {
            assert!(stroke.len() % 2 == 0, "{stroke:?}");
            assert!((2..=MAX_POINTS).contains(&(stroke.len() / 2)), "{stroke:?}");
            assert!(stroke.iter().all(|x| x.abs() <= 1.0), "{stroke:?}");
        }
    }

    #[test]
    fn a_spline_passes_through_its_points_and_is_straight_for_collinear_points() {
        let [a, b, c, d] = [[0.0, 1.0], [1.0, 3.0], [2.0, 5.0], [3.0, 7.0]];
        assert_eq!(spline(a, b, c, d, 0.0), b);
        assert_eq!(spline(a, b, c, d, 1.0), c);
        assert_eq!(spline(a, b, c, d, 0.5), [1.5, 4.0]);
        assert_eq!(spline([9.0, 9.0], b, c, [-5.0, 2.0], 1.0), c);
    }
}

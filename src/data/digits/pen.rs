//! A hand: takes a digit's strokes and writes them as nobody wrote them before.
//!
//! Only sums, products, quotients and square roots are used, which IEEE 754 rounds alike
//! everywhere: a digit has the same bits on every machine.

use super::{
    raster::{Ink, Piece},
    strokes::{DIGITS, Point, Stroke},
};
use crate::op::{Philox, RngKey};
use rand::Rng;

/// Random numbers of one image.
pub(super) struct Dice(Philox);

impl Dice {
    pub(super) fn new(key: RngKey) -> Self {
        Self(key.rng())
    }

    /// One of `0..sides`.
    fn pick(&mut self, sides: usize) -> usize {
        ((u64::from(self.0.next_u32()) * sides as u64) >> 32) as usize
    }

    /// Uniform in `[low, high)`.
    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.0.next_u32() >> 8) as f32 * (1.0 / (1 << 24) as f32)
    }

    /// Nearly normal, of mean 0 and deviation `spread`, and within 3.5 of these: a sum of four
    /// uniform bytes, each of variance (256² - 1)/12.
    fn about(&mut self, spread: f32) -> f32 {
        let sum: u32 = self.0.next_u32().to_le_bytes().map(u32::from).iter().sum();
        (sum as f32 - 510.0) * (spread / 147.8)
    }
}

/// What is particular to one image.
pub(super) struct Hand {
    /// From the strokes' box to pixels: a matrix, row by row, and the centre.
    matrix: [f32; 4],
    centre: Point,
    /// A bend of the whole digit: per coordinate the factors of x², xy, y², x³ and y³.
    bend: [[f32; 5]; 2],
    /// How far each point strays.
    stray: f32,
    /// Half the width of a line in pixels, and by how much that grows along a stroke.
    radius: f32,
    growth: f32,
    pub(super) ink: Ink,
}

impl Hand {
    pub(super) fn new(dice: &mut Dice) -> Self {
        let height = 9.0 + dice.about(0.9);
        let width = height * (1.0 + dice.about(0.14));
        let slant = 0.12 + dice.about(0.22);
        // A rotation by θ without sine and cosine: t = tan(θ/2).
        let t = dice.about(0.06);
        let (sin, cos) = (2.0 * t / (1.0 + t * t), (1.0 - t * t) / (1.0 + t * t));
        // Rotation · shear · scale.
        let matrix = [
            cos * width,
            (-cos * slant - sin) * height,
            sin * width,
            (-sin * slant + cos) * height,
        ];
        Self {
            matrix,
            centre: [13.5 + dice.about(1.1), 13.5 + dice.about(1.1)],
            bend: [(); 2].map(|()| [(); 5].map(|()| dice.about(0.09))),
            stray: dice.between(0.02, 0.09),
            radius: dice.between(0.75, 1.75),
            growth: dice.about(0.2),
            ink: Ink {
                fade: dice.between(0.9, 1.5),
                value: dice.between(190.0, 255.0),
                grain: dice.between(0.0, 0.3),
            },
        }
    }

    /// Writes one of `digit`'s variants, adding to `line`.
    pub(super) fn write(&self, digit: usize, dice: &mut Dice, line: &mut Vec<Piece>) {
        let variants = DIGITS[digit];
        // The first is the most usual.
        let variant = dice.pick(variants.len() + 1).saturating_sub(1);
        for stroke in variants[variant] {
            self.stroke(stroke, dice, line);
        }
    }

    fn stroke(&self, stroke: Stroke, dice: &mut Dice, line: &mut Vec<Piece>) {
        let mut points = [[0.0; 2]; MOST];
        for (i, &point) in stroke.iter().take(MOST).enumerate() {
            let corner = i > 0 && stroke[i - 1] == point;
            points[i] = if corner { points[i - 1] } else { self.place(point, dice) };
        }
        let points = &points[..stroke.len().min(MOST)];
        let last = points.len().saturating_sub(1);
        let mut radius = self.radius * (1.0 - 0.5 * self.growth);
        let growth = self.radius * self.growth / (last * PIECES) as f32;
        for i in 0..last {
            let (before, after) = (points[i.saturating_sub(1)], points[(i + 2).min(last)]);
            let mut from = points[i];
            for piece in 1..=PIECES {
                let way = piece as f32 / PIECES as f32;
                let to = spline(before, points[i], points[i + 1], after, way);
                line.push(Piece { from, to, radii: [radius, radius + growth] });
                from = to;
                radius += growth;
            }
        }
    }

    /// Where a stroke's point comes to lie, in pixels.
    fn place(&self, [x, y]: Point, dice: &mut Dice) -> Point {
        let bent = self.bend.map(|[xx, xy, yy, xxx, yyy]| {
            x * x * xx + x * y * xy + y * y * yy + x * x * x * xxx + y * y * y * yyy
        });
        let x = x + bent[0] + dice.about(self.stray);
        let y = y + bent[1] + dice.about(self.stray);
        let [xx, xy, yx, yy] = self.matrix;
        [self.centre[0] + xx * x + xy * y, self.centre[1] + yx * x + yy * y]
    }
}

/// Most points of a stroke.
const MOST: usize = 16;
/// Straight pieces that stand for the curve between two points.
const PIECES: usize = 4;

/// The Catmull-Rom spline from `b` to `c` between `a` and `d`, at `t` of the way.
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
    fn strokes_fit() {
        for stroke in DIGITS.iter().flat_map(|variants| variants.iter().copied().flatten()) {
            assert!((2..=MOST).contains(&stroke.len()), "{stroke:?}");
            assert!(stroke.iter().flatten().all(|x| x.abs() <= 1.0), "{stroke:?}");
        }
    }

    #[test]
    fn the_spline_goes_through_its_points_and_is_straight_on_a_line() {
        let [a, b, c, d] = [[0.0, 1.0], [1.0, 3.0], [2.0, 5.0], [3.0, 7.0]];
        assert_eq!(spline(a, b, c, d, 0.0), b);
        assert_eq!(spline(a, b, c, d, 1.0), c);
        assert_eq!(spline(a, b, c, d, 0.5), [1.5, 4.0]);
        assert_eq!(spline([9.0, 9.0], b, c, [-5.0, 2.0], 1.0), c);
    }
}

//! Curves as an SVG image.

use super::curves::{Curve, Curves};
use crate::cli::{
    format_g::format_g,
    svg::{MARGIN, escaped, page},
};
use std::fmt::Write;

/// Pixels: of a panel, left of it for the ticks' labels, between two panels, of a character.
const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 240.0;
const LABELS: f64 = 64.0;
const GAP: f64 = 56.0;
const CHARACTER: f64 = 7.3;
/// Of curves, in their order.
const COLOURS: [&str; 6] = ["#1f5fbf", "#b3261e", "#2f6f4f", "#8a5a00", "#6b4fa0", "#52606d"];

/// Panels, one below the other; those without curves are left out. `data` goes into the image as
/// it is.
pub(super) fn draw(title: &str, panels: &[(&str, &Curves)], data: &str) -> String {
    let drawn: Vec<_> = panels.iter().filter(|(_, curves)| !curves.0.is_empty()).collect();
    let points = drawn.iter().flat_map(|(_, curves)| curves.0.iter().flat_map(|c| &c.points));
    let x = ChartAxis::linear(points.map(|point| point[0]));
    let (mut body, mut top) = (data.to_owned(), MARGIN + GAP / 2.0);
    for (name, curves) in &drawn {
        panel(&mut body, top, name, &curves.0, &x);
        top += HEIGHT + GAP;
    }
    let curves = drawn.iter().flat_map(|(_, curves)| &curves.0);
    let legend = curves.map(|curve| legend(curve).chars().count()).max().unwrap_or(0);
    let right = MARGIN + LABELS + WIDTH + MARGIN + legend as f64 * CHARACTER;
    page(right + MARGIN, top, title, &body)
}

/// A curve's name and where it is now.
fn legend(curve: &Curve) -> String {
    let last = curve.points.last().map_or(f64::NAN, |point| point[1]);
    format!("{} {}", curve.name, format_g(last))
}

/// From values to a share of a panel's extent.
struct ChartAxis {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl ChartAxis {
    fn linear(values: impl Iterator<Item = f64>) -> Self {
        let bounds = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = values.fold(bounds, |(low, high), v| (low.min(v), high.max(v)));
        match low < high {
            true => Self { low, high, logarithmic: false },
            // One value, or none.
            false if low.is_finite() => Self { low, high: low + 1.0, logarithmic: false },
            false => Self { low: 0.0, high: 1.0, logarithmic: false },
        }
    }

    /// Logarithmic for positive values that differ by more than a factor of fifty.
    fn of(curves: &[Curve]) -> Self {
        let linear = Self::linear(curves.iter().flat_map(|c| &c.points).map(|point| point[1]));
        let logarithmic = linear.low > 0.0 && linear.high > 50.0 * linear.low;
        Self { logarithmic, ..linear }
    }

    fn at(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.log10() } else { value };
        (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
    }

    /// Some round values.
    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            let heads: &[f64] = if decades.clone().count() > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let tick = |power: i32| heads.iter().map(move |head| head * 10f64.powi(power));
            let inside = |tick: &f64| (self.low..=self.high).contains(tick);
            return decades.flat_map(tick).filter(inside).collect();
        }
        let rough = (self.high - self.low) / 6.0;
        if rough == 0.0 {
            return vec![self.low]; // numbers have no room for more
        }
        let power = 10f64.powi(rough.log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|head| head * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let multiples = (self.low / step).ceil() as i64..=(self.high / step).floor() as i64;
        multiples.map(|multiple| multiple as f64 * step).collect()
    }
}

fn panel(svg: &mut String, top: f64, name: &str, curves: &[Curve], x: &ChartAxis) {
    let y = ChartAxis::of(curves);
    let left = MARGIN + LABELS;
    let (right, bottom) = (left + WIDTH, top + HEIGHT);
    let across = |value: f64| left + WIDTH * x.at(value);
    let up = |value: f64| bottom - HEIGHT * y.at(value);
    // Writing to a string does not fail.
    for (value, at) in y.ticks().into_iter().map(|tick| (format_g(tick), up(tick))) {
        let _ = writeln!(
            svg,
            r##"<path d="M{left} {at:.1}H{right}" stroke="#e4e7eb"/><text x="{:.1}" y="{:.1}" text-anchor="end" fill="#52606d">{value}</text>"##,
            left - 8.0,
            at + 4.0
        );
    }
    for (value, at) in x.ticks().into_iter().map(|tick| (format_g(tick), across(tick))) {
        let _ = writeln!(
            svg,
            r##"<path d="M{at:.1} {bottom}v5" stroke="#52606d"/><text x="{at:.1}" y="{:.1}" text-anchor="middle" fill="#52606d">{value}</text>"##,
            bottom + 18.0
        );
    }
    let _ = writeln!(
        svg,
        r##"<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="#52606d"/><text x="{left}" y="{:.1}">{name}</text><text x="{right}" y="{:.1}" text-anchor="end" fill="#52606d">iteration</text>"##,
        top - 8.0,
        bottom + 34.0
    );
    for (place, curve) in curves.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let points: Vec<_> = curve.points.iter().map(|&[x, y]| (across(x), up(y))).collect();
        let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        // A line of one point is none to be seen.
        let (end_x, end_y) = points.last().copied().unwrap_or((left, bottom));
        let _ = writeln!(
            svg,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.5"/><circle cx="{end_x:.1}" cy="{end_y:.1}" r="3" fill="{colour}"/><text x="{:.1}" y="{:.1}" fill="{colour}">{}</text>"#,
            path.join(" "),
            right + MARGIN,
            top + 12.0 + 18.0 * place as f64,
            escaped(&legend(curve))
        );
    }
}

#[cfg(test)]
mod tests {
    use super::ChartAxis;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = |low: f64, high: f64| ChartAxis::linear([low, high].into_iter());
        assert_eq!(axis(0.0, 10_000.0).ticks(), [0.0, 2e3, 4e3, 6e3, 8e3, 1e4]);
        assert_eq!(axis(-1.0, 1.0).ticks(), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(axis(7.0, 7.0).ticks().len(), 6);
        assert_eq!(ChartAxis::linear(std::iter::empty()).ticks().first(), Some(&0.0));
        assert_eq!(axis(0.0, 5e-324).ticks(), [0.0]);
        let decades = ChartAxis { low: 0.004, high: 3.0, logarithmic: true };
        assert_eq!(decades.ticks().len(), 3); // 0.01, 0.1, 1
        assert_eq!((decades.at(0.004), decades.at(3.0)), (0.0, 1.0));
    }
}

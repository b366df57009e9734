//! Line chart of curves as an SVG image.

use super::curves::{Curve, Curves};
use crate::{
    format_g::format_g,
    svg::{MARGIN, escape_xml, svg_document},
};
use std::fmt::Write;

/// Width of a panel, in pixels.
const PANEL_WIDTH: f64 = 680.0;
/// Height of a panel, in pixels.
const PANEL_HEIGHT: f64 = 240.0;
/// Width of the tick labels to the left of a panel, in pixels.
const TICK_LABEL_WIDTH: f64 = 64.0;
/// Gap between two panels, in pixels.
const PANEL_GAP: f64 = 56.0;
/// Estimated width of a character in the legend, in pixels.
const CHARACTER_WIDTH: f64 = 7.3;
/// Colours of a panel's curves, in the order of the curves.
const COLOURS: [&str; 6] = ["#1f5fbf", "#b3261e", "#2f6f4f", "#8a5a00", "#6b4fa0", "#52606d"];

/// Draws the panels one below the other as an SVG image, and omits panels without curves. `data` is
/// SVG text, which the function inserts unchanged.
pub(super) fn draw(title: &str, panels: &[(&str, &Curves)], data: &str) -> String {
    let drawn_panels: Vec<_> = panels.iter().filter(|(_, curves)| !curves.0.is_empty()).collect();
    let points =
        drawn_panels.iter().flat_map(|(_, curves)| curves.0.iter().flat_map(|c| &c.points));
    let x = ChartAxis::linear(points.map(|point| point[0]));
    let (mut body, mut top) = (data.to_owned(), MARGIN + PANEL_GAP / 2.0);
    for (name, curves) in &drawn_panels {
        draw_panel(&mut body, top, name, &curves.0, &x);
        top += PANEL_HEIGHT + PANEL_GAP;
    }
    let curves = drawn_panels.iter().flat_map(|(_, curves)| &curves.0);
    let legend = curves.map(|curve| legend_text(curve).chars().count()).max().unwrap_or(0);
    let right = MARGIN + TICK_LABEL_WIDTH + PANEL_WIDTH + MARGIN + legend as f64 * CHARACTER_WIDTH;
    svg_document(right + MARGIN, top, title, &body)
}

/// Returns the legend entry of a curve: its name and last value.
fn legend_text(curve: &Curve) -> String {
    let last = curve.points.last().map_or(f64::NAN, |point| point[1]);
    format!("{} {}", curve.name, format_g(last))
}

/// Axis of a panel, which maps values to fractions of the panel's width or height.
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
            // If all values are equal, the axis covers a range of length 1.
            false if low.is_finite() => Self { low, high: low + 1.0, logarithmic: false },
            false => Self { low: 0.0, high: 1.0, logarithmic: false },
        }
    }

    /// Returns the y-axis of a panel, which is logarithmic if all values are positive and span more
    /// than a factor of 50.
    fn for_curves(curves: &[Curve]) -> Self {
        let linear_axis = Self::linear(curves.iter().flat_map(|c| &c.points).map(|point| point[1]));
        let logarithmic = linear_axis.low > 0.0 && linear_axis.high > 50.0 * linear_axis.low;
        Self { logarithmic, ..linear_axis }
    }

    fn position(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.logarithmic { value.log10() } else { value };
        (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
    }

    /// Returns the values of the tick marks, which are round numbers within the axis's range.
    fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
            let mantissas: &[f64] =
                if decades.clone().count() > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let tick =
                |power: i32| mantissas.iter().map(move |mantissa| mantissa * 10f64.powi(power));
            let is_in_range = |tick: &f64| (self.low..=self.high).contains(tick);
            return decades.flat_map(tick).filter(is_in_range).collect();
        }
        let min_step = (self.high - self.low) / 6.0;
        if min_step == 0.0 {
            return vec![self.low]; // the axis is too short for several ticks
        }
        let power = 10f64.powi(min_step.log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|mantissa| mantissa * power);
        let step = step.into_iter().find(|step| *step >= min_step).unwrap_or(min_step);
        let multiples = (self.low / step).ceil() as i64..=(self.high / step).floor() as i64;
        multiples.map(|multiple| multiple as f64 * step).collect()
    }
}

fn draw_panel(svg: &mut String, top: f64, name: &str, curves: &[Curve], x: &ChartAxis) {
    let y = ChartAxis::for_curves(curves);
    let left = MARGIN + TICK_LABEL_WIDTH;
    let (right, bottom) = (left + PANEL_WIDTH, top + PANEL_HEIGHT);
    let to_x = |value: f64| left + PANEL_WIDTH * x.position(value);
    let to_y = |value: f64| bottom - PANEL_HEIGHT * y.position(value);
    // `writeln!` to a `String` never fails.
    for (value, at) in y.ticks().into_iter().map(|tick| (format_g(tick), to_y(tick))) {
        let _ = writeln!(
            svg,
            r##"<path d="M{left} {at:.1}H{right}" stroke="#e4e7eb"/><text x="{:.1}" y="{:.1}" text-anchor="end" fill="#52606d">{value}</text>"##,
            left - 8.0,
            at + 4.0
        );
    }
    for (value, at) in x.ticks().into_iter().map(|tick| (format_g(tick), to_x(tick))) {
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
    for (index, curve) in curves.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points: Vec<_> = curve.points.iter().map(|&[x, y]| (to_x(x), to_y(y))).collect();
        let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        // The circle at the last point makes a curve with only one point visible.
        let (end_x, end_y) = points.last().copied().unwrap_or((left, bottom));
        let _ = writeln!(
            svg,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.5"/><circle cx="{end_x:.1}" cy="{end_y:.1}" r="3" fill="{colour}"/><text x="{:.1}" y="{:.1}" fill="{colour}">{}</text>"#,
            path.join(" "),
            right + MARGIN,
            top + 12.0 + 18.0 * index as f64,
            escape_xml(&legend_text(curve))
        );
    }
}

#[cfg(test)]
mod tests {
    use super::ChartAxis;

    #[test]
    fn axis_ticks_are_round_and_within_the_range_of_the_axis() {
        let axis = |low: f64, high: f64| ChartAxis::linear([low, high].into_iter());
        assert_eq!(axis(0.0, 10_000.0).ticks(), [0.0, 2e3, 4e3, 6e3, 8e3, 1e4]);
        assert_eq!(axis(-1.0, 1.0).ticks(), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(axis(7.0, 7.0).ticks().len(), 6);
        assert_eq!(ChartAxis::linear(std::iter::empty()).ticks().first(), Some(&0.0));
        assert_eq!(axis(0.0, 5e-324).ticks(), [0.0]);
        let decades = ChartAxis { low: 0.004, high: 3.0, logarithmic: true };
        assert_eq!(decades.ticks().len(), 3); // ticks at 0.01, 0.1 and 1
        assert_eq!((decades.position(0.004), decades.position(3.0)), (0.0, 1.0));
    }
}

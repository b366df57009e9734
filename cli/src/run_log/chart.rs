//! Plot of curves as an SVG image: one chart for losses, one for scores.

use super::curves::{Curve, Curves};
use crate::{escape::escape_control, format_g::format_g};
use cortado::{
    drawing::{AxisScale, Chart, MARGIN, Mark, Series, svg_document},
    error::Result,
};

/// Width of a chart, in pixels.
const CHART_WIDTH: f64 = 760.0;
/// Height of a chart, in pixels.
const CHART_HEIGHT: f64 = 320.0;

/// Draws the panels one below the other as an SVG image, and omits panels without curves. `data` is
/// SVG text, which the function inserts unchanged.
pub(super) fn draw(title: &str, panels: &[(&str, &Curves)], data: &str) -> Result<String> {
    let (mut body, mut top) = (data.to_owned(), 2.0 * MARGIN);
    for (name, curves) in panels.iter().filter(|(_, curves)| !curves.0.is_empty()) {
        let chart = Chart {
            x: "iteration".into(),
            y: (*name).into(),
            scales: [AxisScale::Linear, AxisScale::Automatic],
            series: curves.0.iter().map(series).collect(),
        };
        let svg = chart.svg(CHART_WIDTH, CHART_HEIGHT)?;
        body.push_str(&format!("<g transform=\"translate({MARGIN} {top})\">\n{svg}</g>\n"));
        top += CHART_HEIGHT + MARGIN;
    }
    Ok(svg_document(CHART_WIDTH + 2.0 * MARGIN, top, &escape_control(title), &body))
}

/// Returns the series of a curve, whose legend entry is the name and last value of the curve.
fn series(curve: &Curve) -> Series {
    let last = curve.points.last().map_or(f64::NAN, |point| point[1]);
    let name = format!("{} {}", escape_control(&curve.name), format_g(last));
    Series { name, mark: Mark::Line, points: curve.points.clone() }
}

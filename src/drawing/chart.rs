//! Chart: series of points in one coordinate system, with labelled axes and a legend.

use super::{
    document::{SVG_NAMESPACE, escape_xml},
    scale::Scale,
};
use crate::error::{Error, Result};
use plotters::prelude::*;
use std::fmt::Write;

/// Colors of the series of a chart, in the order of the series. The seventh series has the first
/// color again, but dashed lines and triangles instead of solid lines and circles; the thirteenth
/// series has short dashes and crosses. A page with another background can override the colors with
/// CSS rules.
pub const COLORS: [&str; 6] = ["#1F5FBF", "#B3261E", "#2F6F4F", "#8A5A00", "#6B4FA0", "#52606D"];

/// Color of axes and labels: the last of [`COLORS`].
const AXIS: RGBColor = RGBColor(0x52, 0x60, 0x6d);
/// Color of grid lines.
const GRID: RGBColor = RGBColor(0xdd, 0xe1, 0xe6);
/// Height of a row of the legend, in pixels.
const LEGEND_ROW: f64 = 18.0;
/// Estimated width of a character of the legend, in pixels.
const CHARACTER_WIDTH: f64 = 7.3;
/// Height of the tick labels and the label below the x-axis, in pixels.
const X_LABELS: f64 = 42.0;

/// Manner in which a chart shows the points of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through the points.
    Line,
    /// A dot at each point.
    Dots,
}

/// Points of a chart with the same color and name.
///
/// [`Chart`] has an example.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Manner in which the chart shows the points.
    pub mark: Mark,
    /// Points as `[x, y]`; points that are not finite are omitted, and so are points that are not
    /// positive on a logarithmic axis.
    pub points: Vec<[f64; 2]>,
}

/// Scale of an axis of a chart.
///
/// [`Chart`] has an example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AxisScale {
    /// Logarithmic if all values are positive and span more than a factor of 50, otherwise linear.
    #[default]
    Automatic,
    /// The same as [`Automatic`](Self::Automatic), except that a linear axis also contains 0.
    AutomaticWithZero,
    /// Always linear.
    Linear,
    /// Always logarithmic.
    Logarithmic,
}

impl AxisScale {
    fn is_logarithmic(self, values: impl Iterator<Item = f64>) -> bool {
        match self {
            Self::Automatic | Self::AutomaticWithZero => Scale::needs_logarithm(values),
            Self::Linear => false,
            Self::Logarithmic => true,
        }
    }
}

/// Series in one coordinate system.
///
/// ```
/// use cortado::drawing::{AxisScale, Chart, Mark, Series};
///
/// let series = Series {
///     name: "gemm".into(),
///     mark: Mark::Line,
///     points: vec![[16.0, 5.0], [1024.0, 90.0]],
/// };
/// let scales = [AxisScale::Logarithmic, AxisScale::Automatic];
/// let chart = Chart { x: "rows".into(), y: "GFLOP/s".into(), scales, series: vec![series] };
/// let svg = chart.svg(480.0, 300.0)?;
/// assert!(svg.starts_with("<svg") && svg.contains("GFLOP/s"));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Label of the x-axis, with the unit.
    pub x: String,
    /// Label of the y-axis, with the unit.
    pub y: String,
    /// Scales of the x-axis and the y-axis.
    pub scales: [AxisScale; 2],
    /// Series, each with the next color of [`COLORS`]. After the last color, the colors start
    /// again, with the next line pattern and point shape.
    pub series: Vec<Series>,
}

impl Chart {
    /// Returns the chart as an SVG image of `width` × `height` pixels, with the legend at the top.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if the chart does not fit in the image.
    pub fn svg(&self, width: f64, height: f64) -> Result<String> {
        let (legend, legend_height) = self.legend(width);
        let mut plot = String::new();
        self.draw_plot(&mut plot, width, height - legend_height)
            .map_err(|error| Error::InvalidData(format!("chart of {}: {error}", self.y)))?;
        Ok(format!(
            "<svg xmlns=\"{SVG_NAMESPACE}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-size=\"12\" role=\"img\">\n{legend}\
             <g transform=\"translate(0 {legend_height:.0})\">\n{plot}</g></svg>\n"
        ))
    }

    /// Returns the legend as SVG text, and its height in pixels. The entries wrap to a new row at
    /// `width`.
    fn legend(&self, width: f64) -> (String, f64) {
        let (mut svg, mut x, mut y) = (String::new(), 4.0, LEGEND_ROW / 2.0);
        for (index, series) in self.series.iter().enumerate() {
            let entry_width = 36.0 + CHARACTER_WIDTH * series.name.chars().count() as f64;
            if x + entry_width > width && x > 4.0 {
                (x, y) = (4.0, y + LEGEND_ROW);
            }
            let (color, pattern) = (COLORS[index % COLORS.len()], Pattern::of(index));
            // `writeln!` to a `String` never fails.
            let _ = writeln!(
                svg,
                r#"{}<text x="{:.0}" y="{:.0}" fill="{color}">{}</text>"#,
                pattern.symbol(series.mark, [x, y], color),
                x + 24.0,
                y + 4.0,
                escape_xml(&series.name)
            );
            x += entry_width;
        }
        (svg, y + LEGEND_ROW / 2.0)
    }

    fn draw_plot(
        &self,
        svg: &mut String,
        width: f64,
        height: f64,
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        let values = |axis: usize| {
            let points = self.series.iter().flat_map(|series| &series.points);
            points.map(move |point| point[axis])
        };
        let logarithmic = [0, 1].map(|axis| self.scales[axis].is_logarithmic(values(axis)));
        let [x, y] = [0, 1].map(|axis| {
            let has_zero = self.scales[axis] == AxisScale::AutomaticWithZero && !logarithmic[axis];
            Scale::of(values(axis).chain(has_zero.then_some(0.0)), logarithmic[axis])
        });
        let size = [width, height].map(|pixels| pixels.max(0.0) as u32);
        let root = SVGBackend::with_string(svg, (size[0], size[1])).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin_top(8)
            .margin_right(16)
            .x_label_area_size(X_LABELS)
            .y_label_area_size(64)
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .axis_style(AXIS)
            .label_style(("sans-serif", 12).into_font().color(&AXIS))
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .x_desc(&self.x)
            .y_desc(&self.y)
            .draw()?;
        let is_drawn = |point: &[f64; 2]| {
            let axis = |i: usize| point[i].is_finite() && (!logarithmic[i] || point[i] > 0.0);
            axis(0) && axis(1)
        };
        for (index, series) in self.series.iter().enumerate() {
            let color = color(index);
            let points = series.points.iter().filter(|point| is_drawn(point));
            let points: Vec<_> = points.map(|&[x, y]| (x, y)).collect();
            let pattern = Pattern::of(index);
            // A line with only one point would be invisible without a marker at its last point.
            let marked = match series.mark {
                Mark::Dots => &points[..],
                Mark::Line => &points[points.len().saturating_sub(1)..],
            };
            let style = color.filled();
            chart.draw_series(marked.iter().map(|&point| match pattern {
                Pattern::Solid => Circle::new(point, 3, style).into_dyn(),
                Pattern::Dashed => TriangleMarker::new(point, 4, style).into_dyn(),
                Pattern::Dotted => Cross::new(point, 3, color.stroke_width(2)).into_dyn(),
            }))?;
            if series.mark == Mark::Line && points.len() > 1 {
                let style = color.stroke_width(2);
                match pattern.dashes() {
                    None => chart.draw_series(LineSeries::new(points, style))?,
                    Some([dash, gap]) => {
                        chart.draw_series(DashedLineSeries::new(points, dash, gap, style))?
                    }
                };
            }
        }
        root.present()?;
        drop(chart);
        drop(root);
        Ok(())
    }
}

/// Pattern of the lines and shape of the points of a series, which distinguishes series of the same
/// color.
#[derive(Clone, Copy)]
enum Pattern {
    /// Solid lines and circles.
    Solid,
    /// Dashed lines and triangles.
    Dashed,
    /// Lines of short dashes, and crosses.
    Dotted,
}

impl Pattern {
    /// Returns the pattern of the series with this index.
    fn of(index: usize) -> Self {
        [Self::Solid, Self::Dashed, Self::Dotted][index / COLORS.len() % 3]
    }

    /// Returns the lengths of dashes and gaps in pixels; `None` for solid lines.
    fn dashes(self) -> Option<[u32; 2]> {
        match self {
            Self::Solid => None,
            Self::Dashed => Some([8, 5]),
            Self::Dotted => Some([2, 4]),
        }
    }

    /// Returns the symbol of a series in the legend as SVG text: a line of 18 pixels or a point, to
    /// the right of `[x, y]`.
    fn symbol(self, mark: Mark, [x, y]: [f64; 2], color: &str) -> String {
        let center = x + 9.0;
        match (mark, self) {
            (Mark::Line, _) => {
                let dashes = self.dashes().map_or(String::new(), |[dash, gap]| {
                    format!(r#" stroke-dasharray="{dash} {gap}""#)
                });
                format!(
                    r#"<path d="M{x:.0} {y:.0}h18" stroke="{color}" stroke-width="2"{dashes}/>"#
                )
            }
            (Mark::Dots, Self::Solid) => {
                format!(r#"<circle cx="{center:.0}" cy="{y:.0}" r="4" fill="{color}"/>"#)
            }
            (Mark::Dots, Self::Dashed) => {
                format!(r#"<path d="M{center:.0} {:.0}l4 7h-8z" fill="{color}"/>"#, y - 4.0)
            }
            (Mark::Dots, Self::Dotted) => format!(
                r#"<path d="M{:.0} {:.0}l6 6m0 -6l-6 6" stroke="{color}" stroke-width="2"/>"#,
                center - 3.0,
                y - 3.0
            ),
        }
    }
}

/// Returns the color of the series with this index.
fn color(index: usize) -> RGBColor {
    let text = COLORS[index % COLORS.len()];
    let [r, g, b] = [1, 3, 5].map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap_or(0));
    RGBColor(r, g, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_cannot_be_drawn_are_omitted() {
        let points = vec![[1.0, 1.0], [f64::NAN, 2.0], [100.0, 1e5], [3.0, f64::INFINITY]];
        let series = Series { name: "<a>".into(), mark: Mark::Dots, points };
        let chart = Chart { series: vec![series], ..Chart::default() };
        let svg = chart.svg(400.0, 300.0).unwrap();
        // Two drawn points, and the circle of the legend.
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert!(svg.contains("&lt;a&gt;") && !svg.contains("NaN"), "{svg}");
        assert!(Chart::default().svg(400.0, 300.0).is_ok());
        let _ = Chart::default().svg(0.0, -5.0); // does not panic
    }

    #[test]
    fn series_of_the_same_color_have_different_patterns() {
        let series = |mark| {
            move |i: usize| {
                let points = [[0.0, i as f64], [1.0, i as f64 + 1.0]].to_vec();
                Series { name: i.to_string(), mark, points }
            }
        };
        let svg = |mark, count| {
            let series = (0..count).map(series(mark)).collect();
            Chart { series, ..Chart::default() }.svg(400.0, 300.0).unwrap()
        };
        let dashes = |count| svg(Mark::Line, count).matches("stroke-dasharray").count();
        assert_eq!([6, 7, 13].map(dashes), [0, 1, 7]);
        // A dashed line consists of many polylines. A solid line consists of one polyline.
        let lines = |count| svg(Mark::Line, count).matches("<polyline").count();
        assert!(lines(7) > lines(6) + 10, "{} {}", lines(6), lines(7));
        // Only the first six series have circles: one in the legend and one for each point.
        let circles = |count| svg(Mark::Dots, count).matches("<circle").count();
        assert_eq!([6, 7, 13].map(circles), [18, 18, 18]);
        // A seventh line without points draws nothing, and does not fail.
        let mut empty: Vec<_> = (0..7).map(series(Mark::Line)).collect();
        empty[6].points.clear();
        assert!(Chart { series: empty, ..Chart::default() }.svg(400.0, 300.0).is_ok());
    }

    #[test]
    fn a_logarithmic_scale_maps_equal_ratios_to_equal_distances() {
        let points = [1.0, 2.0, 4.0].map(|value| [value, value]).to_vec();
        let series = Series { name: "x".into(), mark: Mark::Dots, points };
        let heights = |scale: AxisScale| {
            let chart =
                Chart { scales: [scale; 2], series: vec![series.clone()], ..Chart::default() };
            let svg = chart.svg(400.0, 300.0).unwrap();
            let circles = svg.split("<circle").skip(2); // the first is in the legend
            let heights = circles.map(|circle| {
                circle.split("cy=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            });
            heights.collect::<Vec<f64>>()
        };
        let distances = |scale| match heights(scale)[..] {
            [first, second, third] => (first - second) / (second - third),
            ref heights => panic!("{heights:?}"),
        };
        assert!((distances(AxisScale::Logarithmic) - 1.0).abs() < 0.05);
        assert!((distances(AxisScale::Linear) - 0.5).abs() < 0.05);
        assert!((distances(AxisScale::Automatic) - 0.5).abs() < 0.05);
        // With 0 at the bottom, the value 1 is at a quarter of the height of the value 4.
        let span = |scale| heights(scale)[0] - heights(scale)[2];
        let ratio = span(AxisScale::AutomaticWithZero) / span(AxisScale::Linear);
        assert!((ratio - 0.75).abs() < 0.02, "{ratio}");
    }
}

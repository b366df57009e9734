//! SVG drawing of a net's layers and blobs.

use super::{
    layout::{BlobLine, DrawLayout},
    row::Row,
};
use crate::escape::escape_control;
use cortado::drawing::{MARGIN, escape_xml, svg_document};
use std::fmt::Write;

/// Height of a layer's row, in pixels.
const ROW_HEIGHT: f64 = 26.0;
/// Distance between adjacent lanes of a net drawing, in pixels.
const LANE_WIDTH: f64 = 20.0;
/// Estimated width of a character in the text of a row, in pixels.
const CHARACTER_WIDTH: f64 = 7.3;
/// Gap between columns of text, in pixels.
const COLUMN_GAP: f64 = 22.0;

/// Returns the drawing of a net as an SVG document.
pub(super) fn draw(title: &str, rows: &[Row]) -> String {
    let layout = DrawLayout::new(rows);
    let texts: Vec<Vec<String>> = rows.iter().map(row_texts).collect();
    let mut x = MARGIN + layout.lane_count as f64 * LANE_WIDTH;
    let mut starts = Vec::new();
    for column in 0..texts.first().map_or(0, Vec::len) {
        starts.push(x);
        let length = texts.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        if length > 0 {
            x += length as f64 * CHARACTER_WIDTH + COLUMN_GAP;
        }
    }
    let summary = summary(title, rows);
    let width = x.max(summary.chars().count() as f64 * CHARACTER_WIDTH + MARGIN) + MARGIN;
    let height = y(rows.len()) + MARGIN;
    let mut svg = String::new();
    // `writeln!` to a `String` never fails.
    for line in &layout.lines {
        let _ = writeln!(
            svg,
            r##"<path d="{}" fill="none" stroke="#9aa5b1" stroke-width="2"/>"##,
            path(line, &layout)
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let (x, y) = (lane_x(layout.marks[index]), y(index));
        let colour = mark_colour(row);
        let fill = if row.in_place() { "#fff" } else { colour };
        let _ = writeln!(
            svg,
            r#"<circle cx="{x}" cy="{y}" r="6" fill="{fill}" stroke="{colour}" stroke-width="2.5"/>"#
        );
        for (column, (text, start)) in texts[index].iter().zip(&starts).enumerate() {
            if !text.is_empty() {
                let text_colour = if column == 0 { "#111" } else { "#52606d" };
                let _ = writeln!(
                    svg,
                    r#"<text x="{start:.1}" y="{:.1}" fill="{text_colour}">{}</text>"#,
                    y + 4.0,
                    escape_xml(&escape_control(text))
                );
            }
        }
    }
    svg_document(width, height, &escape_control(&summary), &svg)
}

fn summary(title: &str, rows: &[Row]) -> String {
    let params: usize = rows.iter().map(|row| row.params).sum();
    let layers = rows.len();
    match params {
        0 => format!("{title}: {layers} layers"),
        params => format!("{title}: {layers} layers, {} parameters", group_digits(params)),
    }
}

/// Returns the text of each column in a layer's row.
fn row_texts(row: &Row) -> Vec<String> {
    let kind = if row.in_place() { format!("{} (in place)", row.kind) } else { row.kind.clone() };
    let params = if row.params > 0 { group_digits(row.params) } else { String::new() };
    vec![row.name.clone(), kind, row.settings.clone(), row.shapes.clone(), params]
}

/// Returns the SVG path of a blob's line. The path starts at the layer that computes the blob, runs
/// down the blob's lane, and branches to each layer that reads the blob.
fn path(line: &BlobLine, layout: &DrawLayout) -> String {
    let x = lane_x(line.lane);
    let (from, start) = (lane_x(layout.marks[line.from]), y(line.from));
    let mut path = format!("M{from} {start}");
    // A blob's vertical line starts at the mark of the layer that computes the blob, or one row
    // below the mark if that mark is in another lane. The vertical line ends at the mark of the
    // last layer that reads the blob, or one row above the mark if that mark is in another lane.
    let last = line.readers.last().copied().unwrap_or(line.from);
    let begin = if from == x { line.from } else { line.from + 1 };
    let end = if lane_x(layout.marks[last]) == x { last } else { last.saturating_sub(1) };
    if end >= begin {
        if from != x {
            path.push_str(&curve_to_mark(from, x, y(begin)));
        }
        let _ = write!(path, "V{}", y(end));
    }
    for &reader in &line.readers {
        let to = lane_x(layout.marks[reader]);
        let branch_x = if reader > begin { x } else { from };
        if to != branch_x {
            let _ = write!(
                path,
                "M{branch_x} {}{}",
                y(reader) - ROW_HEIGHT,
                curve_to_mark(branch_x, to, y(reader))
            );
        } else if branch_x != x {
            let _ = write!(path, "M{branch_x} {}V{}", y(reader) - ROW_HEIGHT, y(reader));
        }
    }
    path
}

/// Returns the SVG path command for a curve to the mark at (`to`, `y`). The curve starts one row
/// above the mark, at the horizontal position `x`.
fn curve_to_mark(x: f64, to: f64, y: f64) -> String {
    format!("C{x} {} {to} {} {to} {y}", y - ROW_HEIGHT / 3.0, y - 2.0 * ROW_HEIGHT / 3.0)
}

fn lane_x(lane: usize) -> f64 {
    MARGIN + lane as f64 * LANE_WIDTH
}

fn y(row: usize) -> f64 {
    2.0 * MARGIN + row as f64 * ROW_HEIGHT
}

/// Returns the colour of a layer's mark, which depends on the layer's role: data, loss, pooling,
/// weights, or other.
fn mark_colour(row: &Row) -> &'static str {
    match row.kind.as_str() {
        kind if row.bottoms.is_empty() || kind == "Input" => "#2f6f4f",
        kind if kind.ends_with("Loss") || kind == "Accuracy" => "#b3261e",
        "Pooling" | "SPP" => "#8a5a00",
        "Convolution" | "Deconvolution" | "InnerProduct" | "LSTM" | "RNN" | "Embed" => "#1f5fbf",
        _ => "#6b4fa0",
    }
}

/// Formats a number with its digits in groups of three.
fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

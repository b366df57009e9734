//! Rows and lanes as an SVG image.

use super::{
    Row,
    layout::{BlobLine, DrawLayout},
};
use crate::cli::svg::{MARGIN, escaped, page};
use std::fmt::Write;

/// Pixels: of a row, between lanes, of a character.
const ROW: f64 = 26.0;
const LANE: f64 = 20.0;
const CHARACTER: f64 = 7.3;
/// Between two columns of text.
const GAP: f64 = 22.0;

/// The image.
pub(super) fn draw(title: &str, rows: &[Row]) -> String {
    let lanes = DrawLayout::new(rows);
    let columns: Vec<Vec<String>> = rows.iter().map(texts).collect();
    let mut x = MARGIN + lanes.count as f64 * LANE;
    let mut starts = Vec::new();
    for column in 0..columns.first().map_or(0, Vec::len) {
        starts.push(x);
        let length = columns.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        if length > 0 {
            x += length as f64 * CHARACTER + GAP;
        }
    }
    let summary = summary(title, rows);
    let width = x.max(summary.chars().count() as f64 * CHARACTER + MARGIN) + MARGIN;
    let height = y(rows.len()) + MARGIN;
    let mut svg = String::new();
    // Writing to a string does not fail.
    for line in &lanes.lines {
        let _ = writeln!(
            svg,
            r##"<path d="{}" fill="none" stroke="#9aa5b1" stroke-width="2"/>"##,
            path(line, &lanes)
        );
    }
    for (place, row) in rows.iter().enumerate() {
        let (x, y) = (lane_x(lanes.marks[place]), y(place));
        let colour = colour(row);
        let fill = if row.in_place() { "#fff" } else { colour };
        let _ = writeln!(
            svg,
            r#"<circle cx="{x}" cy="{y}" r="6" fill="{fill}" stroke="{colour}" stroke-width="2.5"/>"#
        );
        for (column, (text, start)) in columns[place].iter().zip(&starts).enumerate() {
            if !text.is_empty() {
                let grey = if column == 0 { "#111" } else { "#52606d" };
                let _ = writeln!(
                    svg,
                    r#"<text x="{start:.1}" y="{:.1}" fill="{grey}">{}</text>"#,
                    y + 4.0,
                    escaped(text)
                );
            }
        }
    }
    page(width, height, &summary, &svg)
}

fn summary(title: &str, rows: &[Row]) -> String {
    let params: usize = rows.iter().map(|row| row.params).sum();
    let layers = rows.len();
    match params {
        0 => format!("{title}: {layers} layers"),
        params => format!("{title}: {layers} layers, {} parameters", grouped(params)),
    }
}

/// What a row says, column by column.
fn texts(row: &Row) -> Vec<String> {
    let kind = if row.in_place() { format!("{} (in place)", row.kind) } else { row.kind.clone() };
    let params = if row.params > 0 { grouped(row.params) } else { String::new() };
    vec![row.name.clone(), kind, row.settings.clone(), row.shapes.clone(), params]
}

/// From the mark that makes a blob down its lane, and from there to each that reads it.
fn path(line: &BlobLine, lanes: &DrawLayout) -> String {
    let x = lane_x(line.lane);
    let (from, start) = (lane_x(lanes.marks[line.from]), y(line.from));
    let mut path = format!("M{from} {start}");
    // The lane begins at the mark or, if that is in another, a row below; it ends a row above its
    // last reader, if that has its mark in another.
    let last = line.readers.last().copied().unwrap_or(line.from);
    let begin = if from == x { line.from } else { line.from + 1 };
    let end = if lane_x(lanes.marks[last]) == x { last } else { last.saturating_sub(1) };
    if end >= begin {
        if from != x {
            path.push_str(&bend(from, x, y(begin)));
        }
        let _ = write!(path, "V{}", y(end));
    }
    for &reader in &line.readers {
        let to = lane_x(lanes.marks[reader]);
        let leaves = if reader > begin { x } else { from };
        if to != leaves {
            let _ = write!(path, "M{leaves} {}{}", y(reader) - ROW, bend(leaves, to, y(reader)));
        } else if leaves != x {
            let _ = write!(path, "M{leaves} {}V{}", y(reader) - ROW, y(reader));
        }
    }
    path
}

/// From the row above at `x` to the mark at `to`.
fn bend(x: f64, to: f64, y: f64) -> String {
    format!("C{x} {} {to} {} {to} {y}", y - ROW / 3.0, y - 2.0 * ROW / 3.0)
}

fn lane_x(lane: usize) -> f64 {
    MARGIN + lane as f64 * LANE
}

fn y(row: usize) -> f64 {
    2.0 * MARGIN + row as f64 * ROW
}

/// By what a layer is for: data, weights, windows, results, all else.
fn colour(row: &Row) -> &'static str {
    match row.kind.as_str() {
        kind if row.bottoms.is_empty() || kind == "Input" => "#2f6f4f",
        kind if kind.ends_with("Loss") || kind == "Accuracy" => "#b3261e",
        "Pooling" | "SPP" => "#8a5a00",
        "Convolution" | "Deconvolution" | "InnerProduct" | "LSTM" | "RNN" | "Embed" => "#1f5fbf",
        _ => "#6b4fa0",
    }
}

/// Digits in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

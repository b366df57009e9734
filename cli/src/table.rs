//! Plain-text tables for a terminal.

use std::fmt::Write;

/// Escapes control characters in text that comes from a file, because a terminal would interpret
/// control characters.
pub(super) fn escape_control(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    text.chars().map(escape).collect()
}

/// Formats the rows of a table, with two spaces between columns. The first `left_aligned` columns
/// are left-aligned, and all other columns are right-aligned.
pub(super) fn align_columns(rows: &[Vec<String>], left_aligned: usize) -> String {
    let length = |cell: &String| cell.chars().count();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| rows.iter().filter_map(|row| row.get(column)).map(length).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if column > 0 { "  " } else { "" };
            let _ = match column < left_aligned {
                true => write!(line, "{gap}{cell:<width$}"),
                false => write!(line, "{gap}{cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

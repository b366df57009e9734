//! Plain-text tables for a terminal.

use std::fmt::Write;

/// Maximum width in characters to which the cells of a column are padded. A name in a file can be
/// as long as the file, and padding every row to this length would need too much memory.
const MAX_PADDED_WIDTH: usize = 80;

/// Formats a time in seconds as milliseconds, without the unit; empty if there is no time.
pub(super) fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or(String::new(), |seconds| format!("{:.3}", seconds * 1e3))
}

/// Formats the rows of a table, with two spaces between columns. The first `left_aligned` columns
/// are left-aligned, and all other columns are right-aligned. A cell of more than 80 characters
/// overflows its column.
pub(super) fn align_columns(rows: &[Vec<String>], left_aligned: usize) -> String {
    let length = |cell: &String| cell.chars().count();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| rows.iter().filter_map(|row| row.get(column)).map(length).max();
    let widths: Vec<_> =
        (0..columns).map(|column| width(column).unwrap_or(0).min(MAX_PADDED_WIDTH)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_longer_than_80_characters_does_not_widen_the_column() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(align_columns(&[row(["a", "b"]), row(["cde", "f"])], 2), "a    b\ncde  f\n");
        let long_name = "x".repeat(70_000);
        let text = align_columns(&[row(["a", "b"]), row([&long_name, "f"])], 2);
        assert_eq!(text, format!("a{}  b\n{long_name}  f\n", " ".repeat(79)));
    }
}

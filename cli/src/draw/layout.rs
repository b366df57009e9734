//! Layout of a net drawing: the assignment of blobs' lines and layers' marks to lanes, which are
//! vertical tracks.

use super::row::Row;
use std::collections::HashMap;

/// Vertical line of a blob in the drawing, from the layer that computes the blob to the last layer
/// that reads it.
#[derive(Debug, PartialEq)]
pub(super) struct BlobLine {
    pub(super) lane: usize,
    /// Row index of the layer that computes the blob.
    pub(super) from: usize,
    /// Row indices of the layers that read the blob, in ascending order.
    pub(super) readers: Vec<usize>,
}

/// Lane assignment of a net drawing: the lanes of all layers' marks and all blobs' lines.
#[derive(Debug, PartialEq)]
pub(super) struct DrawLayout {
    /// Index of the lane (vertical track) of each layer's mark, one per row of the drawing.
    pub(super) marks: Vec<usize>,
    pub(super) lines: Vec<BlobLine>,
    pub(super) lane_count: usize,
}

impl DrawLayout {
    /// Assigns a lane to each blob and layer. A chain of layers stays in the leftmost free lane; a
    /// branch gets the next free lane.
    pub(super) fn new(rows: &[Row]) -> Self {
        let mut lines = blob_lines(rows);
        let mut written_lines = vec![Vec::new(); rows.len()];
        let mut read_lines = vec![Vec::new(); rows.len()];
        for (index, line) in lines.iter().enumerate() {
            written_lines[line.from].push(index);
            line.readers.iter().for_each(|&row| read_lines[row].push(index));
        }
        let mut is_occupied: Vec<bool> = Vec::new();
        let mut marks = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            for &index in &read_lines[row] {
                if lines[index].readers.last() == Some(&row) {
                    is_occupied[lines[index].lane] = false;
                }
            }
            let lanes = || read_lines[row].iter().map(|&index| lines[index].lane);
            let (free_lane, first_lane) =
                (lanes().filter(|&lane| !is_occupied[lane]).min(), lanes().min());
            for &index in &written_lines[row] {
                let free_lane = free_lane.filter(|&lane| !is_occupied[lane]);
                let lane =
                    free_lane.or_else(|| is_occupied.iter().position(|is_occupied| !is_occupied));
                let lane = lane.unwrap_or_else(|| {
                    is_occupied.push(false);
                    is_occupied.len() - 1
                });
                // If no layer reads a blob, its lane is free in the rows below the layer that computes it.
                is_occupied[lane] = !lines[index].readers.is_empty();
                lines[index].lane = lane;
            }
            let own_lane = written_lines[row].first().map(|&index| lines[index].lane);
            marks.push(own_lane.or(first_lane).unwrap_or(0));
        }
        Self { marks, lines, lane_count: is_occupied.len().max(1) }
    }
}

/// Returns the vertical line of each blob, before lanes are assigned. A blob that layers modify in
/// place has a single line in the drawing.
fn blob_lines(rows: &[Row]) -> Vec<BlobLine> {
    let mut lines: Vec<BlobLine> = Vec::new();
    let mut line_indices: HashMap<&str, usize> = HashMap::new();
    for (row, layer) in rows.iter().enumerate() {
        for bottom in &layer.bottom_names() {
            if let Some(&index) = line_indices.get(bottom) {
                lines[index].readers.push(row);
            }
        }
        for top in layer.tops.iter().filter(|top| !layer.bottoms.contains(top)) {
            line_indices.insert(top, lines.len());
            lines.push(BlobLine { lane: 0, from: row, readers: Vec::new() });
        }
    }
    lines
}

impl Row {
    /// Returns the names of the layer's bottoms without duplicates.
    fn bottom_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for bottom in &self.bottoms {
            if !names.contains(&bottom.as_str()) {
                names.push(bottom);
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bottoms: &str, tops: &str) -> Row {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let empty = String::new;
        let (bottoms, tops) = (names(bottoms), names(tops));
        let (name, kind, settings, shapes) = (empty(), empty(), empty(), empty());
        Row { name, kind, settings, shapes, params: 0, bottoms, tops }
    }

    #[test]
    fn blob_lines_that_overlap_have_different_lanes() {
        let rows = [
            row("", "data label"),
            row("data", "a"),
            row("a", "a"),
            row("a", "b"),
            row("a", "c"),
            row("b c", "d"),
            row("d label", "loss"),
            row("d label", ""),
        ];
        let layout = DrawLayout::new(&rows);
        assert_eq!(layout.marks, [0, 0, 0, 2, 0, 0, 2, 0]);
        assert_eq!(layout.lane_count, 3);
        for (i, a) in layout.lines.iter().enumerate() {
            for b in &layout.lines[..i] {
                let end = |line: &BlobLine| line.readers.last().copied().unwrap_or(line.from);
                assert!(a.lane != b.lane || end(b) <= a.from, "{a:?} {b:?}");
            }
        }
        let label = &layout.lines[1];
        assert_eq!(label.readers, [6, 7]);
    }
}

//! Which lane each blob runs in, beside the rows of layers.

use super::Row;
use std::collections::HashMap;

/// A blob: the line from the layer that makes it to the last that reads it.
#[derive(Debug, PartialEq)]
pub(super) struct BlobLine {
    pub(super) lane: usize,
    pub(super) from: usize,
    /// Rows that read it, in order.
    pub(super) readers: Vec<usize>,
}

/// Where everything is drawn.
#[derive(Debug, PartialEq)]
pub(super) struct DrawLayout {
    /// The lane of each row's mark.
    pub(super) marks: Vec<usize>,
    pub(super) lines: Vec<BlobLine>,
    /// How many lanes there are.
    pub(super) count: usize,
}

impl DrawLayout {
    /// A chain of layers runs down one lane, as far left as can be; what branches off takes the next
    /// that is free.
    pub(super) fn new(rows: &[Row]) -> Self {
        let mut lines = lines(rows);
        let mut makes = vec![Vec::new(); rows.len()];
        let mut reads = vec![Vec::new(); rows.len()];
        for (place, line) in lines.iter().enumerate() {
            makes[line.from].push(place);
            line.readers.iter().for_each(|&row| reads[row].push(place));
        }
        let mut taken: Vec<bool> = Vec::new();
        let mut marks = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            for &place in &reads[row] {
                if lines[place].readers.last() == Some(&row) {
                    taken[lines[place].lane] = false;
                }
            }
            let read = || reads[row].iter().map(|&place| lines[place].lane);
            let (ending, any) = (read().filter(|&lane| !taken[lane]).min(), read().min());
            for &place in &makes[row] {
                let ending = ending.filter(|&lane| !taken[lane]);
                let lane = ending.or_else(|| taken.iter().position(|taken| !taken));
                let lane = lane.unwrap_or_else(|| {
                    taken.push(false);
                    taken.len() - 1
                });
                // What nobody reads needs no line below its layer.
                taken[lane] = !lines[place].readers.is_empty();
                lines[place].lane = lane;
            }
            let own = makes[row].first().map(|&place| lines[place].lane);
            marks.push(own.or(any).unwrap_or(0));
        }
        Self { marks, lines, count: taken.len().max(1) }
    }
}

/// The blobs; one that is changed in place stays the same.
fn lines(rows: &[Row]) -> Vec<BlobLine> {
    let mut lines: Vec<BlobLine> = Vec::new();
    let mut current: HashMap<&str, usize> = HashMap::new();
    for (row, layer) in rows.iter().enumerate() {
        for bottom in &layer.bottom_names() {
            if let Some(&place) = current.get(bottom) {
                lines[place].readers.push(row);
            }
        }
        for top in layer.tops.iter().filter(|top| !layer.bottoms.contains(top)) {
            current.insert(top, lines.len());
            lines.push(BlobLine { lane: 0, from: row, readers: Vec::new() });
        }
    }
    lines
}

impl Row {
    /// Its bottoms, each once.
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
    fn lines_never_cross_the_lane_of_another() {
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
        let lanes = DrawLayout::new(&rows);
        assert_eq!(lanes.marks, [0, 0, 0, 2, 0, 0, 2, 0]);
        assert_eq!(lanes.count, 3);
        for (i, a) in lanes.lines.iter().enumerate() {
            for b in &lanes.lines[..i] {
                let end = |line: &BlobLine| line.readers.last().copied().unwrap_or(line.from);
                assert!(a.lane != b.lane || end(b) <= a.from, "{a:?} {b:?}");
            }
        }
        let label = &lanes.lines[1];
        assert_eq!(label.readers, [6, 7]);
    }
}

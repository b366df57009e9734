//! Operands of products by lines, wherever these lie: what packed panels are made of.

use super::{
    lanes::Lanes,
    native::{Job, Native},
};
use crate::{element::Element, op::Transpose};
use std::ops::Range;

/// Rows of `op(A)`, or columns of `op(B)`: lines of as many elements as a product has terms.
pub(in crate::host) trait Lines<S>: Sync {
    /// Copies `terms` of `lines` into panels of `size` lines, in which the elements of all lines
    /// at one place lie side by side; zeros fill the last panel. What `panels` has room for beyond
    /// it may be written too: [`BEYOND`](super::packed::BEYOND) places.
    fn pack(&self, lines: Range<usize>, terms: Range<usize>, size: usize, panels: &mut [S]);
}

/// A matrix, row by row; panels hold its elements widened, where these are narrower.
pub(super) struct Matrix<'a, T> {
    x: &'a [T],
    ld: usize,
    /// Whether a line is a row, rather than a column.
    along: bool,
}

impl<'a, T> Matrix<'a, T> {
    /// Rows of `op(A)`.
    pub(super) fn rows(trans: Transpose, x: &'a [T], ld: usize) -> Self {
        Self { x, ld, along: trans == Transpose::No }
    }

    /// Columns of `op(B)`.
    pub(super) fn columns(trans: Transpose, x: &'a [T], ld: usize) -> Self {
        Self { x, ld, along: trans == Transpose::Yes }
    }
}

impl<T: Element<Acc = S>, S: Native> Lines<S> for Matrix<'_, T> {
    fn pack(&self, lines: Range<usize>, terms: Range<usize>, size: usize, panels: &mut [S]) {
        if lines.is_empty() || terms.is_empty() {
            return;
        }
        let (rows, columns) = if self.along { (&lines, &terms) } else { (&terms, &lines) };
        assert!((rows.end - 1) * self.ld + columns.end <= self.x.len(), "{rows:?}×{columns:?}");
        let x = &self.x[rows.start * self.ld + columns.start..];
        let (count, k) = (lines.len(), terms.len());
        check_room(panels, count, k, size);
        // SAFETY: all of these rows and columns can be read, and the panels hold what is written.
        #[allow(unsafe_code)]
        unsafe {
            if self.along {
                let first = |line: usize| line * self.ld;
                let pieces = [Piece { from: 0, to: 0, len: k }];
                S::on_lanes(Along { x, first, pieces: &pieces, count, size, k, panels });
            } else {
                S::on_lanes(Across { x, ld: self.ld, count, size, k, panels });
            }
        }
    }
}

/// A matrix that lies in other elements by two tables: that of row r and column c is
/// `x[rows[r] + from + (c − to)]`, with the run of columns that has c. So columns of images lie in
/// the images.
pub(in crate::host) struct Indirect<'a, S> {
    x: &'a [S],
    rows: &'a [usize],
    runs: &'a [Piece],
    /// Whether a line is a row, rather than a column.
    along: bool,
}

/// `len` elements from place `from` of something, at place `to` of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) struct Piece {
    pub(in crate::host) from: usize,
    pub(in crate::host) to: usize,
    pub(in crate::host) len: usize,
}

impl Piece {
    /// What of it is among `wanted`, counted from there, in pieces of at most `most`.
    #[inline(always)]
    fn within(self, wanted: &Range<usize>, most: usize) -> impl Iterator<Item = Self> + use<> {
        let start = self.to.max(wanted.start);
        let end = (self.to + self.len).min(wanted.end);
        let base = wanted.start;
        (start..end).step_by(most).map(move |at| Self {
            from: self.from + (at - self.to),
            to: at - base,
            len: most.min(end - at),
        })
    }
}

impl<'a, S> Indirect<'a, S> {
    /// The matrix, or its transpose, as the `B` of a product. Runs are in order, without a gap.
    pub(in crate::host) fn new(
        trans: Transpose,
        x: &'a [S],
        rows: &'a [usize],
        runs: &'a [Piece],
    ) -> Self {
        let last_row = rows.iter().max();
        let end = runs.iter().map(|run| run.from + run.len).max();
        if let (Some(row), Some(end)) = (last_row, end) {
            assert!(row + end <= x.len(), "{row} + {end} of {}", x.len());
        }
        assert!(runs.windows(2).all(|two| two[0].to + two[0].len == two[1].to), "gaps");
        Self { x, rows, runs, along: trans == Transpose::Yes }
    }

    /// The runs that have some of `columns`.
    fn runs_of(&self, columns: &Range<usize>) -> &[Piece] {
        let start = self.runs.partition_point(|run| run.to + run.len <= columns.start);
        let end = self.runs.partition_point(|run| run.to < columns.end);
        &self.runs[start..end]
    }

    /// The same elements of another type that `S` is.
    pub(super) fn cast<T>(&self) -> Indirect<'_, T>
    where
        S: bytemuck::Pod,
        T: bytemuck::Pod,
    {
        let Self { rows, runs, along, .. } = *self;
        Indirect { x: bytemuck::cast_slice(self.x), rows, runs, along }
    }
}

impl<S: Native> Lines<S> for Indirect<'_, S> {
    fn pack(&self, lines: Range<usize>, terms: Range<usize>, size: usize, panels: &mut [S]) {
        let (count, k) = (lines.len(), terms.len());
        check_room(panels, count, k, size);
        // SAFETY: rows and runs are those of the matrix, all of which can be read, as `new` has
        // seen; the panels hold what is written.
        #[allow(unsafe_code)]
        unsafe {
            if self.along {
                let (rows, x) = (&self.rows[lines], self.x);
                let first = |line: usize| rows[line];
                let runs = self.runs_of(&terms).iter();
                let pieces: Vec<_> = runs.flat_map(|run| run.within(&terms, k)).collect();
                S::on_lanes(Along { x, first, pieces: &pieces, count, size, k, panels });
            } else {
                let rows = &self.rows[terms];
                for line in (0..count).step_by(size) {
                    let wanted = lines.start + line..lines.end.min(lines.start + line + size);
                    let (runs, panel) = (self.runs_of(&wanted), &mut panels[line * k..]);
                    S::on_lanes(Gather { x: self.x, rows, runs, wanted, size, panel });
                }
            }
        }
    }
}

/// The lines of a product's part.
pub(super) struct Part<'a, S> {
    pub(super) lines: &'a dyn Lines<S>,
    pub(super) first: usize,
}

impl<S> Lines<S> for Part<'_, S> {
    fn pack(&self, lines: Range<usize>, terms: Range<usize>, size: usize, panels: &mut [S]) {
        self.lines.pack(lines.start + self.first..lines.end + self.first, terms, size, panels);
    }
}

/// That panels hold `count` lines, and what is written beyond them.
fn check_room<S>(panels: &[S], count: usize, k: usize, size: usize) {
    let places = count.div_ceil(size.max(1)) * k + super::packed::BEYOND;
    assert!(places * size <= panels.len(), "{places} places of {size} in {}", panels.len());
}

/// Rows asked for before they are needed: what is packed of a row ends before processors have seen
/// where it leads.
const ROWS_AHEAD: usize = 6;

/// Packs lines that lie side by side: an element of each, then the next `ld` further on.
struct Across<'a, T, S> {
    x: &'a [T],
    ld: usize,
    count: usize,
    size: usize,
    k: usize,
    panels: &'a mut [S],
}

#[allow(unsafe_code)]
impl<T: Element<Acc = S>, S: Native> Job<S> for Across<'_, T, S> {
    #[inline(always)]
    unsafe fn run<L: Lanes<Scalar = S>>(self) {
        let Self { x, ld, count, size, k, panels } = self;
        let (x, panels) = (x.as_ptr(), panels.as_mut_ptr());
        // Row by row, as memory likes to be read.
        for i in 0..k {
            for line in (0..count).step_by(size) {
                // SAFETY: of the vectors only the lines that are there are read.
                unsafe {
                    let panel = panels.add(line * k + i * size);
                    for j in (0..size).step_by(L::WIDTH) {
                        let there = L::WIDTH.min((count - line).saturating_sub(j));
                        let x = x.wrapping_add(i * ld + line + j);
                        L::prefetch(x.wrapping_add(ROWS_AHEAD * ld).cast());
                        let vector = L::load_as(x, there);
                        vector.store_first(panel.add(j), L::WIDTH.min(size - j));
                    }
                }
            }
        }
    }
}

/// Bytes of a line that are asked for before they are needed: processors do not see where so many
/// lines lead.
const AHEAD: usize = 256;

/// Packs lines that each lie in memory as they are, or pieces of them, by transposition.
struct Along<'a, T, S, F> {
    x: &'a [T],
    /// Where a line begins.
    first: F,
    /// From there to terms.
    pieces: &'a [Piece],
    count: usize,
    size: usize,
    k: usize,
    panels: &'a mut [S],
}

#[allow(unsafe_code)]
impl<T, S, F> Job<S> for Along<'_, T, S, F>
where
    T: Element<Acc = S>,
    S: Native,
    F: Fn(usize) -> usize,
{
    #[inline(always)]
    unsafe fn run<L: Lanes<Scalar = S>>(self) {
        let Self { x, first, pieces, count, size, k, panels } = self;
        let (x, panels) = (x.as_ptr(), panels.as_mut_ptr());
        for line in (0..count).step_by(size) {
            let lines = size.min(count - line);
            for piece in pieces {
                for i in (0..piece.len).step_by(L::WIDTH) {
                    let len = L::WIDTH.min(piece.len - i);
                    // Backwards: what four lines have beyond the panel's is overwritten, as are
                    // places after the last of the piece.
                    for four in (0..size).step_by(4).rev() {
                        // SAFETY: the lines that are there have these elements, and the panels
                        // room for four of each place and for the places beyond the last.
                        unsafe {
                            let mut vectors = [L::splat(S::zero()); 4];
                            for (j, vector) in vectors.iter_mut().enumerate() {
                                if four + j < lines {
                                    let x = x.add(first(line + four + j) + piece.from + i);
                                    L::prefetch(x.wrapping_add(AHEAD / size_of::<T>()).cast());
                                    // Of a constant length there is no mask.
                                    *vector = match len == L::WIDTH {
                                        true => L::load_as(x, L::WIDTH),
                                        false => L::load_as(x, len),
                                    };
                                }
                            }
                            let place = line * k + (piece.to + i) * size + four;
                            L::interleave(vectors, len, panels.add(place), size);
                        }
                    }
                }
            }
        }
    }
}

/// Packs one panel of columns whose elements lie side by side in runs.
struct Gather<'a, S> {
    x: &'a [S],
    rows: &'a [usize],
    runs: &'a [Piece],
    /// The columns of the panel.
    wanted: Range<usize>,
    size: usize,
    panel: &'a mut [S],
}

#[allow(unsafe_code)]
impl<S: Native> Job<S> for Gather<'_, S> {
    #[inline(always)]
    unsafe fn run<L: Lanes<Scalar = S>>(self) {
        /// Columns of the widest panel that is packed so.
        const MOST: usize = 64;
        let Self { x, rows, runs, wanted, size, panel } = self;
        let (x, panel) = (x.as_ptr(), panel.as_mut_ptr());
        let mut room = [Piece { from: 0, to: 0, len: 0 }; MOST];
        for start in (wanted.start..wanted.end).step_by(MOST) {
            let part = start..wanted.end.min(start + MOST);
            let mut count = 0;
            for piece in runs.iter().flat_map(|run| run.within(&part, L::WIDTH)) {
                room[count] = piece;
                count += 1;
            }
            let pieces = &room[..count];
            for (i, &row) in rows.iter().enumerate() {
                // SAFETY: the matrix has these elements, and the panel room for them.
                unsafe {
                    let (x, place) = (x.add(row), panel.add(i * size));
                    let panel = place.add(start - wanted.start);
                    for &Piece { from, to, len } in pieces {
                        let (x, panel) = (x.add(from), panel.add(to));
                        if len == L::WIDTH {
                            L::load(x).store(panel);
                        } else {
                            L::load_first(x, len).store_first(panel, len);
                        }
                    }
                    for j in (wanted.len()..size).step_by(L::WIDTH) {
                        L::splat(S::zero()).store_first(place.add(j), L::WIDTH.min(size - j));
                    }
                }
            }
        }
    }
}

//! Matrices whose elements lie elsewhere, by two tables: so columns of images lie in the images.

use crate::{
    host::{
        blas::{
            gemm::dispatch::{SimdKernel, SimdScalar},
            kernel::packing::{PACK_PREFETCH_BYTES, PackSource, check_panel_len, pack_transposed},
        },
        simd::vector::SimdVector,
    },
    op::Transpose,
};
use bytemuck::Pod;
use num_traits::Zero;
use std::ops::Range;

/// A matrix of which the element of row r and column c is `x[rows[r] + from + (c − to)]`, with the
/// run of columns that has c.
pub(crate) struct IndirectMatrix<'a, S> {
    x: &'a [S],
    rows: &'a [usize],
    runs: &'a [CopySpan],
    /// Whether a line is a row, rather than a column.
    along: bool,
}

/// `len` elements from place `from` of something, at place `to` of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopySpan {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) len: usize,
}

impl<'a, S> IndirectMatrix<'a, S> {
    /// The matrix, or its transpose, as the `B` of a product. Runs are in order, without a gap.
    pub(crate) fn new(
        trans: Transpose,
        x: &'a [S],
        rows: &'a [usize],
        runs: &'a [CopySpan],
    ) -> Self {
        let last_row = rows.iter().max();
        let end = runs.iter().map(|run| run.from + run.len).max();
        if let (Some(row), Some(end)) = (last_row, end) {
            assert!(row + end <= x.len(), "{row} + {end} of {}", x.len());
        }
        assert!(runs.windows(2).all(|two| two[0].to + two[0].len == two[1].to), "gaps");
        Self { x, rows, runs, along: trans == Transpose::Yes }
    }

    /// The same elements of another type that `S` is.
    pub(crate) fn cast<T: Pod>(&self) -> IndirectMatrix<'_, T>
    where
        S: Pod,
    {
        let Self { rows, runs, along, .. } = *self;
        IndirectMatrix { x: bytemuck::cast_slice(self.x), rows, runs, along }
    }
}

impl<S: SimdScalar> PackSource<S> for IndirectMatrix<'_, S> {
    fn pack(&self, lines: Range<usize>, terms: Range<usize>, size: usize, panels: &mut [S]) {
        check_panel_len(panels, lines.len(), terms.len(), size);
        if lines.is_empty() || terms.is_empty() {
            return;
        }
        let Self { x, rows: rows_of, runs, along } = *self;
        // SAFETY: rows and runs are those of the matrix, all of which can be read, as `new` has
        // seen; the panels hold what is written.
        #[allow(unsafe_code)]
        unsafe {
            let (rows, columns) = if along { (lines, terms) } else { (terms, lines) };
            S::dispatch(Pack { x, rows: &rows_of[rows], runs, columns, along, size, panels });
        }
    }
}

/// Most segments of any vector.
const MAX_SEGMENTS: usize = 16;

/// Elements of a vector that lie side by side.
#[derive(Clone, Copy)]
struct Segment<M> {
    /// Where the vector's first would lie; wraps.
    start: usize,
    there: M,
}

/// Calls `body` with each vector of `columns`: its first, how many it has, and where they lie.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn each_vector<L: SimdVector>(
    runs: &[CopySpan],
    columns: Range<usize>,
    mut body: impl FnMut(usize, usize, &[Segment<L::Mask>]),
) {
    let mut run = runs.partition_point(|run| run.to + run.len <= columns.start);
    for column in columns.clone().step_by(L::WIDTH) {
        let len = L::WIDTH.min(columns.end - column);
        // SAFETY: the caller's: the instructions are there.
        let nothing = Segment { start: 0, there: unsafe { L::mask(0, 0) } };
        let (mut segments, mut count) = ([nothing; MAX_SEGMENTS], 0);
        while let Some(&CopySpan { from, to, len: in_run }) = runs.get(run)
            && to < column + len
        {
            let end = to + in_run;
            let (first, last) = (to.max(column) - column, end.min(column + len) - column);
            // SAFETY: as above.
            let there = unsafe { L::mask(first, last) };
            segments[count] = Segment { start: from.wrapping_add(column).wrapping_sub(to), there };
            count += 1;
            if end > column + len {
                break;
            }
            run += 1;
        }
        body(column - columns.start, len, &segments[..count]);
    }
}

/// The elements of all segments of a vector, the others zero.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn load<L: SimdVector>(x: *const L::Scalar, segments: &[Segment<L::Mask>]) -> L {
    let Some((first, others)) = segments.split_first() else {
        // SAFETY: the caller's: the instructions are there.
        return unsafe { L::splat(L::Scalar::zero()) };
    };
    // SAFETY: the caller's: what is there of each segment can be read.
    unsafe {
        let mut vector = L::load_masked(x.wrapping_add(first.start), first.there);
        for segment in others {
            vector = vector.load_merge(x.wrapping_add(segment.start), segment.there);
        }
        vector
    }
}

/// Evaluates `$body` in a copy of its own for each small number of `$segments`: loads of vectors are
/// short, and many.
macro_rules! by_number {
    ($segments:ident, $body:expr) => {
        match $segments.len() {
            1 => {
                let $segments = &[$segments[0]];
                $body
            }
            2 => {
                let $segments = &[$segments[0], $segments[1]];
                $body
            }
            3 => {
                let $segments = &[$segments[0], $segments[1], $segments[2]];
                $body
            }
            _ => $body,
        }
    };
}

/// Packs panels of some rows and columns.
struct Pack<'a, S> {
    x: &'a [S],
    rows: &'a [usize],
    runs: &'a [CopySpan],
    columns: Range<usize>,
    /// Whether lines are rows, rather than columns.
    along: bool,
    size: usize,
    panels: &'a mut [S],
}

#[allow(unsafe_code)]
impl<S: SimdScalar> SimdKernel<S> for Pack<'_, S> {
    #[inline(always)]
    unsafe fn run<L: SimdVector<Scalar = S>>(self) {
        // SAFETY: handed on.
        unsafe { if self.along { self.rows::<L>() } else { self.columns::<L>() } }
    }
}

#[allow(unsafe_code)]
impl<S: SimdScalar> Pack<'_, S> {
    /// Panels of columns.
    #[inline(always)]
    unsafe fn columns<L: SimdVector<Scalar = S>>(self) {
        let Self { x, rows, runs, columns, size, panels, .. } = self;
        let (x, panels) = (x.as_ptr(), panels.as_mut_ptr());
        for first in columns.clone().step_by(size) {
            let wanted = first..columns.end.min(first + size);
            // SAFETY: the matrix has what is read, and the panels room for it.
            unsafe {
                let panel = panels.add((first - columns.start) * rows.len());
                each_vector::<L>(
                    runs,
                    wanted.clone(),
                    #[inline(always)]
                    |at, _, segments| put::<L>(x, rows, segments, (panel, size), at),
                );
                for at in (wanted.len().next_multiple_of(L::WIDTH)..size).step_by(L::WIDTH) {
                    put::<L>(x, rows, &[], (panel, size), at);
                }
            }
        }
    }

    /// Panels of rows, by transposition.
    #[inline(always)]
    unsafe fn rows<L: SimdVector<Scalar = S>>(self) {
        let Self { x, rows, runs, columns, size, panels, .. } = self;
        let (x, panels) = (x.as_ptr(), panels.as_mut_ptr());
        for (i, rows) in rows.chunks(size).enumerate() {
            // SAFETY: the matrix has what is read, and the panels room for it.
            unsafe {
                let panel = panels.add(i * size * columns.len());
                each_vector::<L>(
                    runs,
                    columns.clone(),
                    #[inline(always)]
                    |at, len, segments| {
                        let (lines, panel) = ((rows.len(), len), (panel.add(at * size), size));
                        if let ([one], true) = (segments, len == L::WIDTH) {
                            // Most vectors of large images, and without a mask.
                            return pack_transposed::<L>(
                                #[inline(always)]
                                |row| {
                                    let x = x.add(rows[row] + one.start);
                                    L::prefetch(
                                        x.wrapping_add(PACK_PREFETCH_BYTES / size_of::<S>()),
                                    );
                                    L::load(x)
                                },
                                0,
                                lines,
                                panel,
                            );
                        }
                        by_number!(segments, {
                            pack_transposed::<L>(
                                #[inline(always)]
                                |row| load::<L>(x.add(rows[row]), segments),
                                0,
                                lines,
                                panel,
                            );
                        });
                    },
                );
            }
        }
    }
}

/// Writes the vector of each row to place `at` of it.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn put<L: SimdVector>(
    x: *const L::Scalar,
    rows: &[usize],
    segments: &[Segment<L::Mask>],
    (panel, size): (*mut L::Scalar, usize),
    at: usize,
) {
    let (panel, whole) = (panel.wrapping_add(at), at + L::WIDTH <= size);
    by_number!(segments, {
        for (i, &row) in rows.iter().enumerate() {
            // SAFETY: the caller's: the rows have these segments, and the panel has room.
            unsafe {
                let vector = load::<L>(x.add(row), segments);
                // Of a constant length there is no mask.
                match whole {
                    true => vector.store(panel.add(i * size)),
                    false => vector.store_first(panel.add(i * size), size - at),
                }
            }
        }
    });
}

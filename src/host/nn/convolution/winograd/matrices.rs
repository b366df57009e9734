//! Matrices of transformed tiles or filters, and their matrix products.

use crate::{
    error::Result,
    host::{
        blas::gemm::gemm,
        simd::lanes::{LANES, Lanes},
        threads::Workers,
    },
    op::Gemm,
};
use std::ops::Range;

/// Largest number of elements of a panel with more than [`MIN_COLUMNS`] columns: 32 KiB. GEMM reads
/// such a panel in place, and most of the panel stays in L1.
const MAX_LEN: usize = 1 << 13;

/// Smallest number of columns of a panel, except of the last one: the widest tile of GEMM's
/// micro-kernel has as many columns.
const MIN_COLUMNS: usize = 32;

/// Smallest number of rows for which a right operand is a single panel. A panel of 32 columns and 512
/// rows is too large for GEMM to read in place. GEMM would pack each such panel, and would also pack
/// the left operand again for each panel.
const ONE_PANEL_MIN_ROWS: usize = 1 << 9;

/// Layout of the matrices of a block or of the filters: one matrix for each element of a tile.
///
/// A matrix is divided by columns into *panels*. The rows of a panel are contiguous. The left operand
/// of a matrix product must be a single panel. The panels of a right operand are so small that GEMM
/// reads them in place, unless the operand has 512 or more rows.
#[derive(Clone, Copy)]
pub(crate) struct MatrixLayout {
    rows: usize,
    /// Number of columns, a multiple of [`LANES`].
    columns: usize,
    /// Number of columns of each panel, except that the last panel can have fewer.
    panel_columns: usize,
}

impl MatrixLayout {
    /// Returns the layout of matrices with a single panel. `columns` is rounded up to a multiple of
    /// [`LANES`].
    pub(crate) fn one_panel(rows: usize, columns: usize) -> Self {
        let columns = columns.next_multiple_of(LANES);
        Self { rows, columns, panel_columns: columns }
    }

    /// Returns the layout of right operands of matrix products. `columns` is rounded up to a multiple
    /// of [`LANES`].
    pub(crate) fn right_operand(rows: usize, columns: usize) -> Self {
        if rows >= ONE_PANEL_MIN_ROWS {
            return Self::one_panel(rows, columns);
        }
        let panel_columns = (MAX_LEN / rows / MIN_COLUMNS * MIN_COLUMNS).max(MIN_COLUMNS);
        Self { panel_columns, ..Self::one_panel(rows, columns) }
    }

    /// Returns the layout of matrix products: `rows` rows, and the panels of the right operand `self`.
    pub(crate) fn products(&self, rows: usize) -> Self {
        Self { rows, ..*self }
    }

    /// Returns the number of elements from the start of one matrix to the start of the next: an odd
    /// number of [`LANES`]. The elements at one position of all matrices are therefore in different
    /// sets of L1.
    pub(crate) fn distance(&self) -> usize {
        ((self.rows * (self.columns / LANES)) | 1) * LANES
    }

    /// Returns the ranges of columns of the panels.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let Self { columns, panel_columns, .. } = *self;
        (0..columns)
            .step_by(panel_columns)
            .map(move |start| start..columns.min(start + panel_columns))
    }

    /// Returns the index in a matrix of the first row's element in the column `column`, and the number
    /// of elements from one row of the column's panel to the next.
    #[inline(always)]
    pub(crate) fn column(&self, column: usize) -> (usize, usize) {
        let start = column / self.panel_columns * self.panel_columns;
        let row_len = self.panel_columns.min(self.columns - start);
        (start * self.rows + column - start, row_len)
    }

    /// Divides `matrices` into parts of `rows_per_part` rows.
    pub(crate) fn split_rows<'m>(
        &self,
        matrices: &'m mut [f32],
        rows_per_part: usize,
    ) -> Vec<RowsMut<'m>> {
        let parts = self.rows.div_ceil(rows_per_part);
        let mut split: Vec<_> =
            (0..parts).map(|_| RowsMut { layout: *self, slices: Vec::new() }).collect();
        for mut matrix in matrices.chunks_mut(self.distance()) {
            for range in self.ranges() {
                let (panel, rest) = matrix.split_at_mut(self.rows * range.len());
                matrix = rest;
                for (part, rows) in
                    split.iter_mut().zip(panel.chunks_mut(rows_per_part * range.len()))
                {
                    part.slices.push(rows);
                }
            }
        }
        split
    }
}

/// Consecutive rows of all matrices with the layout `layout`.
pub(crate) struct RowsMut<'m> {
    layout: MatrixLayout,
    /// For each matrix, the rows of each panel.
    slices: Vec<&'m mut [f32]>,
}

impl<'m> RowsMut<'m> {
    /// Returns the columns from `first` on, which must be a multiple of [`LANES`].
    #[inline(always)]
    pub(crate) fn columns(&mut self, first: usize) -> ColumnsMut<'_, 'm> {
        let MatrixLayout { columns, panel_columns, .. } = self.layout;
        let panel = first / panel_columns;
        ColumnsMut {
            slices: &mut self.slices,
            panel,
            panels: columns.div_ceil(panel_columns),
            row_len: panel_columns.min(columns - panel * panel_columns),
            first: first % panel_columns,
        }
    }
}

/// [`LANES`] columns of [`RowsMut`].
pub(crate) struct ColumnsMut<'r, 'm> {
    slices: &'r mut [&'m mut [f32]],
    /// Index of the panel.
    panel: usize,
    /// Number of panels of a matrix.
    panels: usize,
    /// Number of columns of the panel.
    row_len: usize,
    /// Index of the first column in the panel.
    first: usize,
}

impl ColumnsMut<'_, '_> {
    /// Writes the columns of row `row` of each matrix. The first row of the [`RowsMut`] has the index 0.
    #[inline(always)]
    pub(crate) fn write(&mut self, row: usize, elements: &[Lanes]) {
        let at = row * self.row_len + self.first;
        let slices = self.slices.iter_mut().skip(self.panel).step_by(self.panels);
        for (slice, elements) in slices.zip(elements) {
            slice[at..at + LANES].copy_from_slice(elements);
        }
    }
}

/// `c ← β·c + op(a)·b` for each matrix of `c` and the matrices of `a` and `b` with the same index.
/// `a_layout` has a single panel, and `b_layout` and `c_layout` have panels of the same columns. `op`
/// gives β, whether `a` is transposed, and all extents except the number of columns.
pub(crate) fn multiply(
    workers: &Workers,
    op: &Gemm<f32>,
    (a, a_layout): (&[f32], &MatrixLayout),
    (b, b_layout): (&[f32], &MatrixLayout),
    (c, c_layout): (&mut [f32], &MatrixLayout),
) -> Result<()> {
    workers.try_for_each_chunk(c, c_layout.distance(), |i, c| {
        let (a, b) = (&a[i * a_layout.distance()..], &b[i * b_layout.distance()..]);
        b_layout.ranges().try_for_each(|panel| {
            let n = panel.len();
            let op = Gemm { n, ..*op }.leading_dims(a_layout.columns, n, n);
            let (b, c) = (&b[panel.start * b_layout.rows..], &mut c[panel.start * c_layout.rows..]);
            gemm(&Workers::sequential(), &op, a, b, c)
        })
    })
}

//! Positions of the parts of a concatenated array, for the layers Concat, Slice, SPP and ArgMax.

use super::prelude::*;
use crate::{
    memory::{View, ViewMut},
    op::Copy2d,
};

/// Layout of a concatenated array as a row-major matrix, in which each concatenated part is a range
/// of columns.
#[derive(Default)]
pub(super) struct ConcatLayout {
    rows: usize,
    columns: usize,
    /// For each concatenated part, the first column and the number of columns.
    parts: Vec<(usize, usize)>,
}

impl ConcatLayout {
    /// Creates the layout of consecutive parts; `part_columns` yields the number of columns of each
    /// part.
    pub(super) fn new(rows: usize, part_columns: impl IntoIterator<Item = usize>) -> Self {
        let mut layout = Self { rows, ..Self::default() };
        for columns in part_columns {
            layout.parts.push((layout.columns, columns));
            layout.columns += columns;
        }
        layout
    }

    /// Copies `x` to the columns of part number `part` in the concatenated `array`.
    pub(super) fn write_part<T: Element>(
        &self,
        device: &AnyDevice,
        part: usize,
        x: View<'_, T, AnyDevice>,
        array: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        let (first, columns) = self.parts[part];
        if x.is_empty() {
            return Ok(());
        }
        let op = Copy2d { rows: self.rows, columns, ldx: columns, ldy: self.columns };
        let end = array.len();
        device.copy_2d(&op, x, array.slice(first..end)?)
    }

    /// Copies the columns of part number `part` from the concatenated `array` to `y`.
    pub(super) fn read_part<T: Element>(
        &self,
        device: &AnyDevice,
        part: usize,
        array: View<'_, T, AnyDevice>,
        y: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        let (first, columns) = self.parts[part];
        if y.is_empty() {
            return Ok(());
        }
        let op = Copy2d { rows: self.rows, columns, ldx: self.columns, ldy: columns };
        device.copy_2d(&op, array.slice(first..array.len())?, y)
    }
}

//! Parts side by side along an axis of a whole: what Concat joins, Slice parts, SPP joins.

use crate::{
    device::Device,
    element::Element,
    error::Result,
    memory::{View, ViewMut},
    op::Copy2d,
};

/// The whole as a matrix, and the columns of each part.
#[derive(Default)]
pub(super) struct ConcatLayout {
    rows: usize,
    columns: usize,
    /// First column and number of columns of each part.
    parts: Vec<(usize, usize)>,
}

impl ConcatLayout {
    /// Parts of so many columns.
    pub(super) fn new(rows: usize, parts: impl IntoIterator<Item = usize>) -> Self {
        let mut joint = Self { rows, ..Self::default() };
        for columns in parts {
            joint.parts.push((joint.columns, columns));
            joint.columns += columns;
        }
        joint
    }

    /// Writes a part into the whole.
    pub(super) fn join<T: Element, D: Device>(
        &self,
        device: &D,
        part: usize,
        x: View<'_, T, D>,
        whole: ViewMut<'_, T, D>,
    ) -> Result<()> {
        let (first, columns) = self.parts[part];
        if x.is_empty() {
            return Ok(());
        }
        let op = Copy2d { rows: self.rows, columns, ldx: columns, ldy: self.columns };
        let end = whole.len();
        device.copy_2d(&op, x, whole.slice(first..end)?)
    }

    /// Reads a part out of the whole.
    pub(super) fn part<T: Element, D: Device>(
        &self,
        device: &D,
        part: usize,
        whole: View<'_, T, D>,
        y: ViewMut<'_, T, D>,
    ) -> Result<()> {
        let (first, columns) = self.parts[part];
        if y.is_empty() {
            return Ok(());
        }
        let op = Copy2d { rows: self.rows, columns, ldx: self.columns, ldy: columns };
        device.copy_2d(&op, whole.slice(first..whole.len())?, y)
    }
}

//! Moving elements about.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Copy2d, Permute, Rows, Tile},
};

/// Elements moved, unchanged.
pub trait Indexing: Memory {
    /// `y[r·ldy + c] ← x[r·ldx + c]` over a block; the rest of `y` stays.
    fn copy_2d<T: Element>(
        &self,
        op: &Copy2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::copy_2d(self.workers(), op, x.host()?, y.host_mut()?)
    }

    /// `y[i] ← table[indices[i]]`, row by row.
    fn gather<T: Element>(
        &self,
        op: &Rows,
        table: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (table, indices) = (table.host()?, indices.host()?);
        host::gather(self.workers(), op, table, indices, y.host_write_only()?)
    }

    /// `table[indices[i]] ← table[indices[i]] + y[i]`, row by row, in the order of `i`.
    fn scatter_add<T: Element>(
        &self,
        op: &Rows,
        y: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        mut table: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (y, indices) = (y.host()?, indices.host()?);
        host::scatter_add(self.workers(), op, y, indices, table.host_mut()?)
    }

    /// `y ← x` with its axes in another order.
    fn permute<T: Element>(
        &self,
        op: &Permute,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::permute(self.workers(), op, x.host()?, y.host_write_only()?)
    }

    /// `y ← x` repeated along an axis.
    fn tile<T: Element>(
        &self,
        op: &Tile,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::tile(self.workers(), op, x.host()?, y.host_write_only()?)
    }

    /// `dx ← Σ of dy over the repetitions`.
    fn tile_backward<T: Element>(
        &self,
        op: &Tile,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::tile_backward(self.workers(), op, dy.host()?, dx.host_write_only()?)
    }
}

//! Moving elements about.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, View, ViewMut},
    op::{Copy2d, Permute, RowIndexing, Tile},
};

/// Elements moved, unchanged.
pub trait Indexing: Memory {
    /// `y[r·ldy + c] ← x[r·ldx + c]` over a block; the rest of `y` stays.
    #[track_caller]
    fn copy_2d<T: Element>(
        &self,
        op: &Copy2d,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::copy_2d(self, op, x, y)
    }

    /// `y[i] ← table[indices[i]]`, row by row.
    #[track_caller]
    fn gather<T: Element>(
        &self,
        op: &RowIndexing,
        table: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::gather(self, op, table, indices, y)
    }

    /// `table[indices[i]] ← table[indices[i]] + y[i]`, row by row, in the order of `i`.
    #[track_caller]
    fn scatter_add<T: Element>(
        &self,
        op: &RowIndexing,
        y: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        table: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::scatter_add(self, op, y, indices, table)
    }

    /// `y ← x` with its axes in another order.
    #[track_caller]
    fn permute<T: Element>(
        &self,
        op: &Permute,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::permute(self, op, x, y)
    }

    /// `y ← x` repeated along an axis.
    #[track_caller]
    fn tile<T: Element>(
        &self,
        op: &Tile,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::tile(self, op, x, y)
    }

    /// `dx ← Σ of dy over the repetitions`.
    #[track_caller]
    fn tile_backward<T: Element>(
        &self,
        op: &Tile,
        dy: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::tile_backward(self, op, dy, dx)
    }

    /// `yᵢ ← xᵢ`, an integer below `bound` that is held in an element.
    #[track_caller]
    fn to_indices<T: Element>(
        &self,
        bound: u32,
        x: View<'_, T, Self>,
        y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        fallback::to_indices(self, bound, x, y)
    }
}

//! Moving elements about.

use crate::{
    device::SimulatedDevice,
    element::Element,
    error::{Result, check_len},
    host,
    kernel::Indexing,
    memory::{View, ViewMut},
    op::{Copy2d, Permute, RowIndexing, Tile},
};

impl Indexing for SimulatedDevice {
    fn copy_2d<T: Element>(
        &self,
        op: &Copy2d,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check(x.len(), y.len())?;
        let mut launch = self.launch::<T>("copy_2d")?;
        let (op, x, y) = (*op, launch.reads(x)?, launch.updates(y)?);
        launch.queue(move |workers| host::copy_2d(workers, &op, &x.read(), &mut y.write()))
    }

    fn gather<T: Element>(
        &self,
        op: &RowIndexing,
        table: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (rows, picks) = (("table", table.len()), ("indices", indices.len()));
        op.check("gather", rows, picks, ("y", y.len()))?;
        let mut launch = self.launch::<T>("gather")?;
        let (op, table) = (*op, launch.reads(table)?);
        let (indices, y) = (launch.reads(indices)?, launch.writes(y)?);
        launch.queue(move |workers| {
            host::gather(workers, &op, &table.read(), &indices.read(), &mut y.write())
        })
    }

    fn scatter_add<T: Element>(
        &self,
        op: &RowIndexing,
        y: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        table: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (rows, picks) = (("table", table.len()), ("indices", indices.len()));
        op.check("scatter_add", rows, picks, ("y", y.len()))?;
        let mut launch = self.launch::<T>("scatter_add")?;
        let (op, y) = (*op, launch.reads(y)?);
        let (indices, table) = (launch.reads(indices)?, launch.updates(table)?);
        launch.queue(move |workers| {
            host::scatter_add(workers, &op, &y.read(), &indices.read(), &mut table.write())
        })
    }

    fn permute<T: Element>(
        &self,
        op: &Permute,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("permute", "x", op.shape().count(), x.len())?;
        check_len("permute", "y", op.shape().count(), y.len())?;
        let mut launch = self.launch::<T>("permute")?;
        let (op, x, y) = (op.clone(), launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::permute(workers, &op, &x.read(), &mut y.write()))
    }

    fn tile<T: Element>(
        &self,
        op: &Tile,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("tile", ("x", x.len()), ("y", y.len()))?;
        let mut launch = self.launch::<T>("tile")?;
        let (op, x, y) = (*op, launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::tile(workers, &op, &x.read(), &mut y.write()))
    }

    fn tile_backward<T: Element>(
        &self,
        op: &Tile,
        dy: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("tile_backward", ("dx", dx.len()), ("dy", dy.len()))?;
        let mut launch = self.launch::<T>("tile_backward")?;
        let (op, dy, dx) = (*op, launch.reads(dy)?, launch.writes(dx)?);
        launch.queue(move |workers| host::tile_backward(workers, &op, &dy.read(), &mut dx.write()))
    }

    fn to_indices<T: Element>(
        &self,
        bound: u32,
        x: View<'_, T, Self>,
        y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        check_len("to_indices", "y", x.len(), y.len())?;
        let mut launch = self.launch::<T>("to_indices")?;
        let (x, y) = (launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::to_indices(workers, bound, &x.read(), &mut y.write()))
    }
}

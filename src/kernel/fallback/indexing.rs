//! Moving elements about.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::{Copy2d, Permute, RowIndexing, Tile},
};

/// [`Indexing::copy_2d`](crate::kernel::Indexing::copy_2d) on the host.
#[track_caller]
pub fn copy_2d<T: Element, D: Memory>(
    device: &D,
    op: &Copy2d,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "copy_2d", T::DTYPE.name())?;
    host::copy_2d(device.host_workers(), op, x.host()?, y.host_mut()?)
}

/// [`Indexing::gather`](crate::kernel::Indexing::gather) on the host.
#[track_caller]
pub fn gather<T: Element, D: Memory>(
    device: &D,
    op: &RowIndexing,
    table: View<'_, T, D>,
    indices: View<'_, u32, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "gather", T::DTYPE.name())?;
    let (table, indices) = (table.host()?, indices.host()?);
    y.host_overwrite(|y| host::gather(device.host_workers(), op, table, indices, y))
}

/// [`Indexing::scatter_add`](crate::kernel::Indexing::scatter_add) on the host.
#[track_caller]
pub fn scatter_add<T: Element, D: Memory>(
    device: &D,
    op: &RowIndexing,
    y: View<'_, T, D>,
    indices: View<'_, u32, D>,
    mut table: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "scatter_add", T::DTYPE.name())?;
    let (y, indices) = (y.host()?, indices.host()?);
    host::scatter_add(device.host_workers(), op, y, indices, table.host_mut()?)
}

/// [`Indexing::permute`](crate::kernel::Indexing::permute) on the host.
#[track_caller]
pub fn permute<T: Element, D: Memory>(
    device: &D,
    op: &Permute,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "permute", T::DTYPE.name())?;
    y.host_overwrite(|y| host::permute(device.host_workers(), op, x.host()?, y))
}

/// [`Indexing::tile`](crate::kernel::Indexing::tile) on the host.
#[track_caller]
pub fn tile<T: Element, D: Memory>(
    device: &D,
    op: &Tile,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "tile", T::DTYPE.name())?;
    y.host_overwrite(|y| host::tile(device.host_workers(), op, x.host()?, y))
}

/// [`Indexing::tile_backward`](crate::kernel::Indexing::tile_backward) on the host.
#[track_caller]
pub fn tile_backward<T: Element, D: Memory>(
    device: &D,
    op: &Tile,
    dy: View<'_, T, D>,
    mut dx: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "tile_backward", T::DTYPE.name())?;
    dx.host_overwrite(|dx| host::tile_backward(device.host_workers(), op, dy.host()?, dx))
}

/// [`Indexing::to_indices`](crate::kernel::Indexing::to_indices) on the host.
#[track_caller]
pub fn to_indices<T: Element, D: Memory>(
    device: &D,
    bound: u32,
    x: View<'_, T, D>,
    mut y: ViewMut<'_, u32, D>,
) -> Result<()> {
    let _kernel = enter(device, "to_indices", T::DTYPE.name())?;
    y.host_overwrite(|y| host::to_indices(device.host_workers(), bound, x.host()?, y))
}

//! Pooling.

use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, View, ViewMut},
    op::Pool,
};

/// Pooling of planes.
pub trait Pooling: Memory {
    /// `y ← the first greatest of each window`; `mask ← where in its plane`, −1 for a window that
    /// holds nothing.
    fn max_pool<T: Element>(
        &self,
        op: &Pool,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
        mut mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        let (x, y, mask) = (x.host()?, y.host_write_only()?, mask.host_write_only()?);
        host::max_pool(self.workers(), op, x, y, mask)
    }

    /// `dx ← dy, each where its mask says`, zero elsewhere.
    fn max_pool_backward<T: Element>(
        &self,
        op: &Pool,
        dy: View<'_, T, Self>,
        mask: View<'_, i32, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (dy, mask) = (dy.host()?, mask.host()?);
        host::max_pool_backward(self.workers(), op, dy, mask, dx.host_write_only()?)
    }

    /// `y ← the mean of each window`, padding counted.
    fn average_pool<T: Element>(
        &self,
        op: &Pool,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::average_pool(self.workers(), op, x.host()?, y.host_write_only()?)
    }

    /// `dx ← dy spread over its windows`.
    fn average_pool_backward<T: Element>(
        &self,
        op: &Pool,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        host::average_pool_backward(self.workers(), op, dy.host()?, dx.host_write_only()?)
    }
}

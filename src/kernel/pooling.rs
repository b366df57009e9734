//! Pooling.

use crate::{
    element::Element,
    error::Result,
    kernel::fallback,
    memory::{Memory, View, ViewMut},
    op::Pool2d,
};

/// Pooling of planes.
pub trait Pooling: Memory {
    /// `y ← the first greatest of each window`; `mask ← where in its plane`, −1 for a window that
    /// holds nothing.
    #[track_caller]
    fn max_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
        mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        fallback::max_pool(self, op, x, y, mask)
    }

    /// `dx ← dy, each where its mask says`, zero elsewhere.
    #[track_caller]
    fn max_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        mask: View<'_, i32, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::max_pool_backward(self, op, dy, mask, dx)
    }

    /// `y ← the mean of each window`, padding counted.
    #[track_caller]
    fn average_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::average_pool(self, op, x, y)
    }

    /// `dx ← dy spread over its windows`.
    #[track_caller]
    fn average_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::average_pool_backward(self, op, dy, dx)
    }

    /// `y ← an element of each window`, drawn in proportion to it by `u`, a number of [0, 1) for
    /// each; `mask ← where in its plane`, as of [`max_pool`](Self::max_pool), whose way back it
    /// takes. What `host` documents is binding for all.
    #[track_caller]
    fn stochastic_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        u: View<'_, f32, Self>,
        y: ViewMut<'_, T, Self>,
        mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        fallback::stochastic_pool(self, op, x, u, y, mask)
    }
}

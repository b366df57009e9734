//! A top that shares its bottom's storage, possibly in another shape.

use super::prelude::*;

/// Makes a top share the data and, usually, the diff of its bottom, so that nothing is copied.
///
/// The diffs stay separate if the definition sets `propagate_down: false`: later layers may write
/// the top's diff, which must not reach the bottom.
pub(super) struct SharedTop {
    shares_diff: bool,
}

impl SharedTop {
    pub(super) fn new(param: &LayerParameter) -> Self {
        Self { shares_diff: !param.propagate_down.contains(&false) }
    }

    /// Makes `top` share the storage of `bottom`, which has the same count.
    pub(super) fn share<T: Element>(&self, bottom: &Blob<T>, top: &mut Blob<T>) -> Result<()> {
        top.share_data(bottom)?;
        if self.shares_diff { top.share_diff(bottom) } else { Ok(()) }
    }

    /// Copies the gradient to the bottom unless both share one diff.
    pub(super) fn backward<T: Element>(
        device: &AnyDevice,
        top: &Blob<T>,
        bottom: &Blob<T>,
    ) -> Result<()> {
        if bottom.shares_diff_with(top) {
            return Ok(());
        }
        device.copy(top.diff()?.view(), bottom.diff_mut()?.view_mut())
    }
}

//! A top that shares the storage of its bottom, possibly with a different shape.

use super::prelude::*;

/// A helper that makes a top share the data and the diff of its bottom, so that nothing is copied.
///
/// If the definition sets `propagate_down: false`, the top has a separate diff, so later layers
/// that write the top's diff do not change the bottom's diff.
pub(super) struct SharedTop {
    shares_diff: bool,
}

impl SharedTop {
    pub(super) fn new(param: &LayerParameter) -> Self {
        Self { shares_diff: !param.propagate_down.contains(&false) }
    }

    /// Makes `top` share the storage of `bottom`, which has the same number of elements.
    pub(super) fn share<T: Element>(&self, bottom: &Blob<T>, top: &mut Blob<T>) -> Result<()> {
        top.share_data(bottom)?;
        if self.shares_diff { top.share_diff(bottom) } else { Ok(()) }
    }

    /// Copies the diff of the top to the diff of the bottom unless the two blobs share one diff.
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

//! A top that is its bottom, perhaps in another shape.

use super::PropagateDown;
use crate::{blob::Blob, device::Device, element::Element, error::Result, proto::LayerParameter};

/// Hands a bottom on as a top without copying: data and diff are one.
///
/// The diff of a bottom that `propagate_down` leaves out stays its own: others may add it up.
pub(super) struct SharedTop {
    diff: bool,
}

impl SharedTop {
    pub(super) fn new(param: &LayerParameter) -> Self {
        Self { diff: !param.propagate_down.contains(&false) }
    }

    /// Makes `top`, of the bottom's count, an alias of `bottom`.
    pub(super) fn share<T: Element, D: Device>(
        &self,
        bottom: &Blob<T, D>,
        top: &mut Blob<T, D>,
    ) -> Result<()> {
        top.share_data(bottom)?;
        if self.diff { top.share_diff(bottom) } else { Ok(()) }
    }

    /// Copies the gradient where it is not one.
    pub(super) fn backward<T: Element, D: Device>(
        device: &D,
        top: &Blob<T, D>,
        propagate: PropagateDown<'_>,
        bottom: &Blob<T, D>,
    ) -> Result<()> {
        if !propagate.bottom[0] || bottom.shares_diff_with(top) {
            return Ok(());
        }
        device.copy(top.diff()?.view(), bottom.diff_mut()?.view_mut())
    }
}

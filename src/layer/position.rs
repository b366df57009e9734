//! Conversion between a layer's position in a sequence and a [`LayerState`].

use super::prelude::*;
use crate::proto::LayerState;

/// Returns the state of a layer whose only state is `position`.
pub(super) fn state(position: u64) -> Result<Option<LayerState>> {
    let position = i64::try_from(position)
        .map_err(|_| Error::InvalidData(format!("position {position} exceeds 63 bits")))?;
    Ok(Some(LayerState { position: Some(position), ..Default::default() }))
}

/// Returns the position in a state that [`state`] has returned.
///
/// # Errors
/// Returns [`Error::InvalidData`] if the position is negative.
pub(super) fn of(state: &LayerState) -> Result<u64> {
    let position = state.position();
    u64::try_from(position).map_err(|_| Error::InvalidData(format!("negative position {position}")))
}

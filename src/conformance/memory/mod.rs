//! Checks of memory and queues.

mod coherence;
mod errors;
mod queues;
mod sharing;
mod transfers;

use super::check::Check;
use crate::device::Device;

/// Returns the checks of memory and queues.
pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    vec![
        Check::general("raw_copies", transfers::raw_copies),
        Check::general("coherence", coherence::coherence),
        Check::general("sharing", sharing::sharing),
        Check::general("queues", queues::queues),
        Check::general("out_of_memory", errors::out_of_memory),
        Check::general("alive_after_errors", errors::alive_after_errors),
    ]
}

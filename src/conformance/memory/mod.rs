//! Conformance checks of memory and queues.

mod coherence;
mod errors;
mod queues;
mod sharing;
mod transfers;

use super::check::Check;

/// Returns the conformance checks of memory and queues.
pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::once("raw_copies", None, transfers::raw_copies),
        Check::once("coherence", None, coherence::coherence),
        Check::once("sharing", None, sharing::sharing),
        Check::once("queues", None, queues::queues),
        Check::once("out_of_memory", None, errors::out_of_memory),
        Check::once("alive_after_errors", None, errors::alive_after_errors),
    ]
}

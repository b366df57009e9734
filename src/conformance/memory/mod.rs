//! Conformance checks of memory and queues.

mod coherence;
mod errors;
mod failing;
mod failures;
mod queue_failures;
mod failed_outputs;
mod order;
mod queues;
mod reuse;
mod sharing;
mod spans;
mod transfers;

use super::check::Check;

/// Returns the conformance checks of memory and queues.
pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::once("raw_copies", None, transfers::raw_copies),
        Check::once("coherence", None, coherence::coherence),
        Check::once("sharing", None, sharing::sharing),
        Check::once("queues", None, queues::queues),
        Check::once("queue_order", None, order::queue_order),
        Check::once("freed_in_flight", None, reuse::freed_in_flight),
        Check::once("reused_memory", None, reuse::reused_memory),
        Check::once("out_of_memory", None, errors::out_of_memory),
        Check::once("alive_after_errors", None, errors::alive_after_errors),
        Check::once("injected_failures", None, failures::injected_failures),
        Check::once("queue_failures", None, queue_failures::queue_failures),
        Check::once("failed_outputs", None, failed_outputs::failed_outputs),
        Check::once("spans", None, spans::spans),
    ]
}

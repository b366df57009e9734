//! Checks of the memory and its queues, beside kernels.

mod coherence;
mod transfers;
mod errors;
mod queues;
mod sharing;

use super::check::Check;
use crate::device::Device;

/// Of all of it.
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

/// `len` bytes that are told apart from their neighbours and from those of another `seed`.
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (seed.wrapping_mul(0x9e37_79b9)..).take(len).map(|i| (i.wrapping_mul(167) >> 3) as u8).collect()
}

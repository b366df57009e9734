//! Communication between the processes of a training run.
//!
//! A [`Communicator`] exchanges bytes between two processes. [`sum_tree`] and [`all_gather`] use
//! exchanges between two processes to combine values of all processes. [`ThreadCommunicator`]
//! connects threads of one process, which then act as the processes of a run.

mod collective;
#[cfg(test)]
mod tests;
mod thread;

pub use collective::{all_gather, sum_tree};
#[cfg(feature = "net")]
pub(crate) use collective::{gather_bytes, scaled_sum_tree};
pub use thread::ThreadCommunicator;

use crate::error::Result;

/// A connection of one process to the other processes of a training run.
///
/// The ranks of the processes are `0..size()`. All processes make the same sequence of exchanges
/// with each of their peers. One thread at a time uses a communicator, but this need not be the
/// thread that created it.
///
/// ```
/// use cortado::{Result, communicator::{Communicator, ThreadCommunicator}};
/// use std::thread;
///
/// fn greet(mut communicator: ThreadCommunicator) -> Result<[u8; 1]> {
///     let (own, mut other) = ([communicator.rank() as u8], [0]);
///     communicator.exchange(1 - communicator.rank(), &own, &mut other)?;
///     Ok(other)
/// }
///
/// let group = ThreadCommunicator::group(2);
/// let threads: Vec<_> = group.into_iter().map(|c| thread::spawn(|| greet(c))).collect();
/// let received: Vec<_> = threads.into_iter().map(|t| t.join().unwrap().unwrap()).collect();
/// assert_eq!(received, [[1], [0]]);
/// ```
pub trait Communicator: Send {
    /// Returns the index of this process among the processes of the run, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of processes of the run.
    fn size(&self) -> usize;

    /// Sends the bytes `send` to the process `peer` and receives `receive.len()` bytes from it.
    ///
    /// The process `peer` makes the matching call at the same point of its sequence of exchanges:
    /// with the rank of this process as its `peer`, with `receive.len()` bytes in its `send`, and
    /// with room for `send.len()` bytes in its `receive`. One or both slices may be empty. Blocks
    /// until both transfers are complete, so the caller may reuse `send` afterwards.
    ///
    /// # Errors
    /// Returns [`Error::Communication`](crate::Error::Communication) if `peer` is this process or
    /// not less than [`size`](Self::size), if `peer` has ended or has failed, or if `peer` sends
    /// another number of bytes.
    fn exchange(&mut self, peer: usize, send: &[u8], receive: &mut [u8]) -> Result<()>;
}

//! A communicator between threads of one process.

use super::Communicator;
use crate::error::{Error, Result};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A [`Communicator`] that connects threads of one process, for tests and for runs on several
/// devices of one machine.
///
/// If a `ThreadCommunicator` is dropped, the exchanges of other communicators with the dropped one
/// fail.
///
/// ```
/// use cortado::{Error, communicator::{Communicator, ThreadCommunicator}};
///
/// let [mut first, second] = ThreadCommunicator::group(2).try_into().ok().unwrap();
/// assert_eq!((first.rank(), second.rank(), first.size()), (0, 1, 2));
/// drop(second);
/// let error = first.exchange(1, &[], &mut []).unwrap_err();
/// assert_eq!(error.to_string(), "process 0: exchange with process 1: process 1 has ended");
/// assert!(matches!(error, Error::Communication { rank: 0, peer: 1, .. }));
/// ```
pub struct ThreadCommunicator {
    rank: usize,
    /// The connection to each process; `None` for this process.
    links: Vec<Option<Link>>,
}

struct Link {
    sender: Sender<Vec<u8>>,
    receiver: Receiver<Vec<u8>>,
}

impl ThreadCommunicator {
    /// Returns `size` connected communicators in the order of their ranks, one for each thread of a
    /// run.
    pub fn group(size: usize) -> Vec<Self> {
        let without_links =
            |rank| Self { rank, links: (0..size).map(|_| None).collect::<Vec<_>>() };
        let mut group: Vec<_> = (0..size).map(without_links).collect();
        for lower in 0..size {
            for upper in lower + 1..size {
                let (to_upper, from_lower) = channel();
                let (to_lower, from_upper) = channel();
                group[lower].links[upper] = Some(Link { sender: to_upper, receiver: from_upper });
                group[upper].links[lower] = Some(Link { sender: to_lower, receiver: from_lower });
            }
        }
        group
    }
}

impl Communicator for ThreadCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.links.len()
    }

    fn exchange(&mut self, peer: usize, send: &[u8], receive: &mut [u8]) -> Result<()> {
        let (rank, size) = (self.rank, self.size());
        let failure = |reason| Err(Error::Communication { rank, peer, reason });
        let Some(Some(link)) = self.links.get(peer) else {
            let reason = format!("expected the rank of another process below {size}");
            return failure(reason);
        };
        let ended = || failure(format!("process {peer} has ended"));
        if link.sender.send(send.to_vec()).is_err() {
            return ended();
        }
        let Ok(message) = link.receiver.recv() else { return ended() };
        if message.len() != receive.len() {
            let (expected, found) = (receive.len(), message.len());
            return failure(format!(
                "expected {expected} bytes, received {found} bytes; the processes must make the \
                 same exchanges"
            ));
        }
        receive.copy_from_slice(&message);
        Ok(())
    }
}

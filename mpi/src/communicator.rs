//! The communicator of a process, whose exchanges are messages of MPI.

use crate::library::Library;
use cortado::{
    communicator::Communicator,
    error::{Error, Result},
};
use std::{iter, ops::Range, sync::Arc};

/// Largest message in bytes. MPI's functions take lengths as `int`, so longer slices are sent as
/// several messages.
const MAX_MESSAGE: usize = 1 << 30;

/// A [`Communicator`] whose processes `mpiexec` has started.
///
/// A thread that waits for an exchange polls the MPI library. After a short time, the thread sleeps
/// between two polls, so that the other threads of the process can compute.
/// [`Mpi::init`](crate::Mpi::init) returns the communicator of a process.
pub struct MpiCommunicator {
    library: Arc<Library>,
    rank: usize,
    size: usize,
}

impl MpiCommunicator {
    pub(crate) fn new(library: Arc<Library>, rank: usize, size: usize) -> Self {
        Self { library, rank, size }
    }
}

impl Communicator for MpiCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&mut self, peer: usize, send: &[u8], receive: &mut [u8]) -> Result<()> {
        let (rank, size) = (self.rank, self.size);
        let failure = |reason| Error::Communication { rank, peer, reason };
        if peer == rank || peer >= size {
            return Err(failure(format!("expected the rank of another process below {size}")));
        }
        for (sent, received) in messages(send.len(), receive.len(), MAX_MESSAGE) {
            let (message, room) = (&send[sent], &mut receive[received]);
            let expected = room.len();
            let found = self.library.exchange(peer, message, room).map_err(failure)?;
            if found != expected {
                return Err(failure(format!(
                    "expected {expected} bytes, received {found} bytes; the processes must make \
                     the same exchanges"
                )));
            }
        }
        Ok(())
    }
}

/// Returns the ranges of the bytes to send and of the bytes to receive, for each message of an
/// exchange. The peer calls this function with the two lengths exchanged, and gets the same number
/// of messages. An exchange of no bytes is one message, because its peer waits for a message.
fn messages(
    send_len: usize,
    receive_len: usize,
    max: usize,
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let count = send_len.max(receive_len).div_ceil(max).max(1);
    let pieces = move |len: usize| {
        let starts = iter::successors(Some(0usize), move |start| Some(start.saturating_add(max)));
        starts.map(move |start| start.min(len)..start.saturating_add(max).min(len))
    };
    pieces(send_len).zip(pieces(receive_len)).take(count)
}

#[cfg(test)]
mod tests {
    use super::messages;

    #[test]
    fn long_exchanges_are_split_equally_on_both_sides() {
        let split = |send, receive| messages(send, receive, 4).collect::<Vec<_>>();
        assert_eq!(split(0, 0), [(0..0, 0..0)]);
        assert_eq!(split(4, 1), [(0..4, 0..1)]);
        assert_eq!(split(9, 5), [(0..4, 0..4), (4..8, 4..5), (8..9, 5..5)]);
        for (send, receive) in [(0, 8), (9, 5), (17, 3)] {
            let swapped = split(receive, send).into_iter().map(|(sent, received)| (received, sent));
            assert_eq!(split(send, receive), swapped.collect::<Vec<_>>());
        }
    }
}

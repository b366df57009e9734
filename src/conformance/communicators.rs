//! Checks of communicators, which connect the processes of a training run.

use crate::{
    communicator::{Communicator, all_gather, sum_tree},
    error::{Error, Result},
};
use std::thread;

/// Checks the communicator of this process. All processes of the run call `check_communicator` at
/// the same time, each with its own communicator. At least two processes are needed, and four find
/// more defects.
///
/// The checks exchange messages whose bytes depend on the sender, the receiver and the position of
/// the exchange in the sequence, in both directions and in one direction: empty messages, messages
/// of unequal lengths, messages of 1 byte to 1.1 MB, and repeated messages in the same buffers. The
/// checks also call the communicator with invalid ranks, with messages that are too short, and on
/// another thread. If the number of processes is a power of two, the checks also compute sums and
/// collect messages. After a failure, the communicators of all processes are out of step: drop them.
///
/// ```
/// use cortado::{communicator::ThreadCommunicator, conformance::check_communicator};
/// use std::thread;
///
/// let check = |mut communicator: ThreadCommunicator| check_communicator(&mut communicator);
/// let group = ThreadCommunicator::group(4);
/// let threads: Vec<_> = group.into_iter().map(|c| thread::spawn(move || check(c))).collect();
/// for thread in threads {
///     thread.join().unwrap()?;
/// }
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// Returns the first failure of this process: the name of the check, the process, its peer, and the
/// found and expected values.
pub fn check_communicator(communicator: &mut dyn Communicator) -> Result<()> {
    for (name, check) in CHECKS {
        let rank = communicator.rank();
        let result = check(communicator);
        result.map_err(|error| error.context(format!("check `{name}`, process {rank}")))?;
    }
    Ok(())
}

type Check = fn(&mut dyn Communicator) -> Result<()>;

const CHECKS: [(&str, Check); 10] = [
    ("ranks", ranks),
    ("short messages", |c| exchange_all(c, &[(1, 1), (2, 2), (7, 7), (64, 64)])),
    ("unequal lengths", |c| exchange_all(c, &[(3, 100), (5000, 1), (17, 4096)])),
    ("empty messages", |c| exchange_all(c, &[(0, 0), (0, 9), (9, 0), (0, 1000), (8, 8)])),
    ("large messages", |c| exchange_all(c, &[(70_001, 70_001), (1_100_003, 1_100_003)])),
    ("reused buffers", reused_buffers),
    ("another thread", another_thread),
    ("invalid ranks", invalid_ranks),
    ("collective operations", collective_operations),
    ("lengths that differ", lengths_that_differ),
];

fn failure<R>(reason: String) -> Result<R> {
    Err(Error::InvalidData(reason))
}

/// Returns byte `index` of the message number `sequence` from one process to another.
fn byte(from: usize, to: usize, sequence: usize, index: usize) -> u8 {
    let mixed = (from * 31 + to * 7 + sequence * 131 + index / 256 * 13 + index) as u64;
    (mixed.wrapping_mul(2_654_435_761) >> 13) as u8
}

fn message(from: usize, to: usize, sequence: usize, len: usize) -> Vec<u8> {
    (0..len).map(|index| byte(from, to, sequence, index)).collect()
}

/// Calls `exchange` with each other process and whether this process has the lower rank, in the same
/// order of pairs in all processes.
fn for_each_peer(
    communicator: &mut dyn Communicator,
    mut exchange: impl FnMut(&mut dyn Communicator, usize, bool) -> Result<()>,
) -> Result<()> {
    let (rank, size) = (communicator.rank(), communicator.size());
    for lower in 0..size {
        for upper in lower + 1..size {
            if rank == lower {
                exchange(communicator, upper, true)?;
            } else if rank == upper {
                exchange(communicator, lower, false)?;
            }
        }
    }
    Ok(())
}

/// Exchanges the message number `sequence` with a peer in the given buffers, and compares every byte
/// that arrives.
fn exchange(
    communicator: &mut dyn Communicator,
    peer: usize,
    sequence: usize,
    (send, receive): (&mut [u8], &mut [u8]),
) -> Result<()> {
    let rank = communicator.rank();
    let sent = message(rank, peer, sequence, send.len());
    send.copy_from_slice(&sent);
    let expected = message(peer, rank, sequence, receive.len());
    // The received message must not be in the buffer before.
    receive.iter_mut().zip(&expected).for_each(|(byte, expected)| *byte = !expected);
    communicator.exchange(peer, send, receive)?;
    if send[..] != sent {
        return failure(format!("message {sequence} to process {peer}: `send` has changed"));
    }
    // Comparing slices is much faster than `position` in an unoptimized build.
    if receive[..] == expected {
        return Ok(());
    }
    match receive.iter().zip(&expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(index) => failure(format!(
            "message {sequence} from process {peer} of {} bytes: byte {index} is {}, expected {}",
            receive.len(),
            receive[index],
            expected[index]
        )),
    }
}

/// Exchanges messages with every other process. `lengths` has the lengths of each message from the
/// lower and from the upper rank.
fn exchange_all(communicator: &mut dyn Communicator, lengths: &[(usize, usize)]) -> Result<()> {
    for (sequence, &(from_lower, from_upper)) in lengths.iter().enumerate() {
        for_each_peer(communicator, |communicator, peer, is_lower| {
            let (sent, received) =
                if is_lower { (from_lower, from_upper) } else { (from_upper, from_lower) };
            let (mut send, mut receive) = (vec![0; sent], vec![0; received]);
            exchange(communicator, peer, sequence, (&mut send, &mut receive))
        })?;
    }
    Ok(())
}

/// Checks that all processes agree on the number of processes, and that each rank occurs once.
fn ranks(communicator: &mut dyn Communicator) -> Result<()> {
    let (rank, size) = (communicator.rank(), communicator.size());
    if rank >= size || size < 2 {
        return failure(format!("found rank {rank} of {size} processes, expected at least two"));
    }
    for_each_peer(communicator, |communicator, peer, _| {
        let own = [rank as u64, size as u64].map(u64::to_le_bytes).concat();
        let mut other = [0; 16];
        communicator.exchange(peer, &own, &mut other)?;
        let expected = [peer as u64, size as u64].map(u64::to_le_bytes).concat();
        match other[..] == expected {
            true => Ok(()),
            false => failure(format!(
                "process {peer} of {size} sent the rank and the size {other:?}, expected \
                 {expected:?}"
            )),
        }
    })
}

/// Exchanges many messages in the same buffers, and changes `send` directly after each exchange.
fn reused_buffers(communicator: &mut dyn Communicator) -> Result<()> {
    let (mut send, mut receive) = (vec![0; 3000], vec![0; 3000]);
    for sequence in 0..50 {
        let len = [3000, 40, 1][sequence % 3];
        for_each_peer(communicator, |communicator, peer, _| {
            let buffers = (&mut send[..len], &mut receive[..len]);
            exchange(communicator, peer, sequence, buffers)
        })?;
    }
    Ok(())
}

/// Exchanges messages on a thread that did not create the communicator.
fn another_thread(communicator: &mut dyn Communicator) -> Result<()> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| exchange_all(communicator, &[(100, 100), (200_000, 3)]));
        thread.join().unwrap_or_else(|_| failure("the communicator panicked".into()))
    })
}

fn invalid_ranks(communicator: &mut dyn Communicator) -> Result<()> {
    let (rank, size) = (communicator.rank(), communicator.size());
    for peer in [rank, size, usize::MAX] {
        match communicator.exchange(peer, &[1], &mut [0]) {
            Err(Error::Communication { .. }) => {}
            Err(error) => {
                let reason = format!("expected Error::Communication, found `{error}`");
                return failure(format!("exchange with invalid rank {peer}: {reason}"));
            }
            Ok(()) => {
                return failure(format!("exchange with invalid rank {peer}: expected an error"));
            }
        }
    }
    Ok(())
}

/// Computes sums that round differently in another order, and collects messages.
fn collective_operations(communicator: &mut dyn Communicator) -> Result<()> {
    let (rank, size) = (communicator.rank(), communicator.size());
    if !size.is_power_of_two() {
        return Ok(());
    }
    let value = |byte: u8| f32::from(byte) * 10f32.powi(i32::from(byte % 7));
    for len in [1, 5, 100_003] {
        let values = |rank| message(rank, 0, 0, len).into_iter().map(value).collect();
        let mut sums: Vec<f32> = values(rank);
        sum_tree(communicator, &mut sums)?;
        let mut parts: Vec<Vec<f32>> = (0..size).map(values).collect();
        while parts.len() > 1 {
            let add =
                |pair: &[Vec<f32>]| pair[0].iter().zip(&pair[1]).map(|(a, b)| a + b).collect();
            parts = parts.chunks(2).map(add).collect();
        }
        for (index, (sum, expected)) in sums.into_iter().zip(&parts[0]).enumerate() {
            if sum.to_bits() != expected.to_bits() {
                return failure(format!(
                    "sum {index} of {len} values: expected {expected}, found {sum}"
                ));
            }
        }
    }
    let messages = all_gather(communicator, &message(rank, rank, 1, rank * 1000))?;
    let expected: Vec<_> = (0..size).map(|rank| message(rank, rank, 1, rank * 1000)).collect();
    match messages == expected {
        true => Ok(()),
        false => failure("all_gather: a message differs".into()),
    }
}

/// Checks that a message which is shorter than expected is an error. This is the last check, because
/// a communicator need not be usable after the error.
fn lengths_that_differ(communicator: &mut dyn Communicator) -> Result<()> {
    let rank = communicator.rank();
    // Ranks 0 and 1 only: an error may end the connections with all other processes.
    if rank > 1 {
        return Ok(());
    }
    let (send_len, receive_len) = if rank == 0 { (100, 60) } else { (60, 101) };
    let result = communicator.exchange(1 - rank, &vec![1; send_len], &mut vec![0; receive_len]);
    match (rank, result) {
        (0, _) => Ok(()),
        (_, Err(Error::Communication { .. })) => Ok(()),
        (_, Err(error)) => failure(format!(
            "100 bytes instead of 101: expected Error::Communication, found `{error}`"
        )),
        (_, Ok(())) => failure("100 bytes instead of 101: expected an error".into()),
    }
}

//! Tests of the conformance checks for communicators, with a communicator of another crate and with
//! its mutants.

use cortado::{
    Error, Result,
    communicator::{Communicator, ThreadCommunicator},
    conformance::check_communicator,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Condvar, Mutex},
    thread::{self, ThreadId},
    time::Duration,
};

/// Messages that have been sent and not yet received, by sender and receiver.
type Messages = HashMap<(usize, usize), VecDeque<Vec<u8>>>;

#[derive(Default)]
struct Mailbox {
    messages: Mutex<Messages>,
    /// The processes whose communicators have been dropped. The lock of `messages` guards changes.
    ended: Mutex<HashSet<usize>>,
    arrival: Condvar,
}

/// A communicator outside the library: processes put messages into a common mailbox.
struct MailboxCommunicator {
    rank: usize,
    size: usize,
    mailbox: Arc<Mailbox>,
    bug: Option<Bug>,
    /// The number of exchanges so far.
    count: usize,
    last_received: Vec<u8>,
    /// The thread that called the communicator first.
    first_caller: Option<ThreadId>,
}

/// A deliberate bug of a mutant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bug {
    WrongRank,
    WrongSize,
    RanksInOtherOrder,
    LostSlice,
    LostEnd,
    MessageOfWrongPeer,
    PiecesInWrongOrder,
    StaleBuffer,
    OwnMessage,
    TruncatedReceive,
    LostBeyondOneMegabyte,
    WrongLengthBeyond16Bits,
    NoReceiveWithEmptySend,
    NoSendWithEmptyReceive,
    OneThreadOnly,
    InvalidRankAccepted,
    OwnRankAccepted,
    OtherErrorForInvalidRank,
}

const BUGS: [Bug; 18] = [
    Bug::WrongRank,
    Bug::WrongSize,
    Bug::RanksInOtherOrder,
    Bug::LostSlice,
    Bug::LostEnd,
    Bug::MessageOfWrongPeer,
    Bug::PiecesInWrongOrder,
    Bug::StaleBuffer,
    Bug::OwnMessage,
    Bug::TruncatedReceive,
    Bug::LostBeyondOneMegabyte,
    Bug::WrongLengthBeyond16Bits,
    Bug::NoReceiveWithEmptySend,
    Bug::NoSendWithEmptyReceive,
    Bug::OneThreadOnly,
    Bug::InvalidRankAccepted,
    Bug::OwnRankAccepted,
    Bug::OtherErrorForInvalidRank,
];

impl MailboxCommunicator {
    fn group(size: usize, bug: Option<Bug>) -> Vec<Self> {
        let mailbox = Arc::new(Mailbox::default());
        let new = |rank| Self {
            rank,
            size,
            mailbox: Arc::clone(&mailbox),
            bug,
            count: 0,
            last_received: Vec::new(),
            first_caller: None,
        };
        (0..size).map(new).collect()
    }

    fn failure(&self, peer: usize, reason: &str) -> Error {
        Error::Communication { rank: self.rank, peer, reason: reason.into() }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn take(&self, peer: usize) -> Result<Vec<u8>> {
        // This mutant's peer waits for a message that never arrives.
        let is_silent = self.has(Bug::NoSendWithEmptyReceive);
        let patience = Duration::from_secs(if is_silent { 5 } else { 60 });
        let mut messages = self.mailbox.messages.lock().unwrap();
        loop {
            let queue = messages.get_mut(&(peer, self.rank));
            if let Some(message) = queue.and_then(VecDeque::pop_front) {
                return Ok(message);
            }
            if self.mailbox.ended.lock().unwrap().contains(&peer) {
                return Err(self.failure(peer, "the process has ended"));
            }
            let waited = self.mailbox.arrival.wait_timeout(messages, patience).unwrap();
            messages = waited.0;
            if waited.1.timed_out() {
                return Err(self.failure(peer, "no message arrived"));
            }
        }
    }
}

impl Drop for MailboxCommunicator {
    fn drop(&mut self) {
        let _messages = self.mailbox.messages.lock().unwrap();
        self.mailbox.ended.lock().unwrap().insert(self.rank);
        self.mailbox.arrival.notify_all();
    }
}

impl Communicator for MailboxCommunicator {
    fn rank(&self) -> usize {
        match self.bug {
            Some(Bug::WrongRank) => 0,
            Some(Bug::RanksInOtherOrder) => self.size - 1 - self.rank,
            _ => self.rank,
        }
    }

    fn size(&self) -> usize {
        self.size + usize::from(self.has(Bug::WrongSize) && self.rank == 1)
    }

    fn exchange(&mut self, peer: usize, send: &[u8], receive: &mut [u8]) -> Result<()> {
        let caller = thread::current().id();
        let first_caller = *self.first_caller.get_or_insert(caller);
        if self.has(Bug::OneThreadOnly) && caller != first_caller {
            return Err(self.failure(peer, "called on another thread"));
        }
        if peer >= self.size || peer == self.rank {
            let accepted = match peer == self.rank {
                true => self.has(Bug::OwnRankAccepted),
                false => self.has(Bug::InvalidRankAccepted),
            };
            if accepted {
                return Ok(());
            }
            if self.has(Bug::OtherErrorForInvalidRank) {
                return Err(Error::InvalidData("invalid rank".into()));
            }
            return Err(self.failure(peer, "invalid rank"));
        }
        self.count += 1;
        if !(self.has(Bug::NoSendWithEmptyReceive) && receive.is_empty()) {
            let mut message = send.to_vec();
            if self.has(Bug::WrongLengthBeyond16Bits) && message.len() > 1 << 16 {
                message[1 << 16..].fill(0);
            }
            let to = match (self.bug, self.rank, peer) {
                (Some(Bug::MessageOfWrongPeer), 0, 2) => 3,
                (Some(Bug::MessageOfWrongPeer), 0, 3) => 2,
                _ => peer,
            };
            let mut messages = self.mailbox.messages.lock().unwrap();
            messages.entry((self.rank, to)).or_default().push_back(message);
            self.mailbox.arrival.notify_all();
        }
        if self.has(Bug::NoReceiveWithEmptySend) && send.is_empty() {
            return Ok(());
        }
        let mut message = self.take(peer)?;
        if self.has(Bug::TruncatedReceive) {
            message.resize(receive.len(), 0);
        }
        if message.len() != receive.len() {
            return Err(self.failure(peer, "wrong number of bytes"));
        }
        match self.bug {
            Some(Bug::LostSlice) if message.len() > 50 => message[20..30].fill(0),
            Some(Bug::LostEnd) => message.iter_mut().next_back().into_iter().for_each(|b| *b = 0),
            Some(Bug::PiecesInWrongOrder) if message.len() > 4096 => message.rotate_left(4096),
            Some(Bug::LostBeyondOneMegabyte) if message.len() > 1 << 20 => {
                message[1 << 20..].fill(0)
            }
            Some(Bug::StaleBuffer) if self.last_received.len() == message.len() => {
                std::mem::swap(&mut message, &mut self.last_received)
            }
            Some(Bug::OwnMessage) if self.count > 45 && send.len() == message.len() => {
                message.copy_from_slice(send)
            }
            Some(Bug::StaleBuffer) => self.last_received = message.clone(),
            _ => {}
        }
        receive.copy_from_slice(&message);
        Ok(())
    }
}

/// Runs the checks on one thread per process, and returns the results in the order of the ranks.
fn check<C: Communicator>(group: Vec<C>) -> Vec<Result<()>> {
    thread::scope(|scope| {
        let start = |mut communicator: C| {
            scope.spawn(move || {
                // Drops the communicator at the end, so that the other processes fail, too.
                let communicator = &mut communicator;
                check_communicator(communicator)
            })
        };
        let threads: Vec<_> = group.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_communicator_outside_the_library_passes_all_checks() {
    for size in [2, 3, 4] {
        for result in check(MailboxCommunicator::group(size, None)) {
            result.unwrap();
        }
    }
}

#[test]
fn communicators_of_threads_pass_all_checks() {
    for result in check(ThreadCommunicator::group(4)) {
        result.unwrap();
    }
}

#[test]
fn a_process_without_others_is_refused() {
    let result = check(ThreadCommunicator::group(1)).remove(0);
    let expected = "check `ranks`, process 0: found rank 0 of 1 processes, expected at least two";
    assert_eq!(result.unwrap_err().to_string(), expected);
}

#[test]
fn each_mutant_fails_a_check() {
    let find = |bug| {
        let results = check(MailboxCommunicator::group(4, Some(bug)));
        let errors = results.into_iter().filter_map(Result::err).map(|error| error.to_string());
        (bug, errors.collect::<Vec<_>>())
    };
    let found: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = BUGS.map(|bug| scope.spawn(move || find(bug))).into_iter().collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut unexpected = Vec::new();
    for (bug, errors) in found {
        let check = match bug {
            Bug::WrongRank | Bug::WrongSize | Bug::RanksInOtherOrder | Bug::StaleBuffer => "ranks",
            Bug::LostSlice | Bug::LostEnd | Bug::MessageOfWrongPeer => "short messages",
            Bug::PiecesInWrongOrder => "unequal lengths",
            Bug::NoReceiveWithEmptySend | Bug::NoSendWithEmptyReceive => "empty messages",
            Bug::LostBeyondOneMegabyte | Bug::WrongLengthBeyond16Bits => "large messages",
            Bug::OwnMessage => "reused buffers",
            Bug::OneThreadOnly => "another thread",
            Bug::InvalidRankAccepted | Bug::OwnRankAccepted | Bug::OtherErrorForInvalidRank => {
                "invalid ranks"
            }
            Bug::TruncatedReceive => "lengths that differ",
        };
        let expected = format!("check `{check}`, process ");
        if !errors.iter().any(|error| error.starts_with(&expected)) {
            unexpected.push((bug, check, errors));
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

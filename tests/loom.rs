//! Loom tests, which explore the interleavings of threads that share a `SyncedMemory`, a queue or a
//! thread pool. Some of the loom tests limit the number of preemptions, because a search of all
//! interleavings would take too long.
//!
//! ```sh
//! RUSTFLAGS='--cfg loom' cargo test -p cortado --no-default-features --features net --test loom
//! ```
#![cfg(loom)]

#[cfg(feature = "net")]
#[path = "loom/queues.rs"]
mod queues;
#[path = "loom/threads.rs"]
mod threads;

use cortado::{Error, Head, Memory, Result, SyncedMemory};
use loom::{
    model,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

/// Runs `body` in every interleaving of its threads with at most `bound` preemptions.
fn check_with_preemptions(bound: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(body);
}

/// Device with separate memory that counts copies between host and device. The first copy fails if
/// `fails_first` is set.
#[derive(Clone, Debug)]
struct Remote {
    copies: Arc<AtomicUsize>,
    fails_first: bool,
}

impl Remote {
    fn new() -> Self {
        Self { copies: Arc::new(AtomicUsize::new(0)), fails_first: false }
    }

    fn copy(&self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        if self.copies.fetch_add(1, Relaxed) == 0 && self.fails_first {
            return Err(Error::device("remote", "injected failure of the first copy"));
        }
        dst.copy_from_slice(src);
        Ok(())
    }
}

impl Memory for Remote {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        self.copy(src, &mut dst[at..at + src.len()])
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        self.copy(&src[at..at + dst.len()], dst)
    }
}

/// Returns a `SyncedMemory` of two bytes that is valid only on the device.
fn on_device(device: &Remote) -> SyncedMemory<Remote> {
    let mut memory = SyncedMemory::new(device, 2);
    memory.device_mut().unwrap().fill(7);
    memory
}

#[test]
fn concurrent_readers_of_one_side_share_one_copy() {
    model(|| {
        let device = Remote::new();
        let memory = Arc::new(on_device(&device));
        let shared_memory = Arc::clone(&memory);
        let handle = thread::spawn(move || assert_eq!(shared_memory.host().unwrap(), [7, 7]));
        assert_eq!(memory.host().unwrap(), [7, 7]);
        handle.join().unwrap();
        assert_eq!((memory.head(), device.copies.load(Relaxed)), (Head::Synced, 1));
    });
}

#[test]
fn readers_of_both_sides_run_concurrently() {
    model(|| {
        let device = Remote::new();
        let mut memory = SyncedMemory::new(&device, 2);
        memory.host_mut().unwrap().fill(7);
        let memory = Arc::new(memory);
        let threads = [(); 2].map(|()| {
            let shared_memory = Arc::clone(&memory);
            thread::spawn(move || assert_eq!(shared_memory.device().unwrap()[..], [7, 7]))
        });
        assert_eq!(memory.host().unwrap(), [7, 7]);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((memory.head(), device.copies.load(Relaxed)), (Head::Synced, 1));
    });
}

#[test]
fn unwritten_memory_reads_as_zero_on_both_sides() {
    model(|| {
        let device = Remote::new();
        let memory = Arc::new(SyncedMemory::new(&device, 2));
        let shared_memory = Arc::clone(&memory);
        let handle = thread::spawn(move || assert_eq!(shared_memory.device().unwrap()[..], [0, 0]));
        assert_eq!(memory.host().unwrap(), [0, 0]);
        handle.join().unwrap();
        assert!(device.copies.load(Relaxed) <= 1);
    });
}

#[test]
fn a_prefetch_and_a_reader_share_one_copy() {
    model(|| {
        let device = Remote::new();
        let mut memory = SyncedMemory::new(&device, 2);
        memory.host_mut().unwrap().fill(7);
        let memory = Arc::new(memory);
        let (shared_memory, queue) = (Arc::clone(&memory), device.fork_queue().unwrap());
        let handle = thread::spawn(move || shared_memory.prefetch(&queue).unwrap());
        assert_eq!(memory.device().unwrap()[..], [7, 7]);
        handle.join().unwrap();
        assert_eq!((memory.head(), device.copies.load(Relaxed)), (Head::Synced, 1));
    });
}

#[test]
fn a_failed_copy_fails_one_reader_only() {
    model(|| {
        let device = Remote { fails_first: true, ..Remote::new() };
        let memory = Arc::new(on_device(&device));
        let shared_memory = Arc::clone(&memory);
        let handle = thread::spawn(move || shared_memory.host().map(<[u8]>::to_vec).ok());
        let result = memory.host().map(<[u8]>::to_vec).ok();
        let results = [result, handle.join().unwrap()];
        assert_eq!(
            results.iter().flatten().count(),
            1,
            "exactly one reader must get the injected failure"
        );
        assert!(results.iter().flatten().all(|bytes| bytes[..] == [7, 7]));
        assert_eq!(memory.host().unwrap(), [7, 7]);
        assert_eq!(device.copies.load(Relaxed), 2);
    });
}

//! Every interleaving of threads that read one memory, or meet at a queue, tried by loom:
//!
//! ```sh
//! RUSTFLAGS='--cfg loom' cargo test --no-default-features --features net --test loom
//! ```
#![cfg(loom)]

#[cfg(feature = "net")]
#[path = "loom/queues.rs"]
mod queues;

use cortado::{Error, Head, Memory, Result, SyncedMemory};
use loom::{
    model,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

/// Memory of its own that counts its copies, and fails the first of them if told to.
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
            return Err(Error::device("remote", "the first copy fails"));
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

/// A memory of two bytes that is current on the device alone.
fn on_device(device: &Remote) -> SyncedMemory<Remote> {
    let mut memory = SyncedMemory::new(device, 2);
    memory.device_mut().unwrap().fill(7);
    memory
}

#[test]
fn readers_of_one_side_share_one_copy() {
    model(|| {
        let device = Remote::new();
        let memory = Arc::new(on_device(&device));
        let theirs = Arc::clone(&memory);
        let other = thread::spawn(move || assert_eq!(theirs.host().unwrap(), [7, 7]));
        assert_eq!(memory.host().unwrap(), [7, 7]);
        other.join().unwrap();
        assert_eq!((memory.head(), device.copies.load(Relaxed)), (Head::Synced, 1));
    });
}

#[test]
fn readers_of_both_sides_do_not_meet() {
    model(|| {
        let device = Remote::new();
        let mut memory = SyncedMemory::new(&device, 2);
        memory.host_mut().unwrap().fill(7);
        let memory = Arc::new(memory);
        let threads = [(); 2].map(|()| {
            let theirs = Arc::clone(&memory);
            thread::spawn(move || assert_eq!(theirs.device().unwrap()[..], [7, 7]))
        });
        assert_eq!(memory.host().unwrap(), [7, 7]);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((memory.head(), device.copies.load(Relaxed)), (Head::Synced, 1));
    });
}

#[test]
fn memory_that_nobody_wrote_reads_as_zero_everywhere() {
    model(|| {
        let device = Remote::new();
        let memory = Arc::new(SyncedMemory::new(&device, 2));
        let theirs = Arc::clone(&memory);
        let other = thread::spawn(move || assert_eq!(theirs.device().unwrap()[..], [0, 0]));
        assert_eq!(memory.host().unwrap(), [0, 0]);
        other.join().unwrap();
        assert!(device.copies.load(Relaxed) <= 1);
    });
}

#[test]
fn a_prefetch_meets_a_reader() {
    model(|| {
        let device = Remote::new();
        let mut memory = SyncedMemory::new(&device, 2);
        memory.host_mut().unwrap().fill(7);
        let memory = Arc::new(memory);
        let (theirs, queue) = (Arc::clone(&memory), device.fork().unwrap());
        let other = thread::spawn(move || theirs.prefetch(&queue).unwrap());
        assert_eq!(memory.device().unwrap()[..], [7, 7]);
        other.join().unwrap();
        assert_eq!((memory.head(), device.copies.load(Relaxed)), (Head::Synced, 1));
    });
}

/// One of two readers may fail; the other, or a second try, finds the value.
#[test]
fn a_copy_that_fails_harms_nobody_else() {
    model(|| {
        let device = Remote { fails_first: true, ..Remote::new() };
        let memory = Arc::new(on_device(&device));
        let theirs = Arc::clone(&memory);
        let other = thread::spawn(move || theirs.host().map(<[u8]>::to_vec).ok());
        let ours = memory.host().map(<[u8]>::to_vec).ok();
        let read = [ours, other.join().unwrap()];
        assert_eq!(read.iter().flatten().count(), 1, "the first copy fails, the second holds");
        assert!(read.iter().flatten().all(|bytes| bytes[..] == [7, 7]));
        assert_eq!(memory.host().unwrap(), [7, 7]);
        assert_eq!(device.copies.load(Relaxed), 2);
    });
}

//! Coherence: which transitions copy, what is allocated, and that failures change nothing.

use cortado::{
    CpuDevice, Error, Head, Memory, Result, SyncedMemory, View, ViewMut,
    memory::{HostBytes, Mapping},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

/// Memory of its own that counts what crosses and can be made to fail.
#[derive(Clone, Debug, Default)]
struct Remote {
    allocs: Arc<AtomicUsize>,
    uploads: Arc<AtomicUsize>,
    downloads: Arc<AtomicUsize>,
    broken: Arc<AtomicBool>,
}

impl Remote {
    fn counts(&self) -> [usize; 3] {
        [&self.allocs, &self.uploads, &self.downloads].map(|count| count.load(Relaxed))
    }

    fn work(&self, count: &AtomicUsize) -> Result<()> {
        if self.broken.load(Relaxed) {
            return Err(Error::device("remote", "broken"));
        }
        count.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl Memory for Remote {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        self.work(&self.allocs)?;
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        self.work(&self.uploads)?;
        dst[at..at + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        self.work(&self.downloads)?;
        dst.copy_from_slice(&src[at..at + dst.len()]);
        Ok(())
    }
}

/// Memory shared with the host that cannot adopt host bytes.
#[derive(Clone, Debug)]
struct Unified;

impl Memory for Unified {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "unified".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, _: &[u8], _: &mut Vec<u8>, _: usize) -> Result<()> {
        panic!("unified memory never copies")
    }
    fn download(&self, _: &Vec<u8>, _: usize, _: &mut [u8]) -> Result<()> {
        panic!("unified memory never copies")
    }
    fn mapping(&self) -> Option<&dyn Mapping<Vec<u8>>> {
        Some(self)
    }
}

impl Mapping<Vec<u8>> for Unified {
    fn map<'a>(&self, buffer: &'a Vec<u8>) -> Result<&'a [u8]> {
        Ok(buffer)
    }
    fn map_mut<'a>(&self, buffer: &'a mut Vec<u8>) -> Result<&'a mut [u8]> {
        Ok(buffer)
    }
}

/// What can be done to a memory, and the side it reads or writes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    ReadHost,
    ReadDevice,
    WriteHost(u8),
    WriteDevice(u8),
    OverwriteHost(u8),
    OverwriteDevice(u8),
    Adopt(u8),
    Prefetch,
}

const LEN: usize = 3;

/// Takes a step on the memory; returns the value that it found, if it looked.
fn take(memory: &mut SyncedMemory<Remote>, step: Step) -> Option<u8> {
    let found = match step {
        Step::ReadHost => memory.host().unwrap().to_vec(),
        Step::ReadDevice => memory.device().unwrap().clone(),
        Step::WriteHost(value) => change(memory.host_mut().unwrap(), value),
        Step::WriteDevice(value) => change(memory.device_mut().unwrap(), value),
        Step::OverwriteHost(value) => {
            memory.host_write_only().unwrap().fill(value);
            return None;
        }
        Step::OverwriteDevice(value) => {
            memory.device_write_only().unwrap().fill(value);
            return None;
        }
        Step::Adopt(value) => {
            memory.adopt(HostBytes::adopt(vec![value; LEN])).unwrap();
            return None;
        }
        Step::Prefetch => {
            memory.prefetch(&memory.device_handle().fork().unwrap()).unwrap();
            return None;
        }
    };
    assert!(found.iter().all(|byte| *byte == found[0]));
    Some(found[0])
}

/// Fills `bytes`; returns what they held.
fn change(bytes: &mut [u8], value: u8) -> Vec<u8> {
    let found = bytes.to_vec();
    bytes.fill(value);
    found
}

/// The whole protocol: the last value written, and the sides that are current.
struct Model {
    value: u8,
    host: bool,
    device: bool,
}

impl Model {
    /// Takes a step; returns what a reader has to see, and uploads and downloads to be seen.
    fn take(&mut self, step: Step) -> (Option<u8>, [usize; 2]) {
        let seen = self.value;
        let touched = self.host || self.device;
        let (upload, download) = (touched && !self.device, touched && !self.host);
        match step {
            Step::ReadHost | Step::WriteHost(_) => {
                self.host = true;
                if let Step::WriteHost(value) = step {
                    (self.value, self.device) = (value, false);
                }
                (Some(seen), [0, usize::from(download)])
            }
            Step::ReadDevice | Step::WriteDevice(_) | Step::Prefetch => {
                self.device = true;
                if let Step::WriteDevice(value) = step {
                    (self.value, self.host) = (value, false);
                }
                let seen = (step != Step::Prefetch).then_some(seen);
                (seen, [usize::from(upload), 0])
            }
            Step::OverwriteHost(value) | Step::Adopt(value) => {
                (self.value, self.host, self.device) = (value, true, false);
                (None, [0, 0])
            }
            Step::OverwriteDevice(value) => {
                (self.value, self.host, self.device) = (value, false, true);
                (None, [0, 0])
            }
        }
    }

    fn head(&self) -> Head {
        match (self.host, self.device) {
            (false, false) => Head::Uninitialized,
            (true, false) => Head::HeadAtHost,
            (false, true) => Head::HeadAtDevice,
            (true, true) => Head::Synced,
        }
    }
}

/// Every sequence of five steps, with every copy accounted for.
#[test]
fn every_short_history_follows_the_model() {
    let step = |kind: usize, value: u8| match kind {
        0 => Step::ReadHost,
        1 => Step::ReadDevice,
        2 => Step::WriteHost(value),
        3 => Step::WriteDevice(value),
        4 => Step::OverwriteHost(value),
        5 => Step::OverwriteDevice(value),
        6 => Step::Adopt(value),
        _ => Step::Prefetch,
    };
    for history in 0..8usize.pow(5) {
        let device = Remote::default();
        let mut memory = SyncedMemory::new(&device, LEN);
        let mut model = Model { value: 0, host: false, device: false };
        let mut copies = [0, 0];
        for place in 0..5 {
            let step = step(history / 8usize.pow(place) % 8, place as u8 + 1);
            let (want, [up, down]) = model.take(step);
            assert_eq!(take(&mut memory, step), want, "history {history}, step {place}");
            copies = [copies[0] + up, copies[1] + down];
            let [allocs, uploads, downloads] = device.counts();
            assert_eq!([uploads, downloads], copies, "history {history}, step {place}");
            assert_eq!(memory.head(), model.head(), "history {history}, step {place}");
            assert!(allocs <= 1, "the device's allocation is reused");
        }
    }
}

#[test]
fn nothing_is_allocated_before_it_is_touched() {
    let device = Remote::default();
    let memory = SyncedMemory::new(&device, usize::MAX / 2);
    assert_eq!((memory.head(), device.counts()), (Head::Uninitialized, [0; 3]));
    assert!(matches!(memory.host(), Err(Error::OutOfMemory { .. })));
    assert_eq!(memory.head(), Head::Uninitialized);
}

#[test]
fn unified_memory_never_copies() {
    let mut memory = SyncedMemory::new(&Unified, 2);
    memory.host_mut().unwrap().fill(5);
    assert_eq!(memory.device().unwrap(), &[5, 5]);
    memory.device_mut().unwrap().fill(6);
    assert_eq!(memory.host().unwrap(), [6, 6]);
    memory.host_write_only().unwrap()[0] = 7;
    assert_eq!(memory.device().unwrap(), &[7, 6]);
    memory.adopt(HostBytes::adopt(vec![1u8, 2])).unwrap();
    assert_eq!(memory.device().unwrap(), &[1, 2]);
    memory.prefetch(&Unified).unwrap();
}

#[test]
fn adopted_bytes_are_not_copied() {
    let bytes = vec![1.5f32, 2.5];
    let at = bytes.as_ptr() as usize;
    let mut memory = SyncedMemory::new(&Remote::default(), 8);
    memory.adopt(HostBytes::adopt(bytes)).unwrap();
    assert_eq!(memory.host().unwrap().as_ptr() as usize, at);
    assert_eq!(View::<f32, _>::new(&memory, 2).unwrap().host().unwrap(), [1.5, 2.5]);

    let bytes = vec![3.5f32, 4.5];
    let at = bytes.as_ptr() as usize;
    let mut memory = SyncedMemory::new(&CpuDevice::new(), 8);
    memory.adopt(HostBytes::adopt(bytes)).unwrap();
    assert_eq!(memory.host().unwrap().as_ptr() as usize, at);
    let wrong = memory.adopt(HostBytes::adopt(vec![0u8; 7]));
    assert!(matches!(wrong, Err(Error::Length { operand: "bytes", want: 8, got: 7, .. })));
}

#[test]
fn a_failed_copy_loses_nothing() {
    let device = Remote::default();
    let mut memory = SyncedMemory::new(&device, LEN);
    memory.host_mut().unwrap().fill(1);
    device.broken.store(true, Relaxed);
    assert!(memory.device().is_err());
    assert!(memory.device_mut().is_err());
    assert!(memory.device_write_only().is_err());
    assert_eq!((memory.head(), memory.host().unwrap()), (Head::HeadAtHost, &[1; LEN][..]));
    device.broken.store(false, Relaxed);
    memory.device_mut().unwrap().fill(2);
    device.broken.store(true, Relaxed);
    assert!(memory.host().is_err());
    assert!(memory.host_mut().is_err());
    assert_eq!(memory.head(), Head::HeadAtDevice);
    device.broken.store(false, Relaxed);
    assert_eq!(memory.host().unwrap(), [2; LEN]);
}

#[test]
fn readers_on_many_threads_share_one_copy() {
    let device = Remote::default();
    let mut memory = SyncedMemory::new(&device, 1 << 16);
    memory.device_mut().unwrap().fill(9);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                assert!(memory.host().unwrap().iter().all(|&byte| byte == 9));
                assert!(memory.device().unwrap().iter().all(|&byte| byte == 9));
            });
        }
    });
    assert_eq!(device.counts(), [1, 0, 1]);
}

#[test]
fn views_stay_inside() {
    let device = Remote::default();
    let mut memory = SyncedMemory::new(&device, 10);
    assert!(matches!(View::<f32, _>::new(&memory, 3), Err(Error::Range { len: 2, .. })));
    let view = View::<f32, _>::new(&memory, 2).unwrap();
    let reversed = std::ops::Range { start: 2, end: 1 };
    assert!(view.slice(0..3).is_err() && view.slice(reversed).is_err());
    assert_eq!(view.slice(1..2).unwrap().len(), 1);
    let mut view = ViewMut::<u16, _>::new(&mut memory, 5).unwrap();
    view.slice_mut(1..3).unwrap().host_mut().unwrap().fill(7);
    assert!(view.slice_mut(3..6).is_err());
    assert_eq!(view.as_view().host().unwrap(), [0, 7, 7, 0, 0]);
    let part = view.as_view().slice(1..4).unwrap();
    let bytes = part.device().unwrap();
    assert_eq!((bytes.offset, bytes.bytes, &bytes.buffer[2..4]), (2, 6, &[7, 0][..]));
}

/// Overwriting a part must keep the rest: only a view of the whole memory fetches nothing.
#[test]
fn overwriting_a_part_keeps_the_rest() {
    let device = Remote::default();
    let mut memory = SyncedMemory::new(&device, 4);
    memory.device_mut().unwrap().fill(1);
    let mut view = ViewMut::<u8, _>::new(&mut memory, 4).unwrap();
    view.slice_mut(0..2).unwrap().host_write_only().unwrap().fill(2);
    assert_eq!(view.as_view().host().unwrap(), [2, 2, 1, 1]);
    assert_eq!(device.counts(), [1, 0, 1]);
    view.host_write_only().unwrap().fill(3);
    view.device_write_only().unwrap().buffer.fill(4);
    assert_eq!(device.counts(), [1, 0, 1]);
    assert_eq!(view.as_view().host().unwrap(), [4; 4]);
}

/// Adopted bytes need not be aligned for every element.
#[test]
fn misaligned_bytes_are_an_error() {
    struct Shifted(Vec<u64>);
    impl cortado::memory::HostStorage for Shifted {
        fn bytes(&self) -> &[u8] {
            &bytemuck::cast_slice(&self.0)[1..9]
        }
        fn bytes_mut(&mut self) -> &mut [u8] {
            &mut bytemuck::cast_slice_mut(&mut self.0)[1..9]
        }
    }
    let mut memory = SyncedMemory::new(&CpuDevice::new(), 8);
    memory.adopt(HostBytes::adopt(Shifted(vec![0; 2]))).unwrap();
    assert!(matches!(View::<f64, _>::new(&memory, 1).unwrap().host(), Err(Error::Invalid(_))));
    let mut view = ViewMut::<f32, _>::new(&mut memory, 2).unwrap();
    assert!(view.host_mut().is_err() && view.host_write_only().is_err());
}

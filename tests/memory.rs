//! Coherence: which transitions copy, what is allocated, and that failures change nothing.

use cortado::{
    CpuDevice, Error, Head, Memory, Result, SyncedMemory, View, ViewMut,
    memory::{HostBytes, Mapping},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
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
    fn host_mapping(&self) -> Option<&dyn Mapping<Vec<u8>>> {
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
    CommitHost(u8),
    RefuseHost,
}

const KINDS: usize = 10;
const LEN: usize = 3;

fn step(kind: usize, value: u8) -> Step {
    match kind {
        0 => Step::ReadHost,
        1 => Step::ReadDevice,
        2 => Step::WriteHost(value),
        3 => Step::WriteDevice(value),
        4 => Step::OverwriteHost(value),
        5 => Step::OverwriteDevice(value),
        6 => Step::Adopt(value),
        7 => Step::Prefetch,
        8 => Step::CommitHost(value),
        _ => Step::RefuseHost,
    }
}

/// Takes a step on the memory; returns the value that it found, if it looked.
fn take(memory: &mut SyncedMemory<Remote>, step: Step) -> Result<Option<u8>> {
    let found = match step {
        Step::ReadHost => memory.host()?.to_vec(),
        Step::ReadDevice => memory.device()?.clone(),
        Step::WriteHost(value) => change(memory.host_mut()?, value),
        Step::WriteDevice(value) => change(memory.device_mut()?, value),
        Step::OverwriteHost(value) => {
            return memory.host_write_only().map(|bytes| fill(bytes, value));
        }
        Step::OverwriteDevice(value) => {
            return memory.device_write_only().map(|bytes| fill(bytes, value));
        }
        Step::Adopt(value) => {
            return memory.adopt(HostBytes::adopt(vec![value; LEN])).map(|()| None);
        }
        Step::Prefetch => {
            let queue = memory.device_handle().fork_queue()?;
            return memory.prefetch(&queue).map(|()| None);
        }
        Step::CommitHost(value) => return memory.host_overwrite(|bytes| Ok(fill(bytes, value))),
        Step::RefuseHost => {
            let refused = |_: &mut [u8]| Err(Error::invalid_input("test", "refused"));
            return memory.host_overwrite::<Option<u8>>(refused);
        }
    };
    assert!(found.iter().all(|byte| *byte == found[0]));
    Ok(Some(found[0]))
}

fn fill(bytes: &mut [u8], value: u8) -> Option<u8> {
    bytes.fill(value);
    None
}

/// Fills `bytes`; returns what they held.
fn change(bytes: &mut [u8], value: u8) -> Vec<u8> {
    let found = bytes.to_vec();
    bytes.fill(value);
    found
}

/// The whole protocol: the last value written, and the sides that are current.
#[derive(Default)]
struct Model {
    value: u8,
    host: bool,
    device: bool,
    /// Whether the device has an allocation, current or not.
    allocated: bool,
}

impl Model {
    /// What the device has to do for a step: allocate, upload, download.
    fn needs(&self, step: Step) -> [bool; 3] {
        let touched = self.host || self.device;
        match step {
            Step::ReadHost | Step::WriteHost(_) => [false, false, touched && !self.host],
            Step::ReadDevice | Step::WriteDevice(_) | Step::Prefetch => {
                [!self.allocated, touched && !self.device, false]
            }
            Step::OverwriteDevice(_) => [!self.allocated, false, false],
            _ => [false; 3],
        }
    }

    /// Takes a step; returns what a reader has to see.
    fn take(&mut self, step: Step) -> Option<u8> {
        let seen = self.value;
        self.allocated |= self.needs(step)[0];
        (self.value, self.host, self.device) = match step {
            Step::ReadHost => (seen, true, self.device),
            Step::ReadDevice | Step::Prefetch => (seen, self.host, true),
            Step::WriteHost(value)
            | Step::OverwriteHost(value)
            | Step::Adopt(value)
            | Step::CommitHost(value) => (value, true, false),
            Step::WriteDevice(value) | Step::OverwriteDevice(value) => (value, false, true),
            // What was not written is kept where it is safe from a half-written host.
            Step::RefuseHost => (seen, self.host && !self.device, self.device),
        };
        let looks = |step| {
            use Step::{ReadDevice, ReadHost, WriteDevice, WriteHost};
            matches!(step, ReadHost | ReadDevice | WriteHost(_) | WriteDevice(_))
        };
        looks(step).then_some(seen)
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

/// Takes the steps on a memory and on the model. Where a step is said to be `broken` the device
/// fails in whatever it is asked for: then nothing may change.
fn follow(history: &[(Step, bool)]) {
    let device = Remote::default();
    let mut memory = SyncedMemory::new(&device, LEN);
    let mut model = Model::default();
    let mut copies = [0; 3];
    for (place, &(step, broken)) in history.iter().enumerate() {
        let needs = model.needs(step);
        device.broken.store(broken, Relaxed);
        let found = take(&mut memory, step);
        if (broken && needs.contains(&true)) || step == Step::RefuseHost {
            assert!(found.is_err(), "{history:?}, step {place}");
        } else {
            let found = found.unwrap_or_else(|error| panic!("{history:?}, step {place}: {error}"));
            for (count, need) in copies.iter_mut().zip(needs) {
                *count += usize::from(need);
            }
            assert_eq!(found, model.take(step), "{history:?}, step {place}");
        }
        if step == Step::RefuseHost {
            model.take(step);
        }
        assert_eq!(device.counts(), copies, "{history:?}, step {place}");
        assert_eq!(memory.head(), model.head(), "{history:?}, step {place}");
    }
    device.broken.store(false, Relaxed);
    assert_eq!(memory.host().unwrap(), [model.value; LEN], "{history:?}");
}

/// Steps of a short history; an interpreter has to do with fewer.
const SHORT: usize = if cfg!(miri) { 3 } else { 5 };

/// Every sequence of five steps, with every allocation and copy accounted for.
#[test]
fn every_short_history_follows_the_model() {
    for history in 0..KINDS.pow(SHORT as u32) {
        let kind = |place: usize| history / KINDS.pow(place as u32) % KINDS;
        let steps: [_; SHORT] =
            std::array::from_fn(|place| (step(kind(place), place as u8 + 1), false));
        follow(&steps);
    }
}

/// Every sequence of four steps in which the device fails at any of them.
#[test]
fn failures_anywhere_change_nothing() {
    const STEPS: usize = SHORT - 1;
    for history in 0..(2 * KINDS).pow(STEPS as u32) {
        let kind = |place: usize| history / (2 * KINDS).pow(place as u32) % (2 * KINDS);
        let steps: [_; STEPS] = std::array::from_fn(|place| {
            (step(kind(place) % KINDS, place as u8 + 1), kind(place) >= KINDS)
        });
        follow(&steps);
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
fn a_panic_while_overwriting_loses_nothing() {
    let written = Step::WriteDevice(7);
    let histories: [(&[Step], u8); 4] =
        [(&[], 0), (&[Step::WriteHost(7)], 7), (&[written], 7), (&[written, Step::ReadHost], 7)];
    for (history, value) in histories {
        let mut memory = SyncedMemory::new(&Remote::default(), LEN);
        for &step in history {
            take(&mut memory, step).unwrap();
        }
        let panics = || memory.host_overwrite::<()>(|_| panic!("not today"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(memory.host().unwrap(), [value; LEN]);
        assert_eq!(memory.device().unwrap(), &[value; LEN]);
    }
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
    assert!(matches!(View::<f64, _>::new(&memory, 1).unwrap().host(), Err(Error::InvalidData(_))));
    let mut view = ViewMut::<f32, _>::new(&mut memory, 2).unwrap();
    assert!(view.host_mut().is_err() && view.host_write_only().is_err());
}

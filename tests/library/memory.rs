//! Tests of the coherence of host and device memory: which accesses copy or allocate, and whether a
//! failed access leaves the value unchanged.

use cortado::{
    CpuDevice, Error, Head, Memory, Result, Storable, SyncedMemory, View, ViewMut,
    memory::{HostBytes, Mapping},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

/// Device with separate memory that counts allocations and copies. While `fails` is set, all
/// allocations and copies fail.
#[derive(Clone, Debug, Default)]
struct Remote {
    allocs: Arc<AtomicUsize>,
    uploads: Arc<AtomicUsize>,
    downloads: Arc<AtomicUsize>,
    fails: Arc<AtomicBool>,
}

impl Remote {
    fn counts(&self) -> [usize; 3] {
        [&self.allocs, &self.uploads, &self.downloads].map(|count| count.load(Relaxed))
    }

    fn count_call(&self, count: &AtomicUsize) -> Result<()> {
        if self.fails.load(Relaxed) {
            return Err(Error::device("remote", "injected failure of a device call"));
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
        self.count_call(&self.allocs)?;
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, offset: usize) -> Result<()> {
        self.count_call(&self.uploads)?;
        dst[offset..offset + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, offset: usize, dst: &mut [u8]) -> Result<()> {
        self.count_call(&self.downloads)?;
        dst.copy_from_slice(&src[offset..offset + dst.len()]);
        Ok(())
    }
}

/// Device with unified memory that cannot adopt host bytes.
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

/// Operation on a `SyncedMemory`.
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
    HostOverwrite(u8),
    HostOverwriteFails,
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
        8 => Step::HostOverwrite(value),
        _ => Step::HostOverwriteFails,
    }
}

/// Applies a step to a `SyncedMemory`. Returns the value that the step has read, or `None` if the
/// step does not read.
fn apply(memory: &mut SyncedMemory<Remote>, step: Step) -> Result<Option<u8>> {
    let found = match step {
        Step::ReadHost => memory.host()?.to_vec(),
        Step::ReadDevice => memory.device()?.clone(),
        Step::WriteHost(value) => replace(memory.host_mut()?, value),
        Step::WriteDevice(value) => replace(memory.device_mut()?, value),
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
        Step::HostOverwrite(value) => return memory.host_overwrite(|bytes| Ok(fill(bytes, value))),
        Step::HostOverwriteFails => {
            let fails = |_: &mut [u8]| Err(Error::invalid_input("test", "fails"));
            return memory.host_overwrite::<Option<u8>>(fails);
        }
    };
    assert!(found.iter().all(|byte| *byte == found[0]));
    Ok(Some(found[0]))
}

fn fill(bytes: &mut [u8], value: u8) -> Option<u8> {
    bytes.fill(value);
    None
}

/// Overwrites all bytes of `bytes` with `value` and returns the previous bytes.
fn replace(bytes: &mut [u8], value: u8) -> Vec<u8> {
    let found = bytes.to_vec();
    bytes.fill(value);
    found
}

/// Model of the coherence protocol: the last written value and the valid sides.
#[derive(Default)]
struct Model {
    value: u8,
    host: bool,
    device: bool,
    /// Whether the device side is allocated, even if it is stale.
    allocated: bool,
}

impl Model {
    /// Returns three flags, which state whether a step requires an allocation, whether it requires
    /// an upload, and whether it requires a download.
    fn needs(&self, step: Step) -> [bool; 3] {
        let is_initialized = self.host || self.device;
        match step {
            Step::ReadHost | Step::WriteHost(_) => [false, false, is_initialized && !self.host],
            Step::ReadDevice | Step::WriteDevice(_) | Step::Prefetch => {
                [!self.allocated, is_initialized && !self.device, false]
            }
            Step::OverwriteDevice(_) => [!self.allocated, false, false],
            _ => [false; 3],
        }
    }

    /// Applies a step to the model of a `SyncedMemory`. Returns the value that the step must read,
    /// or `None` if the step does not read.
    fn apply(&mut self, step: Step) -> Option<u8> {
        let value = self.value;
        self.allocated |= self.needs(step)[0];
        (self.value, self.host, self.device) = match step {
            Step::ReadHost => (value, true, self.device),
            Step::ReadDevice | Step::Prefetch => (value, self.host, true),
            Step::WriteHost(value)
            | Step::OverwriteHost(value)
            | Step::Adopt(value)
            | Step::HostOverwrite(value) => (value, true, false),
            Step::WriteDevice(value) | Step::OverwriteDevice(value) => (value, false, true),
            // A failed write may have changed the host side, so the host side becomes stale if the
            // device side is valid.
            Step::HostOverwriteFails => (value, self.host && !self.device, self.device),
        };
        let reads = |step| {
            use Step::{ReadDevice, ReadHost, WriteDevice, WriteHost};
            matches!(step, ReadHost | ReadDevice | WriteHost(_) | WriteDevice(_))
        };
        reads(step).then_some(value)
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

/// Applies a sequence of steps to a `SyncedMemory` and to the model, and compares the two after
/// every step. During a step whose flag is `true`, all allocations and copies fail. A step that
/// fails must not change the value of the `SyncedMemory`.
fn check_sequence(sequence: &[(Step, bool)]) {
    let device = Remote::default();
    let mut memory = SyncedMemory::new(&device, LEN);
    let mut model = Model::default();
    let mut counts = [0; 3];
    for (index, &(step, fails)) in sequence.iter().enumerate() {
        let needs = model.needs(step);
        device.fails.store(fails, Relaxed);
        let found = apply(&mut memory, step);
        if (fails && needs.contains(&true)) || step == Step::HostOverwriteFails {
            assert!(found.is_err(), "{sequence:?}, step {index}");
        } else {
            let found = found.unwrap_or_else(|error| panic!("{sequence:?}, step {index}: {error}"));
            for (count, need) in counts.iter_mut().zip(needs) {
                *count += usize::from(need);
            }
            assert_eq!(found, model.apply(step), "{sequence:?}, step {index}");
        }
        if step == Step::HostOverwriteFails {
            model.apply(step);
        }
        assert_eq!(device.counts(), counts, "{sequence:?}, step {index}");
        assert_eq!(memory.head(), model.head(), "{sequence:?}, step {index}");
    }
    device.fails.store(false, Relaxed);
    assert_eq!(memory.host().unwrap(), [model.value; LEN], "{sequence:?}");
}

/// Number of steps in a test sequence, which is small under Miri, because Miri is slow.
const STEPS: usize = if cfg!(miri) { 2 } else { 4 };

/// Runs every sequence of [`STEPS`] steps with every combination of flags. After each step, the
/// test compares values, valid sides, allocations and copies with the model.
#[test]
fn every_sequence_of_four_memory_operations_agrees_with_the_model() {
    for sequence in 0..(2 * KINDS).pow(STEPS as u32) {
        let kind = |index: usize| sequence / (2 * KINDS).pow(index as u32) % (2 * KINDS);
        let steps: [_; STEPS] = std::array::from_fn(|index| {
            (step(kind(index) % KINDS, index as u8 + 1), kind(index) >= KINDS)
        });
        check_sequence(&steps);
    }
}

#[test]
fn an_unused_memory_allocates_nothing() {
    let device = Remote::default();
    let memory = SyncedMemory::new(&device, usize::MAX / 2);
    assert_eq!((memory.head(), device.counts()), (Head::Uninitialized, [0; 3]));
    assert!(matches!(memory.host(), Err(Error::OutOfMemory { .. })));
    assert_eq!(memory.head(), Head::Uninitialized);
}

#[test]
fn unified_memory_is_never_copied() {
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
fn adopting_host_bytes_causes_no_copy() {
    let bytes = vec![1.5f32, 2.5];
    let address = bytes.as_ptr() as usize;
    let mut memory = SyncedMemory::new(&Remote::default(), 8);
    memory.adopt(HostBytes::adopt(bytes)).unwrap();
    assert_eq!(memory.host().unwrap().as_ptr() as usize, address);
    assert_eq!(View::<f32, _>::new(&memory, 2).unwrap().host().unwrap(), [1.5, 2.5]);

    let bytes = vec![3.5f32, 4.5];
    let address = bytes.as_ptr() as usize;
    let mut memory = SyncedMemory::new(&CpuDevice::new(), 8);
    memory.adopt(HostBytes::adopt(bytes)).unwrap();
    assert_eq!(memory.host().unwrap().as_ptr() as usize, address);
    let result = memory.adopt(HostBytes::adopt(vec![0u8; 7]));
    assert!(matches!(result, Err(Error::Length { operand: "bytes", want: 8, got: 7, .. })));
}

#[test]
fn a_failed_copy_does_not_change_the_value() {
    let device = Remote::default();
    let mut memory = SyncedMemory::new(&device, LEN);
    memory.host_mut().unwrap().fill(1);
    device.fails.store(true, Relaxed);
    assert!(memory.device().is_err());
    assert!(memory.device_mut().is_err());
    assert!(memory.device_write_only().is_err());
    assert_eq!((memory.head(), memory.host().unwrap()), (Head::HeadAtHost, &[1; LEN][..]));
    device.fails.store(false, Relaxed);
    memory.device_mut().unwrap().fill(2);
    device.fails.store(true, Relaxed);
    assert!(memory.host().is_err());
    assert!(memory.host_mut().is_err());
    assert_eq!(memory.head(), Head::HeadAtDevice);
    device.fails.store(false, Relaxed);
    assert_eq!(memory.host().unwrap(), [2; LEN]);
}

#[test]
fn reserved_device_memory_is_neither_read_nor_allocated_again() {
    let device = Remote::default();
    // A memory without a value still reads as zero after `reserve_device`.
    let mut memory = SyncedMemory::new(&device, LEN);
    memory.reserve_device().unwrap();
    assert_eq!((memory.head(), device.counts()), (Head::Uninitialized, [1, 0, 0]));
    memory.reserve_device().unwrap();
    assert_eq!(memory.device().unwrap(), &[0; LEN]);
    assert_eq!(device.counts(), [1, 0, 0]);
    // `reserve_device` keeps the value on the host. A later overwrite on the device allocates
    // nothing.
    let mut memory = SyncedMemory::new(&device, LEN);
    memory.host_mut().unwrap().fill(3);
    memory.reserve_device().unwrap();
    assert_eq!((memory.head(), memory.host().unwrap()), (Head::HeadAtHost, &[3; LEN][..]));
    device.fails.store(true, Relaxed);
    memory.reserve_device().unwrap();
    memory.device_write_only().unwrap().fill(4);
    device.fails.store(false, Relaxed);
    assert_eq!((device.counts()[0], memory.host().unwrap()), (2, &[4; LEN][..]));
    // For a view of a part of the memory, `reserve_device` uploads the value, because a kernel that
    // overwrites the view must keep the other bytes.
    let mut memory = SyncedMemory::new(&device, LEN);
    memory.host_mut().unwrap().fill(5);
    let mut part = ViewMut::<u8, _>::new(&mut memory, LEN).unwrap().slice(1..2).unwrap();
    part.reserve_device().unwrap();
    device.fails.store(true, Relaxed);
    part.device_write_only().unwrap().buffer[1] = 6;
    device.fails.store(false, Relaxed);
    assert_eq!(memory.host().unwrap()[..3], [5, 6, 5]);
}

#[test]
fn a_panic_in_host_overwrite_does_not_change_the_value() {
    let write_step = Step::WriteDevice(7);
    let sequences: [(&[Step], u8); 4] = [
        (&[], 0),
        (&[Step::WriteHost(7)], 7),
        (&[write_step], 7),
        (&[write_step, Step::ReadHost], 7),
    ];
    for (sequence, value) in sequences {
        let mut memory = SyncedMemory::new(&Remote::default(), LEN);
        for &step in sequence {
            apply(&mut memory, step).unwrap();
        }
        let panics = || memory.host_overwrite::<()>(|_| panic!("test"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(memory.host().unwrap(), [value; LEN]);
        assert_eq!(memory.device().unwrap(), &[value; LEN]);
    }
}

#[test]
fn concurrent_readers_share_one_copy() {
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
fn views_outside_their_memory_are_errors() {
    let device = Remote::default();
    let mut memory = SyncedMemory::new(&device, 10);
    assert!(matches!(View::<f32, _>::new(&memory, 3), Err(Error::Range { len: 2, .. })));
    let view = View::<f32, _>::new(&memory, 2).unwrap();
    let reversed_range = std::ops::Range { start: 2, end: 1 };
    assert!(view.slice(0..3).is_err() && view.slice(reversed_range).is_err());
    assert_eq!(view.slice(1..2).unwrap().len(), 1);
    let mut view = ViewMut::<u16, _>::new(&mut memory, 5).unwrap();
    view.slice_mut(1..3).unwrap().host_mut().unwrap().fill(7);
    assert!(view.slice_mut(3..6).is_err());
    assert_eq!(view.as_view().host().unwrap(), [0, 7, 7, 0, 0]);
    let part = view.as_view().slice(1..4).unwrap();
    let bytes = part.device().unwrap();
    assert_eq!((bytes.offset, bytes.bytes, &bytes.buffer[2..4]), (2, 6, &[7, 0][..]));
}

/// Only an overwrite of all bytes may skip the transfer of the previous value.
#[test]
fn overwriting_part_of_a_memory_keeps_the_other_bytes() {
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

#[test]
fn views_of_misaligned_adopted_bytes_are_errors() {
    struct Shifted(Vec<u64>);
    impl cortado::memory::HostStorage for Shifted {
        fn bytes(&self) -> &[u8] {
            &u64::bytes_of(&self.0)[1..9]
        }
        fn bytes_mut(&mut self) -> &mut [u8] {
            &mut u64::bytes_of_mut(&mut self.0)[1..9]
        }
    }
    let mut memory = SyncedMemory::new(&CpuDevice::new(), 8);
    memory.adopt(HostBytes::adopt(Shifted(vec![0; 2]))).unwrap();
    assert!(matches!(View::<f64, _>::new(&memory, 1).unwrap().host(), Err(Error::InvalidData(_))));
    let mut view = ViewMut::<f32, _>::new(&mut memory, 2).unwrap();
    assert!(view.host_mut().is_err() && view.host_write_only().is_err());
}

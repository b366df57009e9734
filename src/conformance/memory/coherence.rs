//! Check of coherence: random sequences of accesses to a [`SyncedMemory`], compared with a model of
//! its content and valid sides.

use crate::{
    conformance::{
        compare::expect_bits,
        failure::{CaseFailure, Verdict, flaw},
        runner::CheckRunner,
        values::byte_pattern,
    },
    device::AnyDevice,
    memory::{Head, HostBytes, Memory, SyncedMemory, View, ViewMut},
};
use proptest::prelude::*;

/// Access to one side of a memory. Each write of a sequence stores different bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    ReadHost,
    ReadDevice,
    /// Overwrites a range in the middle of the memory through the host side.
    WriteHost,
    WriteDevice,
    /// Overwrites all bytes on the host, so that no transfer is necessary.
    OverwriteHost,
    OverwriteDevice,
    /// Overwrites a part of the memory through a view. If the host side is stale, the memory first
    /// downloads its content, to preserve the bytes outside the view.
    OverwritePartOnHost,
    OverwritePartOnDevice,
    Adopt,
    /// Uploads the memory through a forked queue.
    Prefetch,
}
use Access::*;

const ACCESSES: [Access; 10] = [
    ReadHost,
    ReadDevice,
    WriteHost,
    WriteDevice,
    OverwriteHost,
    OverwriteDevice,
    OverwritePartOnHost,
    OverwritePartOnDevice,
    Adopt,
    Prefetch,
];

#[derive(Clone, Debug)]
struct Case {
    size: usize,
    accesses: Vec<Access>,
}

impl Case {
    /// Returns every sequence of three accesses, so that the check tests every access with no stale
    /// side, with a stale host side and with a stale device side. Also returns single accesses for
    /// other memory sizes.
    fn corner_cases() -> impl Iterator<Item = Self> {
        let sequences_after = |first, then| ACCESSES.map(|last| vec![first, then, last, ReadHost]);
        let sequences =
            ACCESSES.iter().flat_map(move |&a| ACCESSES.map(|b| sequences_after(a, b)).concat());
        let triples = sequences.map(|accesses| Self { size: 37, accesses });
        let single_accesses = [0, 1, 4099].into_iter().flat_map(|size| {
            ACCESSES.map(|access| Self { size, accesses: vec![access, ReadDevice, ReadHost] })
        });
        triples.chain(single_accesses)
    }

    fn any() -> BoxedStrategy<Self> {
        let accesses = prop::collection::vec(prop::sample::select(&ACCESSES[..]), 0..24);
        let size = prop_oneof![0..9usize, 0..3000usize];
        (size, accesses).prop_map(|(size, accesses)| Self { size, accesses }).boxed()
    }
}

/// Memory under test, with its expected content and its expected valid sides.
struct ModelledMemory {
    memory: SyncedMemory<AnyDevice>,
    want: Vec<u8>,
    host_valid: bool,
    device_valid: bool,
}

pub(super) fn coherence(runner: &CheckRunner<'_>) -> Verdict {
    let test = |case: &Case| {
        let mut memory = ModelledMemory::new(runner.device, case.size);
        memory.expect_head()?;
        for (i, &access) in case.accesses.iter().enumerate() {
            let name_access = |CaseFailure(reason)| flaw!("access {i} ({access:?}): {reason}");
            memory.access(access, i as u64 + 1).map_err(name_access)?;
            memory.expect_head().map_err(name_access)?;
        }
        memory.read_device()?;
        memory.read_host()
    };
    runner.try_cases(Case::corner_cases(), test)?;
    runner.try_random(Case::any(), test)
}

impl ModelledMemory {
    fn new(device: &AnyDevice, size: usize) -> Self {
        let memory = SyncedMemory::new(device, size);
        Self { memory, want: vec![0; size], host_valid: false, device_valid: false }
    }

    fn access(&mut self, access: Access, seed: u64) -> Verdict {
        let size = self.want.len();
        let range = match access {
            ReadHost | ReadDevice | Prefetch => 0..0,
            OverwriteHost | OverwriteDevice | Adopt => 0..size,
            _ => size / 3..size - size / 4,
        };
        let (start, bytes) = (range.start, byte_pattern(seed, range.len()));
        self.want[range.clone()].copy_from_slice(&bytes);
        let device = self.memory.device_handle().clone();
        match access {
            ReadHost => return self.read_host(),
            ReadDevice => return self.read_device(),
            Prefetch => {
                self.memory.prefetch(&device.fork_queue()?)?;
                self.device_valid |= device.host_mapping().is_none();
                return Ok(());
            }
            WriteHost => self.memory.host_mut()?[range].copy_from_slice(&bytes),
            OverwriteHost => self.memory.host_write_only()?.copy_from_slice(&bytes),
            OverwritePartOnHost => {
                let mut view = ViewMut::new(&mut self.memory, size)?.slice(range)?;
                view.host_write_only()?.copy_from_slice(&bytes);
            }
            Adopt => self.memory.adopt(HostBytes::adopt(bytes))?,
            WriteDevice => device.upload(&bytes, self.memory.device_mut()?, start)?,
            OverwriteDevice => device.upload(&bytes, self.memory.device_write_only()?, 0)?,
            OverwritePartOnDevice => {
                let mut view =
                    ViewMut::<u8, AnyDevice>::new(&mut self.memory, size)?.slice(range)?;
                let slice = view.device_write_only()?;
                device.upload(&bytes, slice.buffer, slice.offset)?;
            }
        }
        let on_device = matches!(access, WriteDevice | OverwriteDevice | OverwritePartOnDevice);
        (self.host_valid, self.device_valid) = (!on_device, on_device);
        Ok(())
    }

    fn read_host(&mut self) -> Verdict {
        self.host_valid = true;
        expect_bits("byte on the host", self.memory.host()?, &self.want)?;
        let part = self.want.len() / 2..self.want.len();
        let view =
            View::<u8, AnyDevice>::new(&self.memory, self.want.len())?.slice(part.clone())?;
        expect_bits("byte of a view, read on the host", view.host()?, &self.want[part])
    }

    fn read_device(&mut self) -> Verdict {
        self.device_valid = true;
        let mut got = vec![0xee; self.want.len()];
        self.memory.device_handle().download(self.memory.device()?, 0, &mut got)?;
        expect_bits("byte on the device", &got, &self.want)
    }

    fn expect_head(&self) -> Verdict {
        let want = match (self.host_valid, self.device_valid) {
            (false, false) => Head::Uninitialized,
            (true, false) => Head::HeadAtHost,
            (false, true) => Head::HeadAtDevice,
            (true, true) => Head::Synced,
        };
        match self.memory.head() {
            head if head == want => Ok(()),
            head => Err(flaw!("`Head` is {head:?}, not {want:?}")),
        }
    }
}

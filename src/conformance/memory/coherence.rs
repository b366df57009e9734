//! [`SyncedMemory`]: any sequence of accesses, on one side and the other, against a plain vector
//! and the set of sides that are current.

use super::pattern;
use crate::{
    conformance::{
        runner::CheckRunner,
        compare::same,
        failure::{CaseFailure, Verdict, flaw},
    },
    device::Device,
    memory::{Head, HostBytes, Memory, SyncedMemory, View, ViewMut},
};
use proptest::prelude::*;
use std::ops::Range;

/// An access; a write leaves its own bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    ReadHost,
    ReadDevice,
    /// Some bytes of what is there.
    WriteHost,
    WriteDevice,
    /// All bytes, without fetching.
    OverwriteHost,
    OverwriteDevice,
    /// All bytes of a view of a part: the rest is fetched.
    OverwritePartOnHost,
    OverwritePartOnDevice,
    Adopt,
    /// Through another queue.
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
    /// Every access after every pair of others: every transition, with and without old copies.
    fn corners() -> impl Iterator<Item = Self> {
        let after = |first, then| ACCESSES.map(|last| vec![first, then, last, ReadHost]);
        let all = ACCESSES.iter().flat_map(move |&a| ACCESSES.map(|b| after(a, b)).concat());
        let some = all.map(|accesses| Self { size: 37, accesses });
        let alone = [0, 1, 4099].into_iter().flat_map(|size| {
            ACCESSES.map(|access| Self { size, accesses: vec![access, ReadDevice, ReadHost] })
        });
        some.chain(alone)
    }

    fn any() -> BoxedStrategy<Self> {
        let accesses = prop::collection::vec(prop::sample::select(&ACCESSES[..]), 0..24);
        let size = prop_oneof![0..9usize, 0..3000usize];
        (size, accesses).prop_map(|(size, accesses)| Self { size, accesses }).boxed()
    }
}

/// Memory on trial beside what it has to hold.
struct Twin<D: Memory> {
    memory: SyncedMemory<D>,
    want: Vec<u8>,
    host: bool,
    device: bool,
}

pub(super) fn coherence<D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let test = |case: &Case| {
        let mut twin = Twin::new(bench.device, case.size);
        twin.heads()?;
        for (i, &access) in case.accesses.iter().enumerate() {
            let step = |CaseFailure(why)| flaw!("access {i} ({access:?}): {why}");
            twin.access(access, i as u64 + 1).map_err(step)?;
            twin.heads().map_err(step)?;
        }
        twin.read_device()?;
        twin.read_host()
    };
    bench.all(Case::corners(), test)?;
    bench.each(Case::any(), test)
}

impl<D: Memory> Twin<D> {
    fn new(device: &D, size: usize) -> Self {
        let memory = SyncedMemory::new(device, size);
        Self { memory, want: vec![0; size], host: false, device: false }
    }

    fn access(&mut self, access: Access, seed: u64) -> Verdict {
        let size = self.want.len();
        let (all, part) = (0..size, size / 3..size - size / 4);
        match access {
            ReadHost => self.read_host(),
            ReadDevice => self.read_device(),
            WriteHost => {
                let bytes = self.renew(part.clone(), seed);
                self.memory.host_mut()?[part].copy_from_slice(&bytes);
                self.wrote_host()
            }
            OverwriteHost => {
                let bytes = self.renew(all, seed);
                self.memory.host_write_only()?.copy_from_slice(&bytes);
                self.wrote_host()
            }
            OverwritePartOnHost => {
                let bytes = self.renew(part.clone(), seed);
                let mut view = ViewMut::new(&mut self.memory, size)?.slice(part)?;
                view.host_write_only()?.copy_from_slice(&bytes);
                self.wrote_host()
            }
            Adopt => {
                let bytes = self.renew(all, seed);
                self.memory.adopt(HostBytes::adopt(bytes))?;
                self.wrote_host()
            }
            WriteDevice => {
                let bytes = self.renew(part.clone(), seed);
                let device = self.memory.device_handle().clone();
                device.upload(&bytes, self.memory.device_mut()?, part.start)?;
                self.wrote_device()
            }
            OverwriteDevice => {
                let bytes = self.renew(all, seed);
                let device = self.memory.device_handle().clone();
                device.upload(&bytes, self.memory.device_write_only()?, 0)?;
                self.wrote_device()
            }
            OverwritePartOnDevice => {
                let bytes = self.renew(part.clone(), seed);
                let device = self.memory.device_handle().clone();
                let mut view = ViewMut::<u8, D>::new(&mut self.memory, size)?.slice(part)?;
                let slice = view.device_write_only()?;
                device.upload(&bytes, slice.buffer, slice.offset)?;
                self.wrote_device()
            }
            Prefetch => {
                let device = self.memory.device_handle();
                self.memory.prefetch(&device.fork_queue()?)?;
                self.device |= device.host_mapping().is_none();
                Ok(())
            }
        }
    }

    /// New bytes for a range.
    fn renew(&mut self, range: Range<usize>, seed: u64) -> Vec<u8> {
        let bytes = pattern(seed, range.len());
        self.want[range].copy_from_slice(&bytes);
        bytes
    }

    fn wrote_host(&mut self) -> Verdict {
        (self.host, self.device) = (true, false);
        Ok(())
    }

    fn wrote_device(&mut self) -> Verdict {
        (self.host, self.device) = (false, true);
        Ok(())
    }

    fn read_host(&mut self) -> Verdict {
        self.host = true;
        same("byte on the host", self.memory.host()?, &self.want)?;
        let part = self.want.len() / 2..self.want.len();
        let view = View::<u8, D>::new(&self.memory, self.want.len())?.slice(part.clone())?;
        same("byte of a view", view.host()?, &self.want[part])
    }

    fn read_device(&mut self) -> Verdict {
        self.device = true;
        let mut got = vec![0xee; self.want.len()];
        self.memory.device_handle().download(self.memory.device()?, 0, &mut got)?;
        same("byte on the device", &got, &self.want)
    }

    fn heads(&self) -> Verdict {
        let want = match (self.host, self.device) {
            (false, false) => Head::Uninitialized,
            (true, false) => Head::HeadAtHost,
            (false, true) => Head::HeadAtDevice,
            (true, true) => Head::Synced,
        };
        match self.memory.head() {
            head if head == want => Ok(()),
            head => Err(flaw!("the head is {head:?}, not {want:?}")),
        }
    }
}

//! Transfers by size: times of copies between host and device, and of accesses to memory that host
//! and device share.

use super::{Bench, Work, survey::device_label};
use crate::{
    device::{AnyDevice, Device},
    error::Result,
    memory::{HostBytes, Memory},
};
use std::hint::black_box;

/// Names of the two directions, which the records of transfers have instead of the name of a
/// kernel.
pub(super) const DIRECTIONS: [&str; 2] = ["host_to_device", "device_to_host"];

/// Sizes of the transfers in bytes.
const SIZES: [usize; 5] = [1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26];

impl Bench {
    /// Times transfers of 4 KiB to 64 MiB in both directions, if the filters select them:
    ///
    /// - copies from and to pageable host memory;
    /// - copies from and to host memory that the device allocates itself, if it overrides
    ///   [`Memory::alloc_host`], as a GPU does to allocate pinned memory;
    /// - instead of both, accesses through [`Memory::host_mapping`] if host and device share memory.
    ///   Such an access copies nothing.
    ///
    /// A test run (`--test`, or `cargo test`) transfers only 4 KiB.
    ///
    /// # Errors
    /// Returns an error if an allocation or a transfer fails.
    pub fn transfers(&mut self, device: &impl Device) -> Result<()> {
        let device = &AnyDevice::new(device);
        let sizes = if self.is_test() { &SIZES[..1] } else { &SIZES[..] };
        for &bytes in sizes {
            if device.host_mapping().is_some() {
                self.maps(device, bytes)?;
                continue;
            }
            self.copies(device, "pageable memory", HostBytes::zeroed(bytes)?)?;
            let own = device.alloc_host(bytes)?;
            if own.is_adopted() {
                self.copies(device, "memory of the device's allocator", own)?;
            }
        }
        Ok(())
    }

    fn copies(&mut self, device: &AnyDevice, memory: &str, mut host: HostBytes) -> Result<()> {
        let name = format!("{}, copy, {memory}", device_label(device));
        let size = host.len().to_string();
        let work = Work { bytes: host.len() as u64, flops: 0 };
        let mut buffer = device.alloc(host.len())?;
        self.time([DIRECTIONS[0], "", &name, &size], work, || {
            device.upload(&host, &mut buffer, 0)?;
            device.synchronize()
        })?;
        self.time([DIRECTIONS[1], "", &name, &size], work, || {
            device.download(&buffer, 0, &mut host)?;
            device.synchronize()
        })
    }

    fn maps(&mut self, device: &AnyDevice, bytes: usize) -> Result<()> {
        let Some(mapping) = device.host_mapping() else { return Ok(()) };
        let (name, size) = (format!("{}, map", device_label(device)), bytes.to_string());
        let work = Work { bytes: 0, flops: 0 };
        let mut buffer = device.alloc(bytes)?;
        self.time([DIRECTIONS[0], "", &name, &size], work, || {
            mapping.map_mut(&mut buffer).map(|bytes| {
                black_box(bytes);
            })
        })?;
        self.time([DIRECTIONS[1], "", &name, &size], work, || {
            mapping.map(&buffer).map(|bytes| {
                black_box(bytes);
            })
        })
    }
}

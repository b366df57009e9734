//! Caffe's `SyncedMemory`: lazily allocated, lazily copied.

use super::{
    HostBytes, Mapping, Memory, StaleAllocation,
    ledger::{EventKind, record_transfer},
};
use crate::{
    error::{Error, Result, check_len},
    sync::{AtomicU8, Mutex, OnceLock, Relaxed},
};
use std::fmt;

/// Which sides hold the current value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "SyncedHead")]
pub enum Head {
    /// Neither: reads as zero.
    #[doc(alias = "UNINITIALIZED")]
    Uninitialized,
    /// The host alone.
    #[doc(alias = "HEAD_AT_CPU")]
    HeadAtHost,
    /// The device alone.
    #[doc(alias = "HEAD_AT_GPU")]
    HeadAtDevice,
    /// Both.
    #[doc(alias = "SYNCED")]
    Synced,
}

/// Set of sides that hold the current value. Reading a side adds it; writing a side leaves it
/// alone in the set. That is the whole protocol.
struct Current(AtomicU8);

const HOST: u8 = 1;
const DEVICE: u8 = 2;

impl Current {
    fn read(&self, side: u8) {
        self.0.fetch_or(side, Relaxed);
    }
    fn write(&mut self, side: u8) {
        self.0 = AtomicU8::new(side);
    }
    fn head(&self) -> Head {
        match self.0.load(Relaxed) {
            0 => Head::Uninitialized,
            HOST => Head::HeadAtHost,
            DEVICE => Head::HeadAtDevice,
            _ => Head::Synced,
        }
    }
}

/// A run of bytes kept coherent between the host and device `D`.
///
/// Nothing is allocated and nothing copied until a side is asked for. Memory that nobody wrote
/// reads as zero. Shared access (`&self`) may copy but never makes a side stale; exclusive access
/// (`&mut self`) leaves one side current. Where the device shares the host's memory
/// ([`Memory::host_mapping`]) there is one allocation and never a copy.
///
/// When an operation fails, the value is what it was before. An operation that has succeeded may
/// leave work queued on the device, a copy included. If that fails later, the next call that waits
/// returns its error; what it was to write on the device is lost there, and this memory is not
/// told: write it anew.
pub struct SyncedMemory<D: Memory> {
    device: D,
    bytes: usize,
    current: Current,
    /// Filled just while current. Unused on mapped devices.
    host: OnceLock<HostBytes>,
    /// Filled just while current; on mapped devices, once allocated.
    dev: OnceLock<D::Buffer>,
    /// Stale allocations, kept for reuse. Its lock also serializes filling the cells.
    spare: Mutex<Spare<D::Buffer>>,
}

struct Spare<B> {
    host: Option<HostBytes>,
    dev: Option<B>,
}

impl<D: Memory> SyncedMemory<D> {
    /// Describes `bytes` bytes; allocates nothing.
    pub fn new(device: &D, bytes: usize) -> Self {
        Self {
            device: device.clone(),
            bytes,
            current: Current(AtomicU8::new(0)),
            host: OnceLock::new(),
            dev: OnceLock::new(),
            spare: Mutex::new(Spare { host: None, dev: None }),
        }
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Bytes allocated at present, on both sides together, stale allocations that are kept for
    /// reuse included.
    pub fn allocated_bytes(&self) -> usize {
        let spare = self.spare.lock();
        let cells = [self.host.get().is_some(), self.dev.get().is_some()];
        let kept = [spare.host.is_some(), spare.dev.is_some()];
        self.bytes * cells.iter().chain(&kept).filter(|&&there| there).count()
    }

    /// The device this memory is paired with.
    pub fn device_handle(&self) -> &D {
        &self.device
    }

    /// Which sides hold the current value.
    pub fn head(&self) -> Head {
        self.current.head()
    }

    /// The bytes on the host, copied from the device if only it is current.
    ///
    /// # Errors
    /// Those of the device; [`Error::OutOfMemory`].
    #[doc(alias = "cpu_data")]
    #[track_caller]
    pub fn host(&self) -> Result<&[u8]> {
        let bytes: &[u8] = match self.device.host_mapping() {
            Some(mapping) => mapping.map(self.fill_dev()?)?,
            None => self.fill_host()?,
        };
        self.current.read(HOST);
        Ok(bytes)
    }

    /// The bytes on the host, writable; the device's become stale.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    #[doc(alias = "mutable_cpu_data")]
    #[track_caller]
    pub fn host_mut(&mut self) -> Result<&mut [u8]> {
        if self.device.host_mapping().is_none() {
            self.fill_host()?;
        }
        self.host_write_only()
    }

    /// As [`host_mut`](Self::host_mut), but nothing is fetched: for writers that overwrite
    /// everything. The bytes are initialized, their values unspecified.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    #[track_caller]
    pub fn host_write_only(&mut self) -> Result<&mut [u8]> {
        if self.device.host_mapping().is_some() {
            self.fill_dev()?;
            self.current.write(HOST);
            let buffer = filled(self.dev.get_mut())?;
            return mapped(&self.device)?.map_mut(buffer);
        }
        if self.host.get().is_none() {
            let bytes = self.recycled_host()?;
            let _ = self.host.set(bytes);
        }
        self.retire_dev();
        self.current.write(HOST);
        Ok(filled(self.host.get_mut())?)
    }

    /// Lets `write` overwrite all bytes on the host; the device's become stale. Nothing is
    /// fetched. If `write` fails or panics before it writes anything, or if the device is current,
    /// the value is what it was before.
    ///
    /// # Errors
    /// As [`host`](Self::host), and what `write` returns.
    pub fn host_overwrite<R>(&mut self, write: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
        if self.device.host_mapping().is_some() {
            let done = write(self.mapped_host()?)?;
            self.current.write(HOST);
            return Ok(done);
        }
        if self.head() == Head::HeadAtHost {
            return write(filled(self.host.get_mut())?);
        }
        let mut bytes = self.take_host()?;
        let done = write(&mut bytes);
        self.put_host(bytes, done.is_ok());
        done
    }

    /// The device's memory as the host sees it, on a device that maps it.
    fn mapped_host(&mut self) -> Result<&mut [u8]> {
        self.fill_dev()?;
        mapped(&self.device)?.map_mut(filled(self.dev.get_mut())?)
    }

    /// The host's allocation, of any content; not where it has the only value.
    fn take_host(&mut self) -> Result<HostBytes> {
        self.host.take().map_or_else(|| self.recycled_host(), Ok)
    }

    /// Puts back what [`take_host`](Self::take_host) took, overwritten or not.
    fn put_host(&mut self, mut bytes: HostBytes, written: bool) {
        if written {
            let _ = self.host.set(bytes);
            self.retire_dev();
            self.current.write(HOST);
        } else if self.dev.get().is_some() {
            self.device.on_stale(StaleAllocation::Host(&mut bytes));
            self.spare.get_mut().host = Some(bytes);
            self.current.write(DEVICE);
        } // else nothing was written yet, and it reads as zero still
    }

    /// The bytes on the device, copied from the host if only it is current.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    #[doc(alias = "gpu_data")]
    #[track_caller]
    pub fn device(&self) -> Result<&D::Buffer> {
        let buffer = self.fill_dev()?;
        self.current.read(DEVICE);
        Ok(buffer)
    }

    /// The bytes on the device, writable; the host's become stale.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    #[doc(alias = "mutable_gpu_data")]
    #[track_caller]
    pub fn device_mut(&mut self) -> Result<&mut D::Buffer> {
        self.fill_dev()?;
        self.device_write_only()
    }

    /// As [`device_mut`](Self::device_mut), but nothing is fetched: for kernels that overwrite
    /// everything. The bytes are initialized, their values unspecified.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    pub fn device_write_only(&mut self) -> Result<&mut D::Buffer> {
        if self.dev.get().is_none() {
            let buffer = match self.spare.get_mut().dev.take() {
                Some(buffer) => buffer,
                None => {
                    let mut buffer = self.device.alloc(self.bytes)?;
                    self.device.on_stale(StaleAllocation::Device(&mut buffer));
                    buffer
                }
            };
            let _ = self.dev.set(buffer);
        }
        if let Some(mut stale) = self.host.take() {
            self.device.on_stale(StaleAllocation::Host(&mut stale));
            self.spare.get_mut().host = Some(stale);
        }
        self.current.write(DEVICE);
        filled(self.dev.get_mut())
    }

    /// Makes the device's side current through `queue`, a fork of this memory's device, and
    /// waits for it: for threads that load data, so that the device's own queue never waits.
    /// Ordered after all work queued on the device so far, which may still use the allocation
    /// that is reused here.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    #[doc(alias = "async_gpu_push")]
    #[track_caller]
    pub fn prefetch(&self, queue: &D) -> Result<()> {
        if self.device.host_mapping().is_none() {
            queue.order_after(&self.device)?;
            self.fill_dev_on(queue, D::synchronize)?;
            self.current.read(DEVICE);
        }
        Ok(())
    }

    /// Replaces the value by host bytes that the caller owned, without copying them if the
    /// device's memory is discrete or can adopt them. They are freed with this memory.
    ///
    /// # Errors
    /// [`Error::Length`] unless `bytes` has this memory's size.
    #[doc(alias = "set_cpu_data")]
    #[track_caller]
    pub fn adopt(&mut self, bytes: HostBytes) -> Result<()> {
        check_len("adopt", "bytes", self.bytes, bytes.len())?;
        let Some(mapping) = self.device.host_mapping() else {
            self.retire_dev();
            self.host = OnceLock::from(bytes);
            self.current.write(HOST);
            return Ok(());
        };
        match mapping.adopt(bytes) {
            Ok(buffer) => {
                self.dev = OnceLock::from(buffer);
                self.current.write(HOST);
            }
            Err(bytes) => self.host_write_only()?.copy_from_slice(&bytes),
        }
        Ok(())
    }

    /// An allocation for the host's side, of any content.
    fn recycled_host(&mut self) -> Result<HostBytes> {
        if let Some(bytes) = self.spare.get_mut().host.take() {
            return Ok(bytes);
        }
        let mut bytes = self.device.alloc_host(self.bytes)?;
        self.device.on_stale(StaleAllocation::Host(&mut bytes));
        Ok(bytes)
    }

    /// Keeps the device's allocation, whose content is stale, for reuse.
    fn retire_dev(&mut self) {
        if let Some(mut stale) = self.dev.take() {
            self.device.on_stale(StaleAllocation::Device(&mut stale));
            self.spare.get_mut().dev = Some(stale);
        }
    }

    #[track_caller]
    fn fill_host(&self) -> Result<&HostBytes> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let mut spare = self.spare.lock();
        if let Some(host) = self.host.get() {
            return Ok(host); // another reader filled it while we waited
        }
        let mut bytes = match spare.host.take() {
            Some(bytes) => bytes,
            None => self.device.alloc_host(self.bytes)?,
        };
        if let Some(dev) = self.dev.get()
            && let Err(error) =
                record_transfer(&self.device, EventKind::Download, self.bytes, || {
                    self.device.download(dev, 0, &mut bytes)
                })
        {
            spare.host = Some(bytes);
            return Err(error);
        }
        Ok(self.host.get_or_init(|| bytes))
    }

    #[track_caller]
    fn fill_dev(&self) -> Result<&D::Buffer> {
        self.fill_dev_on(&self.device, |_| Ok(()))
    }

    /// Fills the device's cell through `queue`, which `settle`s before it is published.
    #[track_caller]
    fn fill_dev_on(&self, queue: &D, settle: fn(&D) -> Result<()>) -> Result<&D::Buffer> {
        if let Some(dev) = self.dev.get() {
            return Ok(dev);
        }
        let mut spare = self.spare.lock();
        if let Some(dev) = self.dev.get() {
            return Ok(dev);
        }
        let mut buffer = match spare.dev.take() {
            Some(buffer) => buffer,
            None => queue.alloc(self.bytes)?,
        };
        let uploaded = match self.host.get() {
            Some(host) => record_transfer(queue, EventKind::Upload, self.bytes, || {
                queue.upload(host, &mut buffer, 0)
            }),
            None => Ok(()),
        };
        if let Err(error) = uploaded.and_then(|()| settle(queue)) {
            spare.dev = Some(buffer);
            return Err(error);
        }
        Ok(self.dev.get_or_init(|| buffer))
    }
}

impl<D: Memory> fmt::Debug for SyncedMemory<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncedMemory")
            .field("device", &self.device.name())
            .field("bytes", &self.bytes)
            .field("head", &self.head())
            .finish()
    }
}

/// The content of a cell that was filled a moment ago under `&mut self`.
fn filled<T>(cell: Option<&mut T>) -> Result<&mut T> {
    cell.ok_or_else(|| Error::InvalidData("memory was not filled".into()))
}

fn mapped<D: Memory>(device: &D) -> Result<&dyn Mapping<D::Buffer>> {
    let changed = || Error::device(device.name(), "mapping() changed its answer");
    device.host_mapping().ok_or_else(changed)
}

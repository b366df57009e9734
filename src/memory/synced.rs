//! Caffe's `SyncedMemory`: allocates and copies on first access.

use super::{
    host_bytes::HostBytes,
    ledger::{EventKind, record_transfer},
    memory_trait::{Mapping, Memory, StaleAllocation},
};
use crate::{
    error::{Error, Result, check_len},
    sync::{AtomicU8, Mutex, OnceLock, Relaxed},
};
use std::fmt;

/// The valid sides of a [`SyncedMemory`]: the sides that hold the current value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "SyncedHead")]
pub enum Head {
    /// Neither side; the memory reads as zero.
    #[doc(alias = "UNINITIALIZED")]
    Uninitialized,
    /// Only the host side.
    #[doc(alias = "HEAD_AT_CPU")]
    HeadAtHost,
    /// Only the device side.
    #[doc(alias = "HEAD_AT_GPU")]
    HeadAtDevice,
    /// Both sides.
    #[doc(alias = "SYNCED")]
    Synced,
}

/// The set of valid sides. Reading a side adds it to the set; writing a side removes the other.
struct ValidSides(AtomicU8);

const HOST: u8 = 1;
const DEVICE: u8 = 2;

impl ValidSides {
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

/// Bytes that are kept coherent between the host and device `D`.
///
/// The first access to a side allocates it and copies the value there if needed. Unwritten memory
/// reads as zero. Shared access (`&self`) may copy but never makes a side stale; exclusive access
/// (`&mut self`) leaves one valid side. In unified memory ([`Memory::host_mapping`]), there is one
/// allocation and never a copy.
///
/// If an operation fails, the value is unchanged. A successful operation may leave work, such as a
/// copy, queued on the device. If that work fails later, the next call that waits returns its error.
/// The bytes that it should have written on the device are then lost, although this memory counts
/// them as valid; the caller must write them again.
pub struct SyncedMemory<D: Memory> {
    device: D,
    bytes: usize,
    valid: ValidSides,
    /// Filled exactly while the host side is valid. Unused with unified memory.
    host: OnceLock<HostBytes>,
    /// Filled exactly while the device side is valid; with unified memory, once allocated.
    dev: OnceLock<D::Buffer>,
    /// Stale allocations, kept for reuse. Its lock also serializes the filling of `host` and `dev`.
    spare: Mutex<SpareAllocations<D::Buffer>>,
}

struct SpareAllocations<B> {
    host: Option<HostBytes>,
    dev: Option<B>,
}

impl<D: Memory> SyncedMemory<D> {
    /// Creates a `SyncedMemory` of `bytes` bytes without allocating it.
    pub fn new(device: &D, bytes: usize) -> Self {
        Self {
            device: device.clone(),
            bytes,
            valid: ValidSides(AtomicU8::new(0)),
            host: OnceLock::new(),
            dev: OnceLock::new(),
            spare: Mutex::new(SpareAllocations { host: None, dev: None }),
        }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes that are allocated on both sides, including stale allocations kept for
    /// reuse.
    pub fn allocated_bytes(&self) -> usize {
        let spare = self.spare.lock();
        let host = [self.host.get().is_some(), spare.host.is_some()];
        let device = [self.dev.get().is_some(), spare.dev.is_some()];
        self.bytes * [host, device].concat().into_iter().map(usize::from).sum::<usize>()
    }

    /// Returns the device of this memory.
    pub fn device_handle(&self) -> &D {
        &self.device
    }

    /// Returns which sides, host or device, hold the current value.
    pub fn head(&self) -> Head {
        self.valid.head()
    }

    /// Returns the bytes on the host; copies them from the device if the host is stale.
    ///
    /// # Errors
    /// Errors of the device; [`Error::OutOfMemory`].
    #[doc(alias = "cpu_data")]
    #[track_caller]
    pub fn host(&self) -> Result<&[u8]> {
        let bytes: &[u8] = match self.device.host_mapping() {
            Some(mapping) => mapping.map(self.fill_dev()?)?,
            None => self.fill_host()?,
        };
        self.valid.read(HOST);
        Ok(bytes)
    }

    /// Returns the bytes on the host, writable; the device becomes stale.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[doc(alias = "mutable_cpu_data")]
    #[track_caller]
    pub fn host_mut(&mut self) -> Result<&mut [u8]> {
        if self.device.host_mapping().is_none() {
            self.fill_host()?;
        }
        self.host_write_only()
    }

    /// Like [`host_mut`](Self::host_mut), but copies nothing, for writers that overwrite
    /// everything. The bytes are initialized, but their values are unspecified.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[track_caller]
    pub fn host_write_only(&mut self) -> Result<&mut [u8]> {
        if self.device.host_mapping().is_some() {
            self.fill_dev()?;
            self.valid.write(HOST);
            let buffer = filled(self.dev.get_mut())?;
            return mapped(&self.device)?.map_mut(buffer);
        }
        if self.host.get().is_none() {
            let bytes = self.recycled_host()?;
            let _ = self.host.set(bytes);
        }
        self.retire_dev();
        self.valid.write(HOST);
        Ok(filled(self.host.get_mut())?)
    }

    /// Calls `write` to overwrite all bytes on the host, without copying them first; the device
    /// becomes stale. If `write` fails or panics, the value is unchanged, unless `write` has
    /// written bytes and either only the host was valid or memory is unified.
    ///
    /// # Errors
    /// Like [`host`](Self::host); errors of `write`.
    pub fn host_overwrite<R>(&mut self, write: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
        if self.device.host_mapping().is_some() {
            let result = write(self.mapped_host()?)?;
            self.valid.write(HOST);
            return Ok(result);
        }
        if self.head() == Head::HeadAtHost {
            return write(filled(self.host.get_mut())?);
        }
        let mut bytes = self.take_host()?;
        let result = write(&mut bytes);
        self.put_host(bytes, result.is_ok());
        result
    }

    /// Returns the bytes of unified memory.
    fn mapped_host(&mut self) -> Result<&mut [u8]> {
        self.fill_dev()?;
        mapped(&self.device)?.map_mut(filled(self.dev.get_mut())?)
    }

    /// Removes and returns the host's allocation, with unspecified contents. The caller has checked
    /// that the host is not the only valid side.
    fn take_host(&mut self) -> Result<HostBytes> {
        self.host.take().map_or_else(|| self.recycled_host(), Ok)
    }

    /// Puts back the allocation from [`take_host`](Self::take_host), which may be `written`.
    fn put_host(&mut self, bytes: HostBytes, written: bool) {
        if written {
            let _ = self.host.set(bytes);
            self.retire_dev();
            self.valid.write(HOST);
        } else if self.dev.get().is_some() {
            self.retire_host(bytes);
            self.valid.write(DEVICE);
        } // Otherwise neither side was valid, and the memory still reads as zero.
    }

    /// Returns the bytes on the device; copies them from the host if the device is stale.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[doc(alias = "gpu_data")]
    #[track_caller]
    pub fn device(&self) -> Result<&D::Buffer> {
        let buffer = self.fill_dev()?;
        self.valid.read(DEVICE);
        Ok(buffer)
    }

    /// Returns the bytes on the device, writable; the host becomes stale.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[doc(alias = "mutable_gpu_data")]
    #[track_caller]
    pub fn device_mut(&mut self) -> Result<&mut D::Buffer> {
        self.fill_dev()?;
        self.device_write_only()
    }

    /// Like [`device_mut`](Self::device_mut), but copies nothing, for kernels that overwrite
    /// everything. The bytes are initialized, but their values are unspecified.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
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
        if let Some(stale) = self.host.take() {
            self.retire_host(stale);
        }
        self.valid.write(DEVICE);
        filled(self.dev.get_mut())
    }

    /// Makes the device valid through `queue`, a fork of this memory's device, and waits for the
    /// copy. Data-loading threads call this, so that the device's own queue never waits. The copy
    /// starts after all work queued on the device so far, which may still use a reused allocation.
    ///
    /// # Errors
    /// Like [`host`](Self::host).
    #[doc(alias = "async_gpu_push")]
    #[track_caller]
    pub fn prefetch(&self, queue: &D) -> Result<()> {
        if self.device.host_mapping().is_none() {
            queue.order_after(&self.device)?;
            self.fill_dev_on(queue, D::synchronize)?;
            self.valid.read(DEVICE);
        }
        Ok(())
    }

    /// Replaces the value with `bytes`, which this memory then owns. Copies them only if the device
    /// has unified memory and cannot adopt them.
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
            self.valid.write(HOST);
            return Ok(());
        };
        match mapping.adopt(bytes) {
            Ok(buffer) => {
                self.dev = OnceLock::from(buffer);
                self.valid.write(HOST);
            }
            Err(bytes) => self.host_write_only()?.copy_from_slice(&bytes),
        }
        Ok(())
    }

    /// Returns an allocation for the host, with unspecified contents.
    fn recycled_host(&mut self) -> Result<HostBytes> {
        if let Some(bytes) = self.spare.get_mut().host.take() {
            return Ok(bytes);
        }
        let mut bytes = self.device.alloc_host(self.bytes)?;
        self.device.on_stale(StaleAllocation::Host(&mut bytes));
        Ok(bytes)
    }

    /// Keeps a stale allocation of the host for reuse.
    fn retire_host(&mut self, mut stale: HostBytes) {
        self.device.on_stale(StaleAllocation::Host(&mut stale));
        self.spare.get_mut().host = Some(stale);
    }

    /// Keeps the stale allocation of the device, if any, for reuse.
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
            return Ok(host); // Another reader filled it before this one got the lock.
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

    /// Fills `dev` through `queue`, and calls `settle` before other threads can see the buffer.
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

/// Returns the contents of a cell that the caller has just filled under `&mut self`.
fn filled<T>(cell: Option<&mut T>) -> Result<&mut T> {
    cell.ok_or_else(|| Error::InvalidData("memory is not allocated".into()))
}

fn mapped<D: Memory>(device: &D) -> Result<&dyn Mapping<D::Buffer>> {
    let changed = || Error::device(device.name(), "host_mapping() changed between calls");
    device.host_mapping().ok_or_else(changed)
}

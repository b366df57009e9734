//! Bytes that are kept coherent between a host side and a device side, each allocated and copied on
//! first access.

use super::{
    erased::{AnyBuffer, ErasedMemory, foreign_buffer_error},
    host_bytes::HostBytes,
    ledger::{
        EventKind,
        context::transfer_event,
        diagnosis::history::{Access, Side},
        memory_notes::{MemoryNotes, copy_start},
    },
    memory_trait::StaleAllocation,
};
use crate::{
    error::{Error, Result, check_len},
    sync::{AtomicU8, Mutex, OnceLock, Relaxed},
};
use std::{fmt, mem, ops::Range, sync::Arc};

/// Which sides of a [`SyncedMemory`](super::SyncedMemory), host or device, are valid, that is, hold
/// the current value.
///
/// ```
/// use cortado::{Head, SimulatedDevice, SyncedMemory};
///
/// let mut memory = SyncedMemory::new(&SimulatedDevice::new(), 4);
/// assert_eq!(memory.head(), Head::Uninitialized);
/// memory.host_mut()?.fill(1);
/// assert_eq!(memory.head(), Head::HeadAtHost);
/// memory.device()?;
/// assert_eq!(memory.head(), Head::Synced);
/// memory.device_mut()?;
/// assert_eq!(memory.head(), Head::HeadAtDevice);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "SyncedHead")]
pub enum Head {
    /// Neither the host nor the device side is valid; the memory reads as zero.
    #[doc(alias = "UNINITIALIZED")]
    Uninitialized,
    /// Only the host side holds the current value.
    #[doc(alias = "HEAD_AT_CPU")]
    HeadAtHost,
    /// Only the device side holds the current value.
    #[doc(alias = "HEAD_AT_GPU")]
    HeadAtDevice,
    /// Both the host side and the device side hold the current value.
    #[doc(alias = "SYNCED")]
    Synced,
}

/// The set of valid sides of a memory. Reading a side adds that side to the set; writing a side
/// leaves only that side in the set.
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

/// The bytes of a [`SyncedMemory`](super::SyncedMemory). Methods without documentation behave like
/// the methods with the same names in `SyncedMemory`. `CoherentBytes` is not generic over the
/// device, so the code for coherence is compiled only once.
pub(crate) struct CoherentBytes {
    device: Arc<dyn ErasedMemory>,
    bytes: usize,
    valid_sides: ValidSides,
    /// Allocation of the host side, present if and only if the host side is valid; unused with
    /// unified memory.
    host: OnceLock<HostBytes>,
    /// Allocation of the device side, present if and only if the device side is valid; with unified
    /// memory, present from the first access on.
    dev: OnceLock<AnyBuffer>,
    /// Stale allocations, kept for reuse. Only a thread that holds the lock of `spares` may set
    /// `host` or `dev`.
    spares: Mutex<SpareAllocations>,
    notes: MemoryNotes,
}

struct SpareAllocations {
    host: Option<HostBytes>,
    dev: Option<AnyBuffer>,
    /// Whether `dev` is a new allocation, which still holds zeros.
    dev_is_new: bool,
}

impl CoherentBytes {
    pub(super) fn new(device: Arc<dyn ErasedMemory>, bytes: usize) -> Self {
        Self {
            device,
            bytes,
            valid_sides: ValidSides(AtomicU8::new(0)),
            host: OnceLock::new(),
            dev: OnceLock::new(),
            spares: Mutex::new(SpareAllocations { host: None, dev: None, dev_is_new: false }),
            notes: MemoryNotes::new(),
        }
    }

    pub(super) fn set_name(&self, name: Arc<str>) {
        self.notes.set_name(name);
    }

    pub(super) fn name(&self) -> Option<Arc<str>> {
        self.notes.name()
    }

    /// Records an access for open diagnoses.
    ///
    /// # Errors
    /// Returns [`Error::Denied`] if a policy denies the access as needless.
    #[inline]
    #[track_caller]
    fn record_access(&self, side: Side, access: Access) -> Result<()> {
        self.notes.access((&*self.device, self.bytes), side, access)
    }

    pub(super) fn size(&self) -> usize {
        self.bytes
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        let spares = self.spares.lock();
        let host = [self.host.get().is_some(), spares.host.is_some()];
        let device = [self.dev.get().is_some(), spares.dev.is_some()];
        self.bytes * [host, device].concat().into_iter().map(usize::from).sum::<usize>()
    }

    pub(super) fn head(&self) -> Head {
        self.valid_sides.head()
    }

    #[track_caller]
    pub(super) fn host(&self) -> Result<&[u8]> {
        let bytes: &[u8] = match self.device.is_unified() {
            true => self.device.map(self.fill_dev()?)?,
            false => self.fill_host()?,
        };
        self.valid_sides.read(HOST);
        self.record_access(Side::Host, Access::Read)?;
        Ok(bytes)
    }

    #[track_caller]
    pub(super) fn host_mut(&mut self) -> Result<&mut [u8]> {
        self.fetch_and_write_host(Access::Update)
    }

    /// Like [`host_mut`](Self::host_mut), for a caller that overwrites the bytes in `range` and does
    /// not access the other bytes.
    #[track_caller]
    pub(super) fn host_part(&mut self, range: Range<usize>) -> Result<&mut [u8]> {
        self.fetch_and_write_host(Access::OverwritePart(range))
    }

    #[track_caller]
    fn fetch_and_write_host(&mut self, access: Access) -> Result<&mut [u8]> {
        if !self.device.is_unified() {
            self.fill_host()?;
        }
        self.record_access(Side::Host, access)?;
        self.write_host()
    }

    #[track_caller]
    pub(super) fn host_write_only(&mut self) -> Result<&mut [u8]> {
        self.record_access(Side::Host, Access::Overwrite)?;
        self.write_host()
    }

    #[track_caller]
    fn write_host(&mut self) -> Result<&mut [u8]> {
        if self.device.is_unified() {
            self.fill_dev()?;
            self.valid_sides.write(HOST);
            return self.device.map_mut(expect_filled(self.dev.get_mut())?);
        }
        if self.host.get().is_none() {
            let bytes = self.recycled_host()?;
            let _ = self.host.set(bytes);
        }
        self.retire_dev();
        self.valid_sides.write(HOST);
        Ok(expect_filled(self.host.get_mut())?)
    }

    /// Prepares to overwrite all bytes on the host, without first downloading the current value.
    #[track_caller]
    pub(super) fn begin_overwrite(&mut self) -> Result<Overwrite<'_>> {
        self.record_access(Side::Host, Access::Overwrite)?;
        self.begin_host_write()
    }

    /// Like [`begin_overwrite`](Self::begin_overwrite), but overwrites only the bytes in `range`.
    #[track_caller]
    pub(super) fn begin_part_overwrite(&mut self, range: Range<usize>) -> Result<Overwrite<'_>> {
        self.host_part(range)?;
        self.begin_host_write()
    }

    fn begin_host_write(&mut self) -> Result<Overwrite<'_>> {
        let is_in_place = self.device.is_unified() || self.head() == Head::HeadAtHost;
        let host_allocation = if is_in_place { None } else { Some(self.take_host()?) };
        Ok(Overwrite { memory: self, host_allocation, is_written: false })
    }

    /// Returns the bytes of unified memory as a host slice.
    fn mapped_host(&mut self) -> Result<&mut [u8]> {
        self.fill_dev()?;
        self.device.map_mut(expect_filled(self.dev.get_mut())?)
    }

    /// Removes and returns the allocation of the host side, or returns a recycled or new
    /// allocation; the contents are unspecified. The caller must check that the host is not the
    /// only valid side.
    fn take_host(&mut self) -> Result<HostBytes> {
        self.host.take().map_or_else(|| self.recycled_host(), Ok)
    }

    /// Puts back the host allocation that [`take_host`](Self::take_host) has removed. If
    /// `is_written` is true, the bytes of the allocation become the current value of the memory.
    fn put_host(&mut self, bytes: HostBytes, is_written: bool) {
        if is_written {
            let _ = self.host.set(bytes);
            self.retire_dev();
            self.valid_sides.write(HOST);
        } else if self.dev.get().is_some() {
            self.retire_host(bytes);
            self.valid_sides.write(DEVICE);
        } // If neither side was valid, the memory still reads as zero.
    }

    #[track_caller]
    pub(super) fn device<B: 'static>(&self) -> Result<&B> {
        let buffer = self.fill_dev()?;
        self.valid_sides.read(DEVICE);
        self.record_access(Side::Device, Access::Read)?;
        buffer.downcast_ref().ok_or_else(|| foreign_buffer_error(&*self.device))
    }

    #[track_caller]
    pub(super) fn device_mut<B: 'static>(&mut self) -> Result<&mut B> {
        self.fill_dev()?;
        self.record_access(Side::Device, Access::Update)?;
        self.write_device()
    }

    /// Like [`device_mut`](Self::device_mut), for a caller that overwrites the bytes in `range` and
    /// does not access the other bytes.
    #[track_caller]
    pub(super) fn device_part<B: 'static>(&mut self, range: Range<usize>) -> Result<&mut B> {
        self.fill_dev()?;
        self.record_access(Side::Device, Access::OverwritePart(range))?;
        self.write_device()
    }

    /// Uploads the value, if the device side is stale, for a caller that is about to overwrite a
    /// part of the bytes.
    #[track_caller]
    pub(super) fn fetch_device(&mut self) -> Result<()> {
        self.fill_dev()?;
        self.valid_sides.read(DEVICE);
        self.record_access(Side::Device, Access::Fetch)
    }

    /// Allocates the device side, if it is not allocated, so that a later
    /// [`device_write_only`](Self::device_write_only) allocates nothing.
    pub(super) fn reserve_device(&mut self) -> Result<()> {
        let spares = self.spares.get_mut();
        if self.dev.get().is_none() && spares.dev.is_none() {
            spares.dev = Some(self.device.alloc(self.bytes)?);
            spares.dev_is_new = true;
        }
        Ok(())
    }

    #[track_caller]
    pub(super) fn device_write_only<B: 'static>(&mut self) -> Result<&mut B> {
        self.record_access(Side::Device, Access::Overwrite)?;
        self.write_device()
    }

    fn write_device<B: 'static>(&mut self) -> Result<&mut B> {
        self.make_only_device_valid(|buffer| buffer.downcast_ref::<B>().is_some())?;
        let buffer = expect_filled(self.dev.get_mut())?.downcast_mut();
        buffer.ok_or_else(|| foreign_buffer_error(&*self.device))
    }

    /// Makes the device the only valid side. If `is_expected` rejects the device buffer, returns an
    /// error and leaves the set of valid sides unchanged.
    fn make_only_device_valid(&mut self, is_expected: fn(&AnyBuffer) -> bool) -> Result<()> {
        self.reserve_device()?;
        if self.dev.get().is_none() {
            let spares = self.spares.get_mut();
            if let Some(mut buffer) = spares.dev.take_if(|buffer| is_expected(buffer)) {
                if mem::take(&mut spares.dev_is_new) {
                    self.device.on_stale(StaleAllocation::Device(&mut buffer));
                }
                self.dev = OnceLock::from(buffer);
            }
        }
        if !self.dev.get().is_some_and(is_expected) {
            return Err(foreign_buffer_error(&*self.device));
        }
        if let Some(stale) = self.host.take() {
            self.retire_host(stale);
        }
        self.valid_sides.write(DEVICE);
        Ok(())
    }

    #[track_caller]
    pub(super) fn prefetch(&self, queue: &dyn ErasedMemory) -> Result<()> {
        if !self.device.is_unified() {
            queue.order_after(&*self.device)?;
            self.fill_dev_on(queue, |queue| queue.synchronize())?;
            self.valid_sides.read(DEVICE);
            self.record_access(Side::Device, Access::Fetch)?;
        }
        Ok(())
    }

    #[track_caller]
    pub(super) fn adopt(&mut self, bytes: HostBytes) -> Result<()> {
        check_len("adopt", "bytes", self.bytes, bytes.len())?;
        self.record_access(Side::Host, Access::Overwrite)?;
        if !self.device.is_unified() {
            self.retire_dev();
            self.host = OnceLock::from(bytes);
            self.valid_sides.write(HOST);
            return Ok(());
        }
        match self.device.adopt(bytes) {
            Ok(buffer) => {
                self.dev = OnceLock::from(buffer);
                self.valid_sides.write(HOST);
            }
            Err(bytes) => self.write_host()?.copy_from_slice(&bytes),
        }
        Ok(())
    }

    /// Returns a recycled or new allocation for the host side, with unspecified contents.
    fn recycled_host(&mut self) -> Result<HostBytes> {
        if let Some(bytes) = self.spares.get_mut().host.take() {
            return Ok(bytes);
        }
        let mut bytes = self.device.alloc_host(self.bytes)?;
        self.device.on_stale(StaleAllocation::Host(&mut bytes));
        Ok(bytes)
    }

    /// Keeps `stale`, an allocation of the host side, for reuse.
    fn retire_host(&mut self, mut stale: HostBytes) {
        self.device.on_stale(StaleAllocation::Host(&mut stale));
        self.spares.get_mut().host = Some(stale);
    }

    /// Moves the stale allocation of the device side, if any, to the spare allocations for reuse.
    fn retire_dev(&mut self) {
        if let Some(mut stale) = self.dev.take() {
            self.device.on_stale(StaleAllocation::Device(&mut stale));
            let spares = self.spares.get_mut();
            (spares.dev, spares.dev_is_new) = (Some(stale), false);
        }
    }

    #[track_caller]
    fn fill_host(&self) -> Result<&HostBytes> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let mut spares = self.spares.lock();
        if let Some(host) = self.host.get() {
            return Ok(host); // Another thread filled the host side before this thread got the lock.
        }
        let mut bytes = match spares.host.take() {
            Some(bytes) => bytes,
            None => self.device.alloc_host(self.bytes)?,
        };
        if let Some(dev) = self.dev.get() {
            let start = copy_start();
            let downloaded = transfer_event(
                (|| self.device.name(), || self.name()),
                EventKind::Download,
                self.bytes,
                || self.device.download(dev, 0, &mut bytes),
            );
            // Do not use a closure here: `#[track_caller]` would report the closure as the caller.
            let recorded = match downloaded {
                Ok(()) => self.notes.copied(&*self.device, EventKind::Download, &bytes, start),
                error => error,
            };
            if let Err(error) = recorded {
                spares.host = Some(bytes);
                return Err(error);
            }
        }
        Ok(self.host.get_or_init(|| bytes))
    }

    #[track_caller]
    fn fill_dev(&self) -> Result<&AnyBuffer> {
        self.fill_dev_on(&*self.device, |_| Ok(()))
    }

    /// Allocates the device side, uploads the value to it through `queue`, and calls `wait(queue)`
    /// before other threads can see the buffer in `dev`.
    #[track_caller]
    fn fill_dev_on(
        &self,
        queue: &dyn ErasedMemory,
        wait: fn(&dyn ErasedMemory) -> Result<()>,
    ) -> Result<&AnyBuffer> {
        if let Some(dev) = self.dev.get() {
            return Ok(dev);
        }
        let mut spares = self.spares.lock();
        if let Some(dev) = self.dev.get() {
            return Ok(dev);
        }
        let mut buffer = match spares.dev.take() {
            Some(buffer) => buffer,
            None => queue.alloc(self.bytes)?,
        };
        spares.dev_is_new = false;
        let upload_result = match self.host.get() {
            Some(host) => {
                let start = copy_start();
                let uploaded = transfer_event(
                    (|| queue.name(), || self.name()),
                    EventKind::Upload,
                    self.bytes,
                    || queue.upload(host, &mut buffer, 0),
                );
                match uploaded {
                    Ok(()) => self.notes.copied(queue, EventKind::Upload, host, start),
                    error => error,
                }
            }
            None => Ok(()),
        };
        if let Err(error) = upload_result.and_then(|()| wait(queue)) {
            spares.dev = Some(buffer);
            return Err(error);
        }
        Ok(self.dev.get_or_init(|| buffer))
    }
}

/// A pending overwrite of all bytes on the host. The value of the memory is unchanged until
/// [`commit`](Self::commit), unless only the host side was valid or the device has unified memory.
pub(super) struct Overwrite<'a> {
    memory: &'a mut CoherentBytes,
    /// Allocation that receives the written bytes; `None` if the bytes of the memory are
    /// overwritten in place.
    host_allocation: Option<HostBytes>,
    is_written: bool,
}

impl Overwrite<'_> {
    pub(super) fn bytes(&mut self) -> Result<&mut [u8]> {
        match &mut self.host_allocation {
            Some(bytes) => Ok(bytes),
            None if self.memory.device.is_unified() => self.memory.mapped_host(),
            None => Ok(expect_filled(self.memory.host.get_mut())?),
        }
    }

    /// Makes the written bytes the current value of the memory; the device copy
    /// becomes stale.
    pub(super) fn commit(mut self) {
        self.is_written = true;
    }
}

impl Drop for Overwrite<'_> {
    fn drop(&mut self) {
        match self.host_allocation.take() {
            Some(bytes) => self.memory.put_host(bytes, self.is_written),
            None if self.is_written => self.memory.valid_sides.write(HOST),
            None => {}
        }
    }
}

impl fmt::Debug for CoherentBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncedMemory")
            .field("device", &self.device.name())
            .field("bytes", &self.bytes)
            .field("head", &self.head())
            .finish()
    }
}

/// Returns the contents of a `OnceLock` that the caller has just set.
fn expect_filled<T>(cell: Option<&mut T>) -> Result<&mut T> {
    cell.ok_or_else(|| Error::InvalidData("memory is not allocated".into()))
}

//! Mutant: a device that wraps the simulated device and adds one bug. `device.rs` implements the
//! bugs in memory and queues.

use crate::bug::Bug;
use cortado::{
    Element, Error, Memory, Result, SyncedMemory, View, ViewMut,
    device::{SimulatedDevice, simulated},
    memory::{DeviceSlice, DeviceSliceMut, HostBytes, StaleAllocation},
};
use std::sync::{
    Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) inner: SimulatedDevice,
    pub(crate) bug: Bug,
    is_fork: bool,
    shared: Arc<Shared>,
}

/// State that a mutant shares with its forks.
#[derive(Debug, Default)]
struct Shared {
    /// Whether every later call on the mutant must fail.
    broken: AtomicBool,
    /// Whether a queued call has failed and no call has reported the failure.
    queued_failure: AtomicBool,
    /// Number of kernel calls, for bugs in every second call.
    calls: AtomicUsize,
    freed: Mutex<Vec<DeviceMemory>>,
}

/// Memory of the simulated device that is valid only on the device side.
type DeviceMemory = SyncedMemory<SimulatedDevice>;

/// Device allocation of a mutant.
pub(crate) struct Buffer {
    memory: Option<RwLock<DeviceMemory>>,
    downloaded: Mutex<Option<Vec<u8>>>,
    /// Shared state that receives the memory when the buffer is freed, for [`Bug::FreedInFlight`].
    recycler: Option<Arc<Shared>>,
}

impl Buffer {
    pub(crate) fn read(&self) -> Result<RwLockReadGuard<'_, DeviceMemory>> {
        Ok(self.memory()?.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn write(&self) -> Result<RwLockWriteGuard<'_, DeviceMemory>> {
        Ok(self.memory()?.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn memory(&self) -> Result<&RwLock<DeviceMemory>> {
        self.memory
            .as_ref()
            .ok_or_else(|| Error::device("mutant", "a buffer was used after it was freed"))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let (Some(recycler), Some(memory)) = (&self.recycler, self.memory.take())
            && let (Ok(mut freed), Ok(memory)) = (recycler.freed.lock(), memory.into_inner())
        {
            freed.push(memory);
        }
    }
}

impl Mutant {
    pub(crate) fn new(bug: Bug) -> Self {
        Self { inner: SimulatedDevice::new(), bug, is_fork: false, shared: Arc::default() }
    }

    pub(crate) fn is(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    /// Marks a queued kernel as failed, for [`Bug::QueuedFailure`].
    pub(crate) fn fail_queued(&self) {
        self.shared.queued_failure.store(true, Relaxed);
    }

    /// Returns whether the device has the bug, and an odd number of kernel calls precedes this one.
    pub(crate) fn is_second_call(&self, bug: Bug) -> bool {
        self.is(bug) && self.shared.calls.fetch_add(1, Relaxed) % 2 == 1
    }

    /// Returns `result`, and makes every later call fail after an error if the bug is
    /// [`Bug::ErrorsPersist`].
    pub(crate) fn persist_error(&self, result: Result<()>) -> Result<()> {
        if self.is(Bug::ErrorsPersist) {
            self.shared.broken.fetch_or(result.is_err(), Relaxed);
        }
        self.check_usable().and(result)
    }

    /// Returns a new `SyncedMemory` that holds `values`.
    pub(crate) fn scratch<T: cortado::Storable>(&self, values: &[T]) -> Result<SyncedMemory<Self>> {
        let mut memory = SyncedMemory::new(self, size_of_val(values));
        memory.host_write_only()?.copy_from_slice(T::bytes_of(values));
        Ok(memory)
    }

    fn check_usable(&self) -> Result<()> {
        match self.shared.broken.load(Relaxed) {
            true => Err(Error::device("mutant", "broken")),
            false => Ok(()),
        }
    }

    /// Returns a freed device memory of `bytes` bytes, which is zeroed without waiting for queued
    /// work.
    fn reuse(&self, bytes: usize) -> Result<Option<DeviceMemory>> {
        let mut freed = self.shared.freed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = freed.iter().position(|memory| memory.size() == bytes) else {
            return Ok(None);
        };
        let mut memory = freed.swap_remove(index);
        self.upload_at_once(&vec![0; bytes], memory.device_mut()?, 0)?;
        Ok(Some(memory))
    }

    /// Uploads bytes at once, before all queued work of the device has run.
    fn upload_at_once(&self, src: &[u8], dst: &mut simulated::Buffer, at: usize) -> Result<()> {
        let fork = self.inner.fork_queue()?;
        fork.upload(src, dst, at)?;
        fork.synchronize()
    }

    fn new_memory(&self, bytes: usize) -> Result<DeviceMemory> {
        let mut memory = DeviceMemory::new(&self.inner, bytes);
        memory.device()?;
        if self.is(Bug::AllocNotZeroed) {
            self.inner.on_stale(StaleAllocation::Device(memory.device_mut()?));
        }
        Ok(memory)
    }
}

/// Returns a view on the simulated device of a mutant's operand.
pub(crate) fn inner_view<'a, T: Element>(
    memory: &'a DeviceMemory,
    operand: &DeviceSlice<'_, Mutant>,
) -> Result<View<'a, T, SimulatedDevice>> {
    let (start, len) = (operand.offset / size_of::<T>(), operand.bytes / size_of::<T>());
    View::new(memory, memory.size() / size_of::<T>())?.slice(start..start + len)
}

/// Returns a mutable view on the simulated device of `bytes` bytes of `memory`, starting at byte
/// `offset`.
pub(crate) fn inner_view_mut<'a, T: Element>(
    memory: &'a mut DeviceMemory,
    offset: usize,
    bytes: usize,
) -> Result<ViewMut<'a, T, SimulatedDevice>> {
    let (start, len) = (offset / size_of::<T>(), bytes / size_of::<T>());
    let total = memory.size() / size_of::<T>();
    ViewMut::new(memory, total)?.slice(start..start + len)
}

/// Returns the offset and the length, in bytes, that a native kernel with the bug `bug` uses for
/// its output.
pub(crate) fn output_span<T: Element>(
    bug: Bug,
    y: &DeviceSliceMut<'_, Mutant>,
) -> Result<(usize, usize)> {
    let (element, total) = (size_of::<T>(), y.buffer.read()?.size());
    Ok(match bug {
        Bug::OffsetIgnored => (0, y.bytes),
        Bug::OffsetNarrow => (y.offset & 0xffff, y.bytes),
        Bug::OffsetOffByOne if y.offset + y.bytes + element <= total => {
            (y.offset + element, y.bytes)
        }
        Bug::WritesPastEnd if y.offset + y.bytes + element <= total => {
            (y.offset, y.bytes + element)
        }
        _ => (y.offset, y.bytes),
    })
}

impl Memory for Mutant {
    type Buffer = Buffer;

    fn name(&self) -> String {
        format!("mutant {:?}", self.bug)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        self.check_usable()?;
        let is_huge = bytes > 1 << 40;
        let memory = match self.bug {
            Bug::AllocRefusesZeroBytes if bytes == 0 => {
                return Err(Error::device(self.name(), "cannot allocate 0 bytes"));
            }
            Bug::AllocTooShort if is_huge => self.new_memory(64)?,
            Bug::AllocPanics if is_huge => panic!("{bytes} bytes"),
            Bug::FreedInFlight => match self.reuse(bytes)? {
                Some(memory) => memory,
                None => self.new_memory(bytes)?,
            },
            _ => {
                let memory = self.new_memory(bytes);
                let breaks = self.is(Bug::AllocNeverRecovers) && memory.is_err();
                self.shared.broken.fetch_or(breaks, Relaxed);
                memory?
            }
        };
        let recycler = self.is(Bug::FreedInFlight).then(|| Arc::clone(&self.shared));
        let memory = Some(RwLock::new(memory));
        Ok(Buffer { memory, downloaded: Mutex::default(), recycler })
    }

    fn upload(&self, src: &[u8], dst: &mut Buffer, at: usize) -> Result<()> {
        let mut memory = dst.write()?;
        let (size, dst) = (memory.size(), memory.device_mut()?);
        let whole_words = src.len() / 4 * 4;
        match self.bug {
            Bug::UploadLate if at + src.len() < size => self.inner.upload(src, dst, at + 1),
            Bug::UploadDropsTail => self.inner.upload(&src[..whole_words], dst, at),
            Bug::UploadLost if at > 0 => Ok(()),
            Bug::UploadIgnoresOffset => self.inner.upload(src, dst, 0),
            Bug::ForkUploadsAtOnce if self.is_fork => self.upload_at_once(src, dst, at),
            _ => self.inner.upload(src, dst, at),
        }
    }

    fn download(&self, src: &Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
        let memory = src.read()?;
        let from = memory.device()?;
        match self.bug {
            Bug::DownloadTruncated => {
                let page = dst.len().min(4096);
                self.inner.download(from, at, &mut dst[..page])
            }
            Bug::DownloadAligned => self.inner.download(from, at / 4 * 4, dst),
            Bug::DownloadUnfinished => {
                dst.copy_from_slice(&from.snapshot()[at..at + dst.len()]);
                Ok(())
            }
            Bug::DownloadStale if at == 0 && dst.len() == memory.size() => {
                let mut downloaded = src.downloaded.lock().unwrap_or_else(PoisonError::into_inner);
                if downloaded.is_none() {
                    self.inner.download(from, at, dst)?;
                }
                dst.copy_from_slice(downloaded.get_or_insert_with(|| dst.to_vec()));
                Ok(())
            }
            _ => self.inner.download(from, at, dst),
        }
    }

    fn synchronize(&self) -> Result<()> {
        match self.bug {
            Bug::SynchronizeIgnored => Ok(()),
            Bug::QueuedFailure if self.shared.queued_failure.swap(false, Relaxed) => {
                Err(Error::device("mutant", "a queued kernel failed"))
            }
            _ => self.inner.synchronize(),
        }
    }

    fn fork_queue(&self) -> Result<Self> {
        Ok(Self { inner: self.inner.fork_queue()?, is_fork: true, ..self.clone() })
    }

    fn order_after(&self, other: &Self) -> Result<()> {
        match self.bug {
            Bug::OrderAfterIgnored => Ok(()),
            _ => self.inner.order_after(&other.inner),
        }
    }

    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        let mut host = self.inner.alloc_host(bytes)?;
        if self.is(Bug::HostAllocNotZeroed) {
            self.inner.on_stale(StaleAllocation::Host(&mut host));
        }
        Ok(host)
    }

    fn on_stale(&self, allocation: StaleAllocation<'_, Buffer>) {
        match allocation {
            StaleAllocation::Host(bytes) => self.inner.on_stale(StaleAllocation::Host(bytes)),
            StaleAllocation::Device(buffer) => {
                if let Ok(mut memory) = buffer.write()
                    && let Ok(buffer) = memory.device_mut()
                {
                    self.inner.on_stale(StaleAllocation::Device(buffer));
                }
            }
        }
    }
}

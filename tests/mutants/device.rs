//! A device around the mirror, with bugs in its memory and its queues.

use crate::bug::Bug;
use cortado::{
    Element, Error, Memory, Result, SyncedMemory, View, ViewMut,
    device::SimulatedDevice,
    memory::{DeviceSlice, DeviceSliceMut, HostBytes, StaleAllocation},
};
use std::sync::{
    Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// The mirror with a bug.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) inner: SimulatedDevice,
    pub(crate) bug: Bug,
    is_fork: bool,
    shared: Arc<Shared>,
}

/// What forks share.
#[derive(Debug, Default)]
struct Shared {
    /// Out of order for good.
    broken: AtomicBool,
    /// Freed memory, for [`Bug::FreedInFlight`].
    freed: Mutex<Vec<OnMirror>>,
}

/// Memory of the mirror, current on its device side alone.
type OnMirror = SyncedMemory<SimulatedDevice>;

/// Memory of a mutant.
pub(crate) struct Buffer {
    memory: Option<RwLock<OnMirror>>,
    /// What was first downloaded, for [`Bug::DownloadStale`].
    seen: Mutex<Option<Vec<u8>>>,
    /// Where the memory goes, for [`Bug::FreedInFlight`].
    heir: Option<Arc<Shared>>,
}

impl Buffer {
    pub(crate) fn read(&self) -> Result<RwLockReadGuard<'_, OnMirror>> {
        Ok(self.memory()?.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn write(&self) -> Result<RwLockWriteGuard<'_, OnMirror>> {
        Ok(self.memory()?.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn memory(&self) -> Result<&RwLock<OnMirror>> {
        self.memory.as_ref().ok_or_else(|| Error::device("mutant", "used after its end"))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let (Some(heir), Some(memory)) = (&self.heir, self.memory.take())
            && let (Ok(mut freed), Ok(memory)) = (heir.freed.lock(), memory.into_inner())
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

    /// What refuses every call once something was refused, for [`Bug::ErrorSticks`].
    pub(crate) fn sticking(&self, result: Result<()>) -> Result<()> {
        if self.is(Bug::ErrorSticks) {
            self.shared.broken.fetch_or(result.is_err(), Relaxed);
        }
        self.usable().and(result)
    }

    /// New elements on this device.
    pub(crate) fn scratch<T: cortado::Storable>(&self, values: &[T]) -> Result<SyncedMemory<Self>> {
        let mut memory = SyncedMemory::new(self, size_of_val(values));
        memory.host_write_only()?.copy_from_slice(bytemuck::cast_slice(values));
        Ok(memory)
    }

    fn usable(&self) -> Result<()> {
        match self.shared.broken.load(Relaxed) {
            true => Err(Error::device("mutant", "broken")),
            false => Ok(()),
        }
    }

    /// Memory that was freed, cleared at once.
    fn reused(&self, bytes: usize) -> Result<Option<OnMirror>> {
        let mut freed = self.shared.freed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(fits) = freed.iter().position(|memory| memory.size() == bytes) else {
            return Ok(None);
        };
        let mut memory = freed.swap_remove(fits);
        let at_once = self.inner.fork_queue()?;
        at_once.upload(&vec![0; bytes], memory.device_mut()?, 0)?;
        at_once.synchronize()?;
        Ok(Some(memory))
    }

    fn new_memory(&self, bytes: usize) -> Result<OnMirror> {
        let mut memory = OnMirror::new(&self.inner, bytes);
        memory.device()?;
        if self.is(Bug::AllocNotZeroed) {
            self.inner.on_stale(StaleAllocation::Device(memory.device_mut()?));
        }
        Ok(memory)
    }
}

/// The mirror's view of a mutant's operand.
pub(crate) fn part<'a, T: Element>(
    memory: &'a OnMirror,
    of: &DeviceSlice<'_, Mutant>,
) -> Result<View<'a, T, SimulatedDevice>> {
    let (start, len) = (of.offset / size_of::<T>(), of.bytes / size_of::<T>());
    View::new(memory, memory.size() / size_of::<T>())?.slice(start..start + len)
}

/// As [`part`], writable, from byte `offset` and of `bytes`.
pub(crate) fn part_mut<'a, T: Element>(
    memory: &'a mut OnMirror,
    offset: usize,
    bytes: usize,
) -> Result<ViewMut<'a, T, SimulatedDevice>> {
    let (start, len) = (offset / size_of::<T>(), bytes / size_of::<T>());
    let all = memory.size() / size_of::<T>();
    ViewMut::new(memory, all)?.slice(start..start + len)
}

/// Where a native kernel believes its output to be: offset and bytes.
pub(crate) fn believed<T: Element>(
    bug: Bug,
    y: &DeviceSliceMut<'_, Mutant>,
) -> Result<(usize, usize)> {
    let (size, held) = (size_of::<T>(), y.buffer.read()?.size());
    Ok(match bug {
        Bug::OffsetIgnored => (0, y.bytes),
        Bug::OffsetOffByOne if y.offset + y.bytes + size <= held => (y.offset + size, y.bytes),
        Bug::WritesPast if y.offset + y.bytes + size <= held => (y.offset, y.bytes + size),
        _ => (y.offset, y.bytes),
    })
}

impl Memory for Mutant {
    type Buffer = Buffer;

    fn name(&self) -> String {
        format!("mutant {:?}", self.bug)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer> {
        self.usable()?;
        let huge = bytes > 1 << 40;
        let memory = match self.bug {
            Bug::AllocRefusesNothing if bytes == 0 => {
                return Err(Error::device(self.name(), "an allocation of 0 bytes"));
            }
            Bug::AllocPromises if huge => self.new_memory(64)?,
            Bug::AllocPanics if huge => panic!("{bytes} bytes"),
            Bug::FreedInFlight => match self.reused(bytes)? {
                Some(memory) => memory,
                None => self.new_memory(bytes)?,
            },
            _ => {
                let memory = self.new_memory(bytes);
                let spoils = self.is(Bug::AllocNeverRecovers) && memory.is_err();
                self.shared.broken.fetch_or(spoils, Relaxed);
                memory?
            }
        };
        let heir = self.is(Bug::FreedInFlight).then(|| Arc::clone(&self.shared));
        Ok(Buffer { memory: Some(RwLock::new(memory)), seen: Mutex::default(), heir })
    }

    fn upload(&self, src: &[u8], dst: &mut Buffer, at: usize) -> Result<()> {
        let mut memory = dst.write()?;
        let (held, dst) = (memory.size(), memory.device_mut()?);
        let whole_words = src.len() / 4 * 4;
        match self.bug {
            Bug::UploadLate if at + src.len() < held => self.inner.upload(src, dst, at + 1),
            Bug::UploadDropsTail => self.inner.upload(&src[..whole_words], dst, at),
            Bug::UploadLost if at > 0 => Ok(()),
            Bug::UploadIgnoresAt => self.inner.upload(src, dst, 0),
            Bug::ForkUploadsAtOnce if self.is_fork => {
                let at_once = self.inner.fork_queue()?;
                at_once.upload(src, dst, at)?;
                at_once.synchronize()
            }
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
                let mut seen = src.seen.lock().unwrap_or_else(PoisonError::into_inner);
                if seen.is_none() {
                    self.inner.download(from, at, dst)?;
                }
                dst.copy_from_slice(seen.get_or_insert_with(|| dst.to_vec()));
                Ok(())
            }
            _ => self.inner.download(from, at, dst),
        }
    }

    fn synchronize(&self) -> Result<()> {
        match self.bug {
            Bug::SynchronizeIgnored => Ok(()),
            _ => self.inner.synchronize(),
        }
    }

    fn fork_queue(&self) -> Result<Self> {
        Ok(Self { inner: self.inner.fork_queue()?, is_fork: true, ..self.clone() })
    }

    fn order_after(&self, other: &Self) -> Result<()> {
        match self.bug {
            Bug::AfterIgnored => Ok(()),
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

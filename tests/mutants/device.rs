//! Mutant: a device that wraps the simulated device and adds one bug. Bugs of memory and queues are
//! implemented in the methods of the mutant.

use crate::bug::Bug;
use cortado::{
    Element, Error, Memory, Result, SyncedMemory, View, ViewMut,
    device::{SimulatedDevice, simulated},
    ledger,
    memory::{
        DeviceSlice, DeviceSliceMut, DeviceSpan, DeviceWork, FailureKind, HostBytes,
        StaleAllocation,
    },
};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) inner: SimulatedDevice,
    pub(crate) bug: Bug,
    is_fork: bool,
    shared: Arc<Shared>,
    queue: Arc<QueueState>,
}

/// State of one queue of a mutant.
#[derive(Debug)]
struct QueueState {
    inner: SimulatedDevice,
    /// Number of uploads and native kernels that were queued.
    work_count: AtomicUsize,
    /// Number of calls to `order_after`.
    order_count: AtomicUsize,
    /// Queues after which this queue is ordered, for bugs in `order_after`.
    ordered_after: Mutex<Vec<Weak<QueueState>>>,
}

impl QueueState {
    fn new(inner: &SimulatedDevice) -> Arc<Self> {
        let (work_count, order_count, ordered_after) = Default::default();
        Arc::new(Self { inner: inner.clone(), work_count, order_count, ordered_after })
    }
}

/// State that a mutant shares with its forks.
#[derive(Debug, Default)]
struct Shared {
    /// Whether all calls on the mutant fail from now on.
    all_calls_fail: AtomicBool,
    /// Whether all calls on forks of the mutant fail from now on.
    fork_calls_fail: AtomicBool,
    /// Whether a queued call has failed and no call has reported the failure.
    queued_failure: AtomicBool,
    /// Number of kernel calls, for bugs that appear only in every second call.
    calls: AtomicUsize,
    freed_memory: Mutex<Vec<DeviceMemory>>,
    /// The first failure of queued work.
    failure: Mutex<Option<String>>,
    /// All queues, for [`Bug::OtherQueueLosesFailure`] and [`Bug::FailureOfAnyQueue`].
    queues: Mutex<Vec<SimulatedDevice>>,
    /// Whether the device records spans.
    is_recording: AtomicBool,
    /// Whether two queues wait for each other.
    is_deadlocked: AtomicBool,
}

/// Memory of the simulated device that is valid only on the device side.
type DeviceMemory = SyncedMemory<SimulatedDevice>;

/// Device allocation of a mutant.
pub(crate) struct Buffer {
    memory: Option<RwLock<DeviceMemory>>,
    downloaded_bytes: Mutex<Option<Vec<u8>>>,
    /// Shared state that receives the memory when the buffer is freed, for bugs in the reuse of
    /// freed memory.
    recycler: Option<Arc<Shared>>,
    /// Whether an upload was the last use of the memory.
    is_uploaded: AtomicBool,
    /// Whether the kernel `scal` has written to the memory.
    pub(crate) is_scaled: AtomicBool,
    /// The bug of the device.
    bug: Bug,
}

impl Buffer {
    pub(crate) fn read(&self) -> Result<RwLockReadGuard<'_, DeviceMemory>> {
        Ok(self.memory()?.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn write(&self) -> Result<RwLockWriteGuard<'_, DeviceMemory>> {
        Ok(self.memory()?.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn memory(&self) -> Result<&RwLock<DeviceMemory>> {
        self.is_uploaded.store(false, Relaxed);
        self.memory
            .as_ref()
            .ok_or_else(|| Error::device("mutant", "a buffer was used after it was freed"))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let keeps_memory = match self.bug {
            Bug::UploadFreedInFlight => self.is_uploaded.load(Relaxed),
            Bug::DirtyKernelOutput => self.is_scaled.load(Relaxed),
            _ => true,
        };
        if let (true, Some(recycler), Some(memory)) =
            (keeps_memory, &self.recycler, self.memory.take())
            && let (Ok(mut freed_memory), Ok(memory)) =
                (recycler.freed_memory.lock(), memory.into_inner())
        {
            freed_memory.push(memory);
        }
    }
}

impl Mutant {
    pub(crate) fn new(bug: Bug) -> Self {
        let inner = SimulatedDevice::new();
        let (shared, queue) = (Arc::<Shared>::default(), QueueState::new(&inner));
        lock(&shared.queues).push(inner.clone());
        Self { inner, bug, is_fork: false, shared, queue }
    }

    pub(crate) fn is(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    /// Counts a native kernel or an upload.
    pub(crate) fn count_job(&self) {
        self.queue.work_count.fetch_add(1, Relaxed);
    }

    /// Enters the ledger scope of a native kernel, unless the bug omits the scope.
    pub(crate) fn enter<T: Element>(&self, name: &'static str) -> Option<ledger::KernelScope> {
        let name = match self.bug {
            Bug::ScopeForgotten | Bug::ScopeLate if name == "scal" => return None,
            Bug::ScopeDropped if name == "scal" => {
                drop(ledger::enter_kernel(name, T::DTYPE.name()));
                return None;
            }
            Bug::ScopeOfAnotherKernel if name == "axpy" => "axpby",
            _ => name,
        };
        Some(ledger::enter_kernel(name, T::DTYPE.name()))
    }

    /// Applies the bug to the result of a kernel launch. The closure `again` launches the same
    /// kernel a second time.
    pub(crate) fn launched(
        &self,
        result: Result<()>,
        again: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        match (self.bug, result) {
            (Bug::LaunchFailureSwallowed, _) => Ok(()),
            (Bug::LaunchFailureUnnamed, Err(_)) => Err(Error::device("mutant", "launch failed")),
            (Bug::FailedLaunchRuns, Err(error)) => again().and(Err(error)),
            (_, result) => result,
        }
    }

    /// Applies the bug to the result of a wait for the queue.
    fn waited(&self, result: Result<()>) -> Result<()> {
        if let Err(error) = &result
            && error.to_string().contains("in flight")
        {
            lock(&self.shared.failure).get_or_insert_with(|| error.to_string());
        }
        let failure = lock(&self.shared.failure).clone();
        let Some(failure) = failure else { return result };
        let mut earlier_queues = lock(&self.queue.ordered_after);
        match self.bug {
            Bug::OrderedQueueTakesFailure if result.is_err() => {
                for queue in earlier_queues.drain(..).filter_map(|queue| queue.upgrade()) {
                    let _ = queue.inner.synchronize();
                }
                result
            }
            Bug::DroppedForkLosesFailure
                if earlier_queues.iter().any(|queue| queue.strong_count() == 0) =>
            {
                earlier_queues.clear();
                Ok(())
            }
            Bug::FailureSwallowed => Ok(()),
            Bug::ForkFailureLost if self.is_fork => Ok(()),
            Bug::FailureRepeats => Err(Error::device("mutant", failure)),
            Bug::FailureOfAnotherKernel if result.is_err() => {
                Err(Error::device("mutant", failure.replace("scal", "fill")))
            }
            Bug::FailureKillsDevice => {
                self.shared.all_calls_fail.store(true, Relaxed);
                result
            }
            Bug::FailureKillsForks => {
                self.shared.fork_calls_fail.store(true, Relaxed);
                result
            }
            _ => result,
        }
    }

    /// Applies the bugs that take effect at the start of a wait: waits for other queues, or hangs.
    fn run_orders(&self) -> Result<()> {
        if self.shared.is_deadlocked.load(Relaxed) {
            wait_forever();
        }
        // At every third wait, run the work of all queues first.
        if self.is(Bug::FailureOfAnyQueue)
            && self.shared.calls.fetch_add(1, Relaxed).is_multiple_of(3)
        {
            let queues = lock(&self.shared.queues).clone();
            queues.iter().try_for_each(Memory::synchronize)?;
        }
        if !self.is(Bug::DroppedForkForgotten) {
            return Ok(());
        }
        for queue in std::mem::take(&mut *lock(&self.queue.ordered_after)) {
            queue.upgrade().map_or(Ok(()), |queue| queue.inner.synchronize())?;
        }
        Ok(())
    }

    /// Marks a queued kernel as failed, for [`Bug::QueuedFailure`].
    pub(crate) fn fail_queued(&self) {
        self.shared.queued_failure.store(true, Relaxed);
    }

    /// If the mutant has the bug `bug`, counts the kernel call and returns `true` for every second
    /// call.
    pub(crate) fn is_second_call(&self, bug: Bug) -> bool {
        self.is(bug) && self.shared.calls.fetch_add(1, Relaxed) % 2 == 1
    }

    /// Returns `result`. If `result` is an error and the bug is [`Bug::ErrorsPersist`], every later
    /// call fails.
    pub(crate) fn persist_error(&self, result: Result<()>) -> Result<()> {
        if self.is(Bug::ErrorsPersist) {
            self.shared.all_calls_fail.fetch_or(result.is_err(), Relaxed);
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
        let is_failing_fork = self.is_fork && self.shared.fork_calls_fail.load(Relaxed);
        match self.shared.all_calls_fail.load(Relaxed) || is_failing_fork {
            true => Err(Error::device("mutant", "broken")),
            false => Ok(()),
        }
    }

    /// Takes freed memory of `bytes` bytes for a new allocation; returns `None` if no freed memory
    /// has this size. Depending on the bug, the memory is not zeroed, or is zeroed while queued
    /// work may still use it.
    fn reuse(&self, bytes: usize) -> Result<Option<DeviceMemory>> {
        let mut freed_memory = lock(&self.shared.freed_memory);
        let Some(index) = freed_memory.iter().position(|memory| memory.size() == bytes) else {
            return Ok(None);
        };
        let mut memory = freed_memory.swap_remove(index);
        match self.bug {
            Bug::DirtyLargeBlock if bytes >= LARGE_BLOCK => return Ok(Some(memory)),
            Bug::DirtyForkBlock if self.is_fork => return Ok(Some(memory)),
            Bug::DirtyKernelOutput => return Ok(Some(memory)),
            Bug::DirtyLargeBlock | Bug::DirtyForkBlock => return Ok(None),
            Bug::FreedWhileForkUses => self.inner.synchronize()?,
            _ => {}
        }
        self.upload_at_once(&vec![0; bytes], memory.device_mut()?, 0)?;
        Ok(Some(memory))
    }

    /// Uploads bytes immediately, before the queued work of the device runs.
    fn upload_at_once(&self, src: &[u8], dst: &mut simulated::Buffer, at: usize) -> Result<()> {
        let fork = self.inner.fork_queue()?;
        fork.upload(src, dst, at)?;
        fork.synchronize()
    }

    /// Returns whether the mutant keeps freed memory, because its bug reuses the memory.
    fn recycles(&self) -> bool {
        matches!(
            self.bug,
            Bug::FreedInFlight
                | Bug::FreedWhileForkUses
                | Bug::UploadFreedInFlight
                | Bug::DirtyLargeBlock
                | Bug::DirtyForkBlock
                | Bug::DirtySplitBlock
                | Bug::DirtyKernelOutput
        )
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

/// Minimum size, in bytes, of the blocks that the bugs in large blocks affect.
const LARGE_BLOCK: usize = 1 << 20;

/// Waits for an event that never happens, like a thread that takes a lock twice.
pub(crate) fn wait_forever() -> ! {
    loop {
        std::thread::park();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the part of `memory` that the mutant's operand covers, as a view for the simulated
/// device.
pub(crate) fn inner_view<'a, T: Element>(
    memory: &'a DeviceMemory,
    operand: &DeviceSlice<'_, Mutant>,
) -> Result<View<'a, T, SimulatedDevice>> {
    let (start, len) = (operand.offset / size_of::<T>(), operand.bytes / size_of::<T>());
    View::new(memory, memory.size() / size_of::<T>())?.slice(start..start + len)
}

/// Returns a mutable view of `bytes` bytes of `memory`, starting at byte `offset`, for the
/// simulated device.
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
        let suffix = if self.is(Bug::ForkRenamed) && self.is_fork { " (fork)" } else { "" };
        format!("mutant {:?}{suffix}", self.bug)
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
            Bug::OutOfMemoryIsDevice if is_huge => {
                return Err(Error::device(self.name(), "out of memory"));
            }
            Bug::OutOfMemoryOtherBytes if is_huge => {
                return Err(Error::OutOfMemory { device: self.name(), bytes: 1 << 30 });
            }
            Bug::OutOfMemoryRounded if is_huge => {
                let bytes = bytes.next_multiple_of(4096);
                return Err(Error::OutOfMemory { device: self.name(), bytes });
            }
            Bug::FailedAllocIsDevice => self.new_memory(bytes).map_err(|error| match is_huge {
                true => error,
                false => Error::device(self.name(), "allocation failed"),
            })?,
            Bug::DirtySplitBlock => {
                let mut memory = self.new_memory(bytes)?;
                let is_larger = |freed: &DeviceMemory| freed.size() > bytes;
                if bytes >= LARGE_BLOCK && lock(&self.shared.freed_memory).iter().any(is_larger) {
                    self.inner.on_stale(StaleAllocation::Device(memory.device_mut()?));
                }
                memory
            }
            _ if self.recycles() => match self.reuse(bytes)? {
                Some(memory) => memory,
                None => self.new_memory(bytes)?,
            },
            _ => {
                let memory = self.new_memory(bytes);
                let calls_fail = self.is(Bug::AllocNeverRecovers) && memory.is_err();
                self.shared.all_calls_fail.fetch_or(calls_fail, Relaxed);
                memory?
            }
        };
        let recycler = self.recycles().then(|| Arc::clone(&self.shared));
        let (downloaded_bytes, is_uploaded, is_scaled) = Default::default();
        let memory = Some(RwLock::new(memory));
        Ok(Buffer { memory, downloaded_bytes, recycler, is_uploaded, is_scaled, bug: self.bug })
    }

    fn upload(&self, src: &[u8], dst: &mut Buffer, at: usize) -> Result<()> {
        self.count_job();
        let mut memory = dst.write()?;
        dst.is_uploaded.store(true, Relaxed);
        let (size, dst) = (memory.size(), memory.device_mut()?);
        let whole_words = src.len() / 4 * 4;
        match self.bug {
            Bug::UploadLate if at + src.len() < size => self.inner.upload(src, dst, at + 1),
            Bug::LargeUploadStops => self.inner.upload(&src[..src.len().min(4 << 20)], dst, at),
            Bug::UploadDropsTail => self.inner.upload(&src[..whole_words], dst, at),
            Bug::UploadLost if at > 0 => Ok(()),
            Bug::UploadIgnoresOffset => self.inner.upload(src, dst, 0),
            Bug::ForkUploadsAtOnce if self.is_fork => self.upload_at_once(src, dst, at),
            Bug::UploadFailureSwallowed => self.inner.upload(src, dst, at).or(Ok(())),
            Bug::FailedUploadWrites => self.inner.upload(src, dst, at).or_else(|error| {
                self.inner.upload(&src[..src.len() / 2], dst, at)?;
                Err(error)
            }),
            _ => self.inner.upload(src, dst, at),
        }
    }

    fn download(&self, src: &Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
        self.run_orders()?;
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
                let mut downloaded_bytes =
                    src.downloaded_bytes.lock().unwrap_or_else(PoisonError::into_inner);
                if downloaded_bytes.is_none() {
                    self.inner.download(from, at, dst)?;
                }
                dst.copy_from_slice(downloaded_bytes.get_or_insert_with(|| dst.to_vec()));
                Ok(())
            }
            Bug::DownloadFailureSwallowed => self.inner.download(from, at, dst).or(Ok(())),
            Bug::DownloadLosesFailure => {
                let first_result = self.inner.download(from, at, dst);
                first_result.or_else(|_| self.inner.download(from, at, dst))
            }
            _ => match self.inner.download(from, at, dst) {
                Err(error) if error.to_string().contains("in flight") => {
                    self.waited(Err(error))?;
                    self.inner.download(from, at, dst)
                }
                Err(error) => Err(error),
                Ok(()) => self.waited(Ok(())),
            },
        }
    }

    fn synchronize(&self) -> Result<()> {
        self.run_orders()?;
        match self.bug {
            Bug::SynchronizeIgnored => Ok(()),
            Bug::OtherQueueLosesFailure => {
                let result = self.inner.synchronize();
                for queue in &*lock(&self.shared.queues) {
                    let _ = queue.synchronize();
                }
                result
            }
            Bug::QueuedFailure if self.shared.queued_failure.swap(false, Relaxed) => {
                Err(Error::device("mutant", "a queued kernel failed"))
            }
            _ => self.waited(self.inner.synchronize()),
        }
    }

    fn record_spans(&self, on: bool) -> Result<bool> {
        let records = self.inner.record_spans(on || self.is(Bug::SpansNeverEnd))?;
        self.shared.is_recording.store(on, Relaxed);
        Ok(records)
    }

    fn take_spans(&self) -> Result<Vec<DeviceSpan>> {
        let mut spans = self.inner.take_spans()?;
        let is_kernel = |span: &DeviceSpan| matches!(span.work, DeviceWork::Kernel { .. });
        match self.bug {
            Bug::SpansOverlap => spans.iter_mut().for_each(|span| span.start = Duration::ZERO),
            Bug::SpansEndBeforeStart => {
                let wrapped = Duration::from_nanos(u64::MAX);
                spans.iter_mut().take(1).for_each(|span| span.duration = wrapped);
            }
            Bug::SpansMissLaunch => {
                let last = spans.iter().rposition(is_kernel);
                last.map(|last| spans.remove(last));
            }
            Bug::SpansMissTransfers => spans.retain(is_kernel),
            Bug::SpansDoNotGrow => {
                spans.iter_mut().for_each(|span| span.duration = Duration::from_nanos(1));
            }
            Bug::SpansReversed => spans.reverse(),
            Bug::SpansRestart => {
                let first = spans.first().map_or(Duration::ZERO, |span| span.start);
                spans.iter_mut().for_each(|span| span.start -= first);
            }
            _ => {}
        }
        Ok(spans)
    }

    fn fork_queue(&self) -> Result<Self> {
        if self.is_fork && self.is(Bug::ForkOfForkRefused) {
            return Err(Error::device(self.name(), "a fork cannot be forked"));
        }
        let inner = self.inner.fork_queue()?;
        if self.is(Bug::SpansOfForks) && self.shared.is_recording.load(Relaxed) {
            inner.record_spans(true)?;
        }
        if matches!(self.bug, Bug::OtherQueueLosesFailure | Bug::FailureOfAnyQueue) {
            lock(&self.shared.queues).push(inner.clone());
        }
        let queue = QueueState::new(&inner);
        Ok(Self { inner, queue, is_fork: true, ..self.clone() })
    }

    fn order_after(&self, other: &Self) -> Result<()> {
        let earlier_calls = self.queue.order_count.fetch_add(1, Relaxed);
        match self.bug {
            Bug::OrderAfterIgnored => Ok(()),
            Bug::OrderAfterOnce if earlier_calls > 0 => Ok(()),
            Bug::OrderBetweenForksIgnored if self.is_fork && other.is_fork => Ok(()),
            Bug::OrderAfterIdleIgnored if other.queue.work_count.load(Relaxed) == 0 => Ok(()),
            Bug::DroppedForkForgotten if other.is_fork && !self.is_fork => {
                lock(&self.queue.ordered_after).push(Arc::downgrade(&other.queue));
                Ok(())
            }
            Bug::OrderDeadlocks | Bug::OrderedQueueTakesFailure | Bug::DroppedForkLosesFailure => {
                let is_this_queue = |queue: &Weak<_>| std::ptr::eq(queue.as_ptr(), &*self.queue);
                let is_mutual = lock(&other.queue.ordered_after).iter().any(is_this_queue);
                if self.is(Bug::OrderDeadlocks) && is_mutual {
                    self.shared.is_deadlocked.store(true, Relaxed);
                }
                lock(&self.queue.ordered_after).push(Arc::downgrade(&other.queue));
                self.inner.order_after(&other.inner)
            }
            _ => self.inner.order_after(&other.inner),
        }
    }

    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        let mut host = self.inner.alloc_host(bytes)?;
        let is_dirty = bytes >= LARGE_BLOCK && self.is_second_call(Bug::HostBlockDirty);
        if self.is(Bug::HostAllocNotZeroed) || is_dirty {
            self.inner.on_stale(StaleAllocation::Host(&mut host));
        }
        Ok(host)
    }

    fn inject_failure(&self, failure: FailureKind) -> bool {
        self.inner.inject_failure(failure)
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

//! [`AnyDevice`] and its memory.

use crate::{
    device::Device,
    element::{Element, for_element_type},
    error::Result,
    host::Workers,
    memory::{
        AnyBuffer, CompiledHere, CountedBytes, DeviceSpan, ErasedMemory, FailureKind, HostBytes,
        KernelCall, Mapping, Memory, MemoryLimit, MemoryUsage, StaleAllocation,
        ledger::diagnose_wait,
        trace::{self, Wait, Work},
    },
};
use std::{any::Any, fmt, sync::Arc};

/// A device whose type is known only at run time.
///
/// Nets, layers and solvers run on an `AnyDevice`, so this crate compiles their code once. Each
/// method of an `AnyDevice` forwards to the wrapped device's method of the same name. A clone of an
/// `AnyDevice` is a handle to the same device and queue.
///
/// ```
/// use cortado::{AnyDevice, Blob, CpuDevice, kernel::Elementwise};
///
/// let device = AnyDevice::new(&CpuDevice::new());
/// let x: Blob<f32> = Blob::new(&device, &[3])?;
/// device.fill(2.0, x.data_mut()?.view_mut())?;
/// assert_eq!(x.data()?.host()?, [2.0; 3]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone)]
pub struct AnyDevice(pub(super) Arc<Handle>);

pub(super) struct Handle {
    pub(super) device: Box<dyn ErasedDevice>,
    /// One `Box<dyn Kernels<T>>` for each element type `T`.
    pub(super) kernels: [Box<dyn Any + Send + Sync>; 4],
    /// Limit on the memory that this handle, its clones and its forks allocate together.
    pub(super) memory_limit: Option<Arc<MemoryLimit>>,
}

impl Handle {
    /// Counts an allocation toward the memory limit, if there is a limit.
    fn count(&self, bytes: usize) -> Result<Option<CountedBytes>> {
        let Some(limit) = &self.memory_limit else { return Ok(None) };
        limit.count(&self.device.name(), bytes).map(Some)
    }
}

impl AnyDevice {
    /// Returns the wrapped device if its type is `D`.
    ///
    /// ```
    /// use cortado::{AnyDevice, CpuDevice, SimulatedDevice};
    ///
    /// let device = AnyDevice::new(&CpuDevice::new());
    /// assert!(device.downcast_ref::<CpuDevice>().is_some());
    /// assert!(device.downcast_ref::<SimulatedDevice>().is_none());
    /// ```
    pub fn downcast_ref<D: Device>(&self) -> Option<&D> {
        (&*self.0.device as &dyn Any).downcast_ref()
    }

    /// Returns a handle to the same device, which allocates at most `bytes` bytes on the device and
    /// the host together. Clones and forks of the handle share the limit. The limit applies to the
    /// memory of blobs, but not to buffers of file contents or to the workspaces of kernels.
    ///
    /// An allocation that would exceed the limit returns [`Error::MemoryLimit`] and has no effect.
    /// If a blob of a net exceeds the limit, the error also names the layer and the blob.
    ///
    /// ```
    /// use cortado::{AnyDevice, Blob, CpuDevice, Error};
    ///
    /// let device = AnyDevice::new(&CpuDevice::new()).with_memory_limit(1000);
    /// let x: Blob<f32> = Blob::new(&device, &[200])?;
    /// x.fill(1.0)?; // 800 bytes
    /// let y: Blob<f32> = Blob::new(&device, &[100])?;
    /// let error = y.fill(1.0).unwrap_err();
    /// assert!(matches!(error, Error::MemoryLimit { bytes: 400, used: 800, limit: 1000, .. }));
    /// drop(x);
    /// y.fill(1.0)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// [`Error::MemoryLimit`]: crate::Error::MemoryLimit
    #[must_use]
    pub fn with_memory_limit(&self, bytes: usize) -> Self {
        self.0.device.with_limit(Arc::new(MemoryLimit::new(bytes)))
    }

    /// Returns the entry of `kernels` for element type `T`, downcast to `V`.
    pub(super) fn table<T: Element, V: Any>(&self) -> &V {
        for_element_type::<T, V>(self.0.kernels.each_ref().map(|kernels| &**kernels as &dyn Any))
    }
}

/// The methods of [`Memory`] that [`ErasedMemory`] lacks, because the coherence code does not need
/// them.
pub(super) trait ErasedDevice: ErasedMemory {
    /// Returns a handle to the same device. The handle has a separate queue and the given memory
    /// limit.
    fn fork_queue(&self, limit: Option<Arc<MemoryLimit>>) -> Result<AnyDevice>;
    /// Returns a handle to the same device and queue. The handle has the given memory limit.
    fn with_limit(&self, limit: Arc<MemoryLimit>) -> AnyDevice;
    fn host_workers(&self) -> &Workers;
    fn properties(&self) -> Vec<(&'static str, String)>;
    fn memory_usage(&self) -> Result<Option<MemoryUsage>>;
    fn record_spans(&self, on: bool) -> Result<bool>;
    fn take_spans(&self) -> Result<Vec<DeviceSpan>>;
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()>;
    fn inject_failure(&self, failure: FailureKind) -> bool;
}

impl Memory for AnyDevice {
    type Buffer = AnyBuffer;
    const COMPILED_HERE: CompiledHere = CompiledHere::YES;

    fn name(&self) -> String {
        self.0.device.name()
    }
    fn alloc(&self, bytes: usize) -> Result<AnyBuffer> {
        let counted_bytes = self.0.count(bytes)?;
        Ok(self.0.device.alloc(bytes)?.counted(counted_bytes))
    }
    fn upload(&self, src: &[u8], dst: &mut AnyBuffer, offset: usize) -> Result<()> {
        self.0.device.upload(src, dst, offset)
    }
    fn download(&self, src: &AnyBuffer, offset: usize, dst: &mut [u8]) -> Result<()> {
        self.0.device.download(src, offset, dst)
    }
    fn queue_id(&self) -> Option<usize> {
        self.0.device.queue_id()
    }
    #[track_caller]
    fn synchronize(&self) -> Result<()> {
        let start = trace::start();
        let result = diagnose_wait(&*self.0.device, || self.0.device.synchronize());
        start.finish(|| Work::Wait(Wait::Device));
        result
    }
    fn fork_queue(&self) -> Result<Self> {
        self.0.device.fork_queue(self.0.memory_limit.clone())
    }
    fn order_after(&self, other: &Self) -> Result<()> {
        self.0.device.order_after(&*other.0.device)
    }
    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        let counted_bytes = self.0.count(bytes)?;
        let bytes = self.0.device.alloc_host(bytes)?;
        Ok(match counted_bytes {
            Some(counted_bytes) => counted_bytes.attach(bytes),
            None => bytes,
        })
    }
    fn host_mapping(&self) -> Option<&dyn Mapping<AnyBuffer>> {
        self.0.device.is_unified().then_some(self)
    }
    fn host_workers(&self) -> &Workers {
        self.0.device.host_workers()
    }
    fn properties(&self) -> Vec<(&'static str, String)> {
        self.0.device.properties()
    }
    fn memory_usage(&self) -> Result<Option<MemoryUsage>> {
        self.0.device.memory_usage()
    }
    fn record_spans(&self, on: bool) -> Result<bool> {
        self.0.device.record_spans(on)
    }
    fn take_spans(&self) -> Result<Vec<DeviceSpan>> {
        self.0.device.take_spans()
    }
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()> {
        self.0.device.on_fallback(kernel)
    }
    fn inject_failure(&self, failure: FailureKind) -> bool {
        self.0.device.inject_failure(failure)
    }
    fn on_stale(&self, allocation: StaleAllocation<'_, AnyBuffer>) {
        self.0.device.on_stale(allocation);
    }
}

impl Mapping<AnyBuffer> for AnyDevice {
    fn map<'a>(&self, buffer: &'a AnyBuffer) -> Result<&'a [u8]> {
        self.0.device.map(buffer)
    }
    fn map_mut<'a>(&self, buffer: &'a mut AnyBuffer) -> Result<&'a mut [u8]> {
        self.0.device.map_mut(buffer)
    }
    fn adopt(&self, bytes: HostBytes) -> Result<AnyBuffer, HostBytes> {
        self.0.device.adopt(bytes)
    }
}

impl fmt::Debug for AnyDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.device.fmt(f)
    }
}

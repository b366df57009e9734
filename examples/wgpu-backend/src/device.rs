//! The wgpu device: an adapter, a stream of work, and the names of the kernels that run on the
//! host.

use crate::{
    kernel::Pipeline,
    kernel_errors,
    stream::{Stream, lock},
};
use cortado::{DType, Element, Error, Result, ledger, memory::BufferPool};
use pollster::block_on;
use std::{
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::{Arc, Mutex},
};

/// A wgpu adapter with one in-order stream of work. Clones of the device share the adapter and the
/// stream. A [fork](cortado::Memory::fork_queue) shares the adapter but has a separate stream.
#[derive(Clone)]
pub struct WgpuDevice {
    pub(crate) driver: Driver,
    /// Workspaces that later kernels reuse for intermediate results.
    pub(crate) workspaces: BufferPool<Driver>,
    host_kernels: Arc<[&'static str]>,
}

/// Largest total size, in bytes, of the workspaces in use and the cached workspaces.
const WORKSPACE_LIMIT: usize = 1 << 30;

/// Adapter and stream of a device, through which the device's pool of workspaces allocates buffers.
#[derive(Clone)]
pub struct Driver {
    pub(crate) context: Arc<Context>,
    pub(crate) stream: Arc<Stream>,
}

pub(crate) struct Context {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub limits: wgpu::Limits,
    adapter: String,
    /// Compiled pipelines, keyed by the name and the variant of the kernel.
    pub pipelines: Mutex<HashMap<String, Arc<Pipeline>>>,
    /// First error that queued work caused. The next call that waits for the queue returns the
    /// error.
    failure: Arc<Mutex<Option<String>>>,
}

impl WgpuDevice {
    /// Opens the most powerful adapter that wgpu finds.
    ///
    /// # Errors
    /// [`Error::Device`] if no adapter is found; errors of [`on`](Self::on).
    pub fn new() -> Result<Self> {
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = block_on(wgpu::Instance::default().request_adapter(&options));
        Self::on(&adapter.map_err(wgpu_error)?)
    }

    /// Opens `adapter` with the highest limits that the adapter supports.
    ///
    /// # Errors
    /// [`Error::Device`] if the adapter cannot be opened or does not support immediates, through
    /// which kernels receive their parameters.
    pub fn on(adapter: &wgpu::Adapter) -> Result<Self> {
        let limits = adapter.limits();
        let (device, queue) = block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: wgpu::Features::IMMEDIATES,
            required_limits: limits.clone(),
            ..Default::default()
        }))
        .map_err(wgpu_error)?;
        let failure = Arc::new(Mutex::new(None));
        let first_failure = Arc::clone(&failure);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            lock(&first_failure).get_or_insert(error.to_string());
        }));
        let (adapter, pipelines) = (adapter.get_info().name, Mutex::default());
        let stream = Arc::new(Stream::new(kernel_errors::buffer(&device)));
        let context = Arc::new(Context { device, queue, limits, adapter, pipelines, failure });
        let driver = Driver { context, stream };
        let workspaces = BufferPool::new(&driver, WORKSPACE_LIMIT);
        Ok(Self { driver, workspaces, host_kernels: Arc::new([]) })
    }

    /// Makes the named kernels run on the host, to measure how much time a native kernel saves or
    /// to find an incorrect kernel.
    #[must_use]
    pub fn leave_to_host(self, kernels: &[&'static str]) -> Self {
        Self { host_kernels: [&*self.host_kernels, kernels].concat().into(), ..self }
    }

    /// Returns the adapter's name.
    pub fn adapter(&self) -> &str {
        &self.context.adapter
    }

    pub(crate) fn with_driver(&self, driver: Driver) -> Self {
        let workspaces = self.workspaces.fork(&driver);
        Self { driver, workspaces, host_kernels: Arc::clone(&self.host_kernels) }
    }

    /// Opens the ledger scope of kernel `name`. Returns `None` if the kernel must run on the host,
    /// because the element type is not `f32` or because [`leave_to_host`](Self::leave_to_host)
    /// names the kernel.
    #[track_caller]
    pub(crate) fn native<T: Element>(&self, name: &'static str) -> Option<ledger::KernelScope> {
        if T::DTYPE != DType::F32 || self.host_kernels.contains(&name) {
            return None;
        }
        // `bool::then` would need a closure, which the ledger would record as the call site; `if`
        // needs none.
        Some(ledger::enter_kernel(name, T::DTYPE.name()))
    }

    /// Like [`native`](Self::native), but for a kernel that writes `u32` elements.
    #[track_caller]
    pub(crate) fn native_words(&self, name: &'static str) -> Option<ledger::KernelScope> {
        if self.host_kernels.contains(&name) {
            return None;
        }
        Some(ledger::enter_kernel(name, "u32"))
    }
}

impl Driver {
    pub(crate) fn with_new_stream(&self) -> Self {
        let stream = Arc::new(Stream::new(kernel_errors::buffer(&self.context.device)));
        Self { context: Arc::clone(&self.context), stream }
    }

    /// Waits until the queue is empty. Returns the first error that the queued work caused, if any.
    pub(crate) fn wait(&self) -> Result<()> {
        let result = self.context.device.poll(wgpu::PollType::wait_indefinitely());
        result.map_err(wgpu_error)?;
        match lock(&self.context.failure).take() {
            Some(failure) => Err(wgpu_error(failure)),
            None => Ok(()),
        }
    }
}

pub(crate) fn wgpu_error(error: impl fmt::Display) -> Error {
    Error::device("wgpu", error.to_string())
}

impl Deref for WgpuDevice {
    type Target = Driver;
    fn deref(&self) -> &Driver {
        &self.driver
    }
}

impl fmt::Debug for WgpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WgpuDevice({})", self.context.adapter)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver({})", self.context.adapter)
    }
}

//! The state that all queues of a GPU share: context, memory pools, modules, recent launches.

use super::{
    error::{CudaFailure, PendingLaunch, check_driver, from_cust},
    memory_pool::MemoryPool,
    module::Modules,
    pinned_pool::PinnedPool,
    requirements::{self, Version},
};
use crate::{
    error::{Error, Result},
    memory::MemoryUsage,
    sync::{Mutex, OnceLock},
};
use cust::{
    CudaApiVersion,
    context::{Context as Primary, CurrentContext},
    device::{Device, DeviceAttribute},
    sys::{CUdeviceptr, CUresult, CUstream, cuCtxSetCurrent, cuMemGetInfo_v2},
};
use std::{
    collections::{BTreeMap, VecDeque},
    env, ptr,
    sync::{Arc, LazyLock, Weak},
};

/// The open context of each GPU.
static OPEN: LazyLock<Mutex<BTreeMap<u32, Weak<Context>>>> = LazyLock::new(Mutex::default);

pub(super) struct Context {
    pub(super) name: String,
    /// The error after which the context is unusable.
    failure: OnceLock<CudaFailure>,
    // Fields are dropped in declaration order, so the modules and pools are dropped before the
    // context, and the context before `_released`.
    pub(super) modules: Modules,
    pub(super) pinned: PinnedPool,
    pub(super) pool: MemoryPool,
    primary: Primary,
    _released: NoCurrentContext,
    device: Device,
    pub(super) capability: Version,
    pub(super) multiprocessors: usize,
    pub(super) launches: Launches,
    /// The queues that defer launches and frees.
    deferring: Mutex<Vec<Weak<dyn Flush>>>,
    /// Whether each kernel launch waits until the kernel has run.
    pub(super) synchronous: bool,
}

impl Context {
    /// Returns the context of GPU number `ordinal`. All devices and buffers on this GPU share the
    /// context, which is closed when the last of them is dropped.
    pub(super) fn open(ordinal: u32) -> Result<Arc<Self>> {
        let mut open = OPEN.lock();
        if let Some(context) = open.get(&ordinal).and_then(Weak::upgrade) {
            return Ok(context);
        }
        let context = Arc::new(Self::new(ordinal)?);
        open.insert(ordinal, Arc::downgrade(&context));
        Ok(context)
    }

    fn new(ordinal: u32) -> Result<Self> {
        let name = format!("cuda:{ordinal}");
        let on = |failure: CudaFailure| failure.on(&name);
        let device = Device::get_device(ordinal).map_err(from_cust("cuDeviceGet")).map_err(on)?;
        let capability = requirements::check(&device, &name)?;
        let multiprocessors = device
            .get_attribute(DeviceAttribute::MultiprocessorCount)
            .map_err(from_cust("cuDeviceGetAttribute"))
            .map_err(on)?;
        // `Primary::new` makes the context current. `released` is declared before `primary`, so
        // that it is dropped after `primary` if a later call fails.
        let released = NoCurrentContext;
        let primary =
            Primary::new(device).map_err(from_cust("cuDevicePrimaryCtxRetain")).map_err(on)?;
        let pool = match requirements::has_memory_pools(&device) {
            true => MemoryPool::new(ordinal).map_err(on)?,
            false => MemoryPool::unpooled(),
        };
        Ok(Self {
            multiprocessors: usize::try_from(multiprocessors).unwrap_or(1).max(1),
            capability,
            modules: Modules::new((10 * capability.0 + capability.1) as u32),
            pinned: PinnedPool::default(),
            pool,
            primary,
            _released: released,
            device,
            failure: OnceLock::new(),
            launches: Launches::default(),
            deferring: Mutex::default(),
            synchronous: env::var_os("CORTADO_CUDA_SYNC").is_some_and(|value| value == "1"),
            name,
        })
    }

    /// Makes this context current on the calling thread. Callers make the context current before
    /// every driver call, because another context may be current on the thread.
    ///
    /// # Errors
    /// If an earlier error has made the context unusable, returns that error again, because the
    /// error lists the kernel launches that may have caused it.
    pub(super) fn enter(&self) -> Result<()> {
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone().on(&self.name));
        }
        self.make_current().map_err(|failure| self.error(failure))
    }

    fn make_current(&self) -> Result<(), CudaFailure> {
        CurrentContext::set_current(&self.primary).map_err(from_cust("cuCtxSetCurrent"))
    }

    /// Checks the result of the driver function `call`. The returned error lists the kernel
    /// launches that may have caused the error.
    pub(super) fn check(&self, call: &'static str, result: CUresult) -> Result<()> {
        check_driver(call, result).map_err(|failure| self.error(failure))
    }

    pub(super) fn error(&self, failure: CudaFailure) -> Error {
        let failure = failure.with_launches(|| self.launches.pending());
        if failure.is_permanent() {
            return self.failure.get_or_init(|| failure).clone().on(&self.name);
        }
        failure.on(&self.name)
    }

    /// Registers a queue that defers launches and frees.
    pub(super) fn register(&self, queue: Weak<dyn Flush>) {
        let mut deferring = self.deferring.lock();
        deferring.retain(|queue| queue.strong_count() > 0);
        deferring.push(queue);
    }

    /// Allocates device memory for work on `stream`. If the driver reports that the GPU is out of
    /// memory, waits for the deferred and queued frees of all queues, trims the pool and retries once.
    pub(super) fn alloc(&self, bytes: usize, stream: CUstream) -> Result<CUdeviceptr> {
        let address = match self.pool.take(bytes, stream) {
            Err(failure) if failure.is_out_of_memory() => {
                let queues: Vec<_> =
                    self.deferring.lock().iter().filter_map(Weak::upgrade).collect();
                queues.iter().for_each(|queue| queue.flush());
                CurrentContext::synchronize()
                    .map_err(from_cust("cuCtxSynchronize"))
                    .and_then(|()| self.pool.release())
                    .and_then(|()| self.pool.take(bytes, stream))
            }
            result => result,
        };
        address.map_err(|failure| match failure.is_out_of_memory() {
            true => Error::OutOfMemory { device: self.name.clone(), bytes },
            false => self.error(failure),
        })
    }

    /// Returns the sizes of the GPU's total and free memory, and of the memory pool.
    pub(super) fn memory_usage(&self) -> Result<MemoryUsage> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both sizes are valid for writes.
        self.check("cuMemGetInfo", unsafe { cuMemGetInfo_v2(&mut free, &mut total) })?;
        let pool = self.pool.usage().map_err(|failure| self.error(failure))?;
        Ok(MemoryUsage { total, free, pool })
    }

    /// Returns the names and values of the GPU's and the driver's properties.
    pub(super) fn properties(&self) -> Vec<(&'static str, String)> {
        let (major, minor) = self.capability;
        let has_bf16 = self.modules.find("gemm_small_bf16").is_some();
        let host_kernels = "gemm and convolutions of bf16, which need compute capability 8.0";
        let gibibytes = |bytes: usize| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
        let version =
            |version: CudaApiVersion| format!("CUDA {}.{}", version.major(), version.minor());
        let known = [
            ("processor", self.device.name().ok()),
            ("compute capability", Some(format!("{major}.{minor}"))),
            ("multiprocessors", Some(self.multiprocessors.to_string())),
            ("memory", self.device.total_memory().ok().map(gibibytes)),
            ("driver", CudaApiVersion::get().ok().map(version)),
            ("memory pools", Some(if self.pool.is_pooled() { "yes" } else { "no" }.into())),
            ("run on the host", (!has_bf16).then(|| host_kernels.into())),
        ];
        known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // The destructors of the fields call the driver, which requires this context to be current.
        let _ = self.make_current();
    }
}

/// Removes the current context from the calling thread on drop. Without this type, a released
/// context would stay current on the thread that drops the last device on a GPU.
struct NoCurrentContext;

impl Drop for NoCurrentContext {
    fn drop(&mut self) {
        // SAFETY: a null context removes the current context from the thread.
        let _ = unsafe { cuCtxSetCurrent(ptr::null_mut()) };
    }
}

/// A queue that defers launches and frees.
pub(super) trait Flush: Send + Sync {
    /// Queues the deferred launches and frees.
    fn flush(&self);
}

/// The most recent kernel launches whose queues have not been synchronized since.
#[derive(Default)]
pub(super) struct Launches(Mutex<VecDeque<(usize, PendingLaunch)>>);

const MAX_LAUNCHES: usize = 16;

impl Launches {
    pub(super) fn add(&self, stream: CUstream, launched: PendingLaunch) {
        let mut launches = self.0.lock();
        if launches.len() == MAX_LAUNCHES {
            launches.pop_front();
        }
        launches.push_back((stream as usize, launched));
    }

    /// Removes the launches of a queue from the list after the queue has been synchronized without
    /// error.
    pub(super) fn clear(&self, stream: CUstream) {
        self.0.lock().retain(|(queue, _)| *queue != stream as usize);
    }

    fn pending(&self) -> Vec<PendingLaunch> {
        self.0.lock().iter().map(|(_, launched)| launched.clone()).collect()
    }
}

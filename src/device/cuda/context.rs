//! A GPU: its context, its pool of memory, its modules, and what it was told to do lately.

use super::{
    error::{CudaFailure, PendingLaunch, check_driver, from_cust},
    memory_pool::MemoryPool,
    module::Modules,
    pinned_pool::PinnedPool,
};
use crate::error::{Error, Result};
use cust::{
    CudaApiVersion,
    context::{Context as Primary, CurrentContext},
    device::{Device, DeviceAttribute},
    sys::{CUresult, CUstream},
};
use parking_lot::Mutex;
use std::{collections::VecDeque, env};

/// What all queues of a GPU share.
pub(super) struct Context {
    pub(super) name: String,
    // In the order in which they end.
    pub(super) modules: Modules,
    pub(super) pinned: PinnedPool,
    pub(super) pool: MemoryPool,
    primary: Primary,
    device: Device,
    pub(super) multiprocessors: usize,
    pub(super) launches: Launches,
    /// Whether every launch is waited for.
    pub(super) synchronous: bool,
}

impl Context {
    /// Opens the GPU of this number, of whose memory at most `limit` bytes are to be used.
    pub(super) fn new(ordinal: u32, limit: Option<usize>) -> Result<Self> {
        let name = format!("cuda:{ordinal}");
        let on = |failure: CudaFailure| failure.on(&name);
        let device = Device::get_device(ordinal).map_err(from_cust("cuDeviceGet")).map_err(on)?;
        let attribute = |which| {
            device.get_attribute(which).map_err(from_cust("cuDeviceGetAttribute")).map_err(on)
        };
        let primary =
            Primary::new(device).map_err(from_cust("cuDevicePrimaryCtxRetain")).map_err(on)?;
        let multiprocessors = attribute(DeviceAttribute::MultiprocessorCount)?;
        let pool = MemoryPool::new(ordinal, limit).map_err(on)?;
        Ok(Self {
            multiprocessors: usize::try_from(multiprocessors).unwrap_or(1).max(1),
            modules: Modules::default(),
            pinned: PinnedPool::default(),
            pool,
            primary,
            device,
            launches: Launches::default(),
            synchronous: env::var_os("CORTADO_CUDA_SYNC").is_some_and(|value| value == "1"),
            name,
        })
    }

    /// Makes this the calling thread's GPU: before every call of the driver, since a thread has
    /// whichever it used last.
    pub(super) fn enter(&self) -> Result<()> {
        let entered = CurrentContext::set_current(&self.primary);
        entered.map_err(|error| from_cust("cuCtxSetCurrent")(error).on(&self.name))
    }

    /// What the driver's function `call` said, with the launches that may be the cause of it.
    pub(super) fn check(&self, call: &'static str, result: CUresult) -> Result<()> {
        check_driver(call, result).map_err(|failure| self.error(failure))
    }

    pub(super) fn error(&self, failure: CudaFailure) -> Error {
        failure.after(|| self.launches.pending()).on(&self.name)
    }

    /// Names and values, as far as the driver tells them.
    pub(super) fn properties(&self) -> Vec<(&'static str, String)> {
        let number = |which| self.device.get_attribute(which).ok();
        let capability = number(DeviceAttribute::ComputeCapabilityMajor)
            .zip(number(DeviceAttribute::ComputeCapabilityMinor))
            .map(|(major, minor)| format!("{major}.{minor}"));
        let gibibytes = |bytes: usize| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
        let version =
            |version: CudaApiVersion| format!("CUDA {}.{}", version.major(), version.minor());
        let known = [
            ("processor", self.device.name().ok()),
            ("compute capability", capability),
            ("multiprocessors", Some(self.multiprocessors.to_string())),
            ("memory", self.device.total_memory().ok().map(gibibytes)),
            ("driver", CudaApiVersion::get().ok().map(version)),
        ];
        known.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Its parts end where it is current.
        let _ = self.enter();
    }
}

/// The launches that nobody has waited for yet, the latest of them.
#[derive(Default)]
pub(super) struct Launches(Mutex<VecDeque<(usize, PendingLaunch)>>);

/// How many are remembered.
const REMEMBERED: usize = 16;

impl Launches {
    pub(super) fn add(&self, stream: CUstream, launched: PendingLaunch) {
        let mut launches = self.0.lock();
        if launches.len() == REMEMBERED {
            launches.pop_front();
        }
        launches.push_back((stream as usize, launched));
    }

    /// Those of a queue that was waited for did well.
    pub(super) fn done(&self, stream: CUstream) {
        self.0.lock().retain(|(of, _)| *of != stream as usize);
    }

    fn pending(&self) -> Vec<PendingLaunch> {
        self.0.lock().iter().map(|(_, launched)| launched.clone()).collect()
    }
}

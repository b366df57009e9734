//! The device: an adapter, a stream of work for it, and what is left to the host.

use crate::{complaints, kernel::Pipeline, stream::Stream};
use cortado::{DType, Element, Error, Result, ledger};
use parking_lot::Mutex;
use pollster::block_on;
use std::{collections::HashMap, fmt, sync::Arc};

/// An adapter of wgpu, and one in-order stream of work for it. Clones share both; a
/// [`fork`](cortado::Memory::fork_queue) has a stream of its own.
#[derive(Clone)]
pub struct WgpuDevice {
    pub(crate) shared: Arc<Shared>,
    pub(crate) stream: Arc<Stream>,
    left: Arc<[&'static str]>,
}

pub(crate) struct Shared {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub limits: wgpu::Limits,
    adapter: String,
    /// By the kernel's name and variant.
    pub pipelines: Mutex<HashMap<String, Arc<Pipeline>>>,
    /// What went wrong with queued work, until somebody waits for it.
    failure: Arc<Mutex<Option<String>>>,
}

impl WgpuDevice {
    /// The most powerful adapter.
    ///
    /// # Errors
    /// [`Error::Device`] if there is none, or as [`on`](Self::on).
    pub fn new() -> Result<Self> {
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        let adapter = block_on(wgpu::Instance::default().request_adapter(&options));
        Self::on(&adapter.map_err(failed)?)
    }

    /// The adapter given, with all of its limits.
    ///
    /// # Errors
    /// [`Error::Device`] if it cannot be opened or has no immediates, in which kernels take
    /// their parameters.
    pub fn on(adapter: &wgpu::Adapter) -> Result<Self> {
        let limits = adapter.limits();
        let (device, queue) = block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: wgpu::Features::IMMEDIATES,
            required_limits: limits.clone(),
            ..Default::default()
        }))
        .map_err(failed)?;
        let failure = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&failure);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            seen.lock().get_or_insert(error.to_string());
        }));
        let (adapter, pipelines) = (adapter.get_info().name, Mutex::default());
        let stream = Arc::new(Stream::new(complaints::buffer(&device)));
        let shared = Arc::new(Shared { device, queue, limits, adapter, pipelines, failure });
        Ok(Self { shared, stream, left: Arc::new([]) })
    }

    /// This device without kernels of its own by these names: to see what each of them brings,
    /// or which of them errs.
    #[must_use]
    pub fn leave_to_host(self, kernels: &[&'static str]) -> Self {
        Self { left: [&*self.left, kernels].concat().into(), ..self }
    }

    /// The adapter's name.
    pub fn adapter(&self) -> &str {
        &self.shared.adapter
    }

    /// Another stream.
    pub(crate) fn forked(&self) -> Self {
        let stream = Arc::new(Stream::new(complaints::buffer(&self.shared.device)));
        Self { stream, ..self.clone() }
    }

    /// Opens the account of kernel `name` if it has a shader for `T`.
    #[track_caller]
    pub(crate) fn native<T: Element>(&self, name: &'static str) -> Option<ledger::Running> {
        if T::DTYPE != DType::F32 || self.left.contains(&name) {
            return None;
        }
        // Not in a closure, which would be the caller.
        Some(ledger::kernel(name, T::DTYPE.name()))
    }

    /// Opens the account of kernel `name` of words, if it is not left to the host.
    #[track_caller]
    pub(crate) fn native_words(&self, name: &'static str) -> Option<ledger::Running> {
        if self.left.contains(&name) {
            return None;
        }
        Some(ledger::kernel(name, "u32"))
    }

    /// Waits for the queue, and tells what went wrong with its work.
    pub(crate) fn wait(&self) -> Result<()> {
        let waited = self.shared.device.poll(wgpu::PollType::wait_indefinitely());
        waited.map_err(failed)?;
        match self.shared.failure.lock().take() {
            Some(failure) => Err(failed(failure)),
            None => Ok(()),
        }
    }
}

/// An error of wgpu's.
pub(crate) fn failed(error: impl fmt::Display) -> Error {
    Error::device("wgpu", error.to_string())
}

impl fmt::Debug for WgpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WgpuDevice({})", self.shared.adapter)
    }
}

//! Conversion of any device to an [`AnyDevice`].

use super::{
    handle::{AnyDevice, ErasedDevice, Handle},
    kernels::Kernels,
};
#[cfg(feature = "cuda")]
use crate::device::cuda::CudaDevice;
use crate::{
    device::{Device, cpu::CpuDevice, simulated::SimulatedDevice},
    element::{Element, bf16, f16},
    error::Result,
    host::Workers,
    memory::{DeviceSpan, FailureKind, KernelCall, Memory, MemoryLimit, MemoryUsage},
};
use std::{any::Any, sync::Arc};

impl AnyDevice {
    /// Returns a handle to `device`. If `device` is an `AnyDevice`, returns a clone.
    pub fn new<D: Device>(device: &D) -> Self {
        // The condition is a constant, so that the calling crate does not compile the `else` branch
        // for a device of this crate. The `else` branch would instantiate all kernels in the
        // calling crate.
        if const { D::COMPILED_HERE.get() } {
            erase_library_device(device).expect("only devices of this crate set `COMPILED_HERE`")
        } else {
            Self::erase(device)
        }
    }

    /// Returns a handle to a device that is not an `AnyDevice`.
    fn erase<D: Device>(device: &D) -> Self {
        Self::erase_limited(device, None)
    }

    /// Like [`erase`](Self::erase), but the handle has the given memory limit.
    fn erase_limited<D: Device>(device: &D, memory_limit: Option<Arc<MemoryLimit>>) -> Self {
        fn kernels<T: Element, D: Device>(device: &D) -> Box<dyn Any + Send + Sync> {
            let kernels: Box<dyn Kernels<T>> = Box::new(device.clone());
            Box::new(kernels)
        }
        let kernels = [
            kernels::<f16, D>(device),
            kernels::<bf16, D>(device),
            kernels::<f32, D>(device),
            kernels::<f64, D>(device),
        ];
        Self(Arc::new(Handle { device: Box::new(device.clone()), kernels, memory_limit }))
    }
}

impl<D: Device> ErasedDevice for D {
    fn fork_queue(&self, limit: Option<Arc<MemoryLimit>>) -> Result<AnyDevice> {
        Ok(AnyDevice::erase_limited(&Memory::fork_queue(self)?, limit))
    }
    fn with_limit(&self, limit: Arc<MemoryLimit>) -> AnyDevice {
        AnyDevice::erase_limited(self, Some(limit))
    }
    fn host_workers(&self) -> &Workers {
        Memory::host_workers(self)
    }
    fn properties(&self) -> Vec<(&'static str, String)> {
        Memory::properties(self)
    }
    fn memory_usage(&self) -> Result<Option<MemoryUsage>> {
        Memory::memory_usage(self)
    }
    fn record_spans(&self, on: bool) -> Result<bool> {
        Memory::record_spans(self, on)
    }
    fn take_spans(&self) -> Result<Vec<DeviceSpan>> {
        Memory::take_spans(self)
    }
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()> {
        Memory::on_fallback(self, kernel)
    }
    fn inject_failure(&self, failure: FailureKind) -> bool {
        Memory::inject_failure(self, failure)
    }
}

/// Returns a handle to `device` if this crate defines the type of `device`.
fn erase_library_device(device: &dyn Any) -> Option<AnyDevice> {
    if let Some(device) = device.downcast_ref::<AnyDevice>() {
        return Some(device.clone());
    }
    if let Some(device) = device.downcast_ref::<CpuDevice>() {
        return Some(AnyDevice::erase(device));
    }
    #[cfg(feature = "cuda")]
    if let Some(device) = device.downcast_ref::<CudaDevice>() {
        return Some(AnyDevice::erase(device));
    }
    Some(AnyDevice::erase(device.downcast_ref::<SimulatedDevice>()?))
}

//! A device of any type, so that the code above the kernels is compiled once for all devices.

mod convert;
mod kernels;

use crate::{
    device::Device,
    element::{Element, bf16, f16, for_element_type},
    error::Result,
    host::Workers,
    memory::{AnyBuffer, ErasedMemory, HostBytes, KernelCall, Mapping, Memory, StaleAllocation},
};
use kernels::Kernels;
use std::{any::Any, fmt, sync::Arc};

/// A device whose type is known only at run time.
///
/// Nets, layers and solvers run on an `AnyDevice`, so this crate compiles them once. A method calls
/// the method of the same name of the device that this value stands for. A clone is a handle to the
/// same device and queue.
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
pub struct AnyDevice(Arc<Handle>);

struct Handle {
    device: Box<dyn ErasedDevice>,
    f16: Box<dyn Kernels<f16>>,
    bf16: Box<dyn Kernels<bf16>>,
    f32: Box<dyn Kernels<f32>>,
    f64: Box<dyn Kernels<f64>>,
}

impl AnyDevice {
    /// Returns a handle to `device`. If `device` is an `AnyDevice`, returns a clone.
    pub fn new<D: Device>(device: &D) -> Self {
        // The constant keeps the other branch, with all kernels, out of the calling crate.
        if D::COMPILED_HERE {
            super::erase_own_device(device).expect("a device of this crate")
        } else {
            Self::erase(device)
        }
    }

    /// Returns a handle to a device that is not an `AnyDevice`.
    pub(super) fn erase<D: Device>(device: &D) -> Self {
        Self(Arc::new(Handle {
            device: Box::new(device.clone()),
            f16: Box::new(device.clone()),
            bf16: Box::new(device.clone()),
            f32: Box::new(device.clone()),
            f64: Box::new(device.clone()),
        }))
    }

    /// Returns the device as a `D`, if it is one.
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

    fn kernels<T: Element>(&self) -> &dyn Kernels<T> {
        let Handle { f16, bf16, f32, f64, .. } = &*self.0;
        let kernels: [&dyn Any; 4] = [f16, bf16, f32, f64];
        &**for_element_type::<T, Box<dyn Kernels<T>>>(kernels)
    }
}

/// The methods of [`Memory`] that memory itself does not need; see [`ErasedMemory`].
trait ErasedDevice: ErasedMemory {
    fn fork_queue(&self) -> Result<AnyDevice>;
    fn host_workers(&self) -> &Workers;
    fn properties(&self) -> Vec<(&'static str, String)>;
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()>;
}

impl<D: Device> ErasedDevice for D {
    fn fork_queue(&self) -> Result<AnyDevice> {
        Ok(AnyDevice::new(&Memory::fork_queue(self)?))
    }
    fn host_workers(&self) -> &Workers {
        Memory::host_workers(self)
    }
    fn properties(&self) -> Vec<(&'static str, String)> {
        Memory::properties(self)
    }
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()> {
        Memory::on_fallback(self, kernel)
    }
}

impl Memory for AnyDevice {
    type Buffer = AnyBuffer;
    const COMPILED_HERE: bool = true;

    fn name(&self) -> String {
        self.0.device.name()
    }
    fn alloc(&self, bytes: usize) -> Result<AnyBuffer> {
        self.0.device.alloc(bytes)
    }
    fn upload(&self, src: &[u8], dst: &mut AnyBuffer, offset: usize) -> Result<()> {
        self.0.device.upload(src, dst, offset)
    }
    fn download(&self, src: &AnyBuffer, offset: usize, dst: &mut [u8]) -> Result<()> {
        self.0.device.download(src, offset, dst)
    }
    fn synchronize(&self) -> Result<()> {
        self.0.device.synchronize()
    }
    fn fork_queue(&self) -> Result<Self> {
        self.0.device.fork_queue()
    }
    fn order_after(&self, other: &Self) -> Result<()> {
        self.0.device.order_after(&*other.0.device)
    }
    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        self.0.device.alloc_host(bytes)
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
    fn on_fallback(&self, kernel: &KernelCall) -> Result<()> {
        self.0.device.on_fallback(kernel)
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

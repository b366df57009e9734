//! Type-erased [`Memory`], so that the code for coherence is compiled once for all devices.

use super::{
    host_bytes::HostBytes,
    memory_limit::CountedBytes,
    memory_trait::{Memory, StaleAllocation},
};
use crate::error::{Error, Result};
use std::{any::Any, fmt};

/// A type-erased device buffer, for a device whose type is known only at run time.
///
/// ```
/// use cortado::{AnyDevice, Memory, SimulatedDevice, device::simulated::Buffer};
///
/// let buffer = AnyDevice::new(&SimulatedDevice::new()).alloc(8)?;
/// assert_eq!(buffer.downcast_ref::<Buffer>().map(Buffer::bytes), Some(8));
/// assert!(buffer.downcast_ref::<Vec<u8>>().is_none());
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct AnyBuffer {
    buffer: Box<dyn Any + Send + Sync>,
    /// The bytes of the buffer, counted toward the memory limit of the device; `None` without a
    /// limit.
    _counted_bytes: Option<CountedBytes>,
}

impl AnyBuffer {
    pub(super) fn new<B: Send + Sync + 'static>(buffer: B) -> Self {
        Self { buffer: Box::new(buffer), _counted_bytes: None }
    }

    /// Counts the buffer toward a memory limit until the buffer is dropped.
    pub(crate) fn counted(self, counted: Option<CountedBytes>) -> Self {
        Self { _counted_bytes: counted, ..self }
    }

    /// Returns the buffer as a `&B`, or `None` if the buffer has another type. The buffer of an
    /// [`AnyDevice`](crate::AnyDevice) contains the buffer of the wrapped device, and downcasts to
    /// the type of either buffer.
    pub fn downcast_ref<B: 'static>(&self) -> Option<&B> {
        let buffer = &self.buffer;
        buffer.downcast_ref().or_else(|| buffer.downcast_ref::<Self>()?.downcast_ref())
    }

    /// Returns the buffer as a `&mut B`, like [`downcast_ref`](Self::downcast_ref).
    pub fn downcast_mut<B: 'static>(&mut self) -> Option<&mut B> {
        if self.buffer.is::<B>() {
            self.buffer.downcast_mut()
        } else {
            self.buffer.downcast_mut::<Self>()?.downcast_mut()
        }
    }
}

impl fmt::Debug for AnyBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyBuffer")
    }
}

/// A variant of [`Memory`] in which [`AnyBuffer`] is the buffer type of every device. Each method
/// corresponds to the method with the same name in `Memory` or [`Mapping`](super::Mapping).
pub(crate) trait ErasedMemory: Any + Send + Sync + fmt::Debug {
    fn name(&self) -> String;
    fn alloc(&self, bytes: usize) -> Result<AnyBuffer>;
    fn upload(&self, src: &[u8], dst: &mut AnyBuffer, offset: usize) -> Result<()>;
    fn download(&self, src: &AnyBuffer, offset: usize, dst: &mut [u8]) -> Result<()>;
    fn synchronize(&self) -> Result<()>;
    fn queue_id(&self) -> Option<usize>;
    fn order_after(&self, other: &dyn ErasedMemory) -> Result<()>;
    fn alloc_host(&self, bytes: usize) -> Result<HostBytes>;
    fn on_stale(&self, allocation: StaleAllocation<'_, AnyBuffer>);
    /// Returns whether the device has unified memory. Without unified memory, `map`, `map_mut` and
    /// `adopt` fail.
    fn is_unified(&self) -> bool;
    fn map<'a>(&self, buffer: &'a AnyBuffer) -> Result<&'a [u8]>;
    fn map_mut<'a>(&self, buffer: &'a mut AnyBuffer) -> Result<&'a mut [u8]>;
    fn adopt(&self, bytes: HostBytes) -> Result<AnyBuffer, HostBytes>;
}

impl<D: Memory> ErasedMemory for D {
    fn name(&self) -> String {
        Memory::name(self)
    }
    fn alloc(&self, bytes: usize) -> Result<AnyBuffer> {
        Ok(AnyBuffer::new(Memory::alloc(self, bytes)?))
    }
    fn upload(&self, src: &[u8], dst: &mut AnyBuffer, offset: usize) -> Result<()> {
        let dst = dst.downcast_mut().ok_or_else(|| foreign_buffer_error(self))?;
        Memory::upload(self, src, dst, offset)
    }
    fn download(&self, src: &AnyBuffer, offset: usize, dst: &mut [u8]) -> Result<()> {
        let src = src.downcast_ref().ok_or_else(|| foreign_buffer_error(self))?;
        Memory::download(self, src, offset, dst)
    }
    fn synchronize(&self) -> Result<()> {
        Memory::synchronize(self)
    }
    fn queue_id(&self) -> Option<usize> {
        Memory::queue_id(self)
    }
    fn order_after(&self, other: &dyn ErasedMemory) -> Result<()> {
        match (other as &dyn Any).downcast_ref() {
            Some(other) => Memory::order_after(self, other),
            None => other.synchronize(),
        }
    }
    fn alloc_host(&self, bytes: usize) -> Result<HostBytes> {
        Memory::alloc_host(self, bytes)
    }
    fn on_stale(&self, allocation: StaleAllocation<'_, AnyBuffer>) {
        match allocation {
            StaleAllocation::Host(bytes) => Memory::on_stale(self, StaleAllocation::Host(bytes)),
            StaleAllocation::Device(buffer) => {
                if let Some(buffer) = buffer.downcast_mut() {
                    Memory::on_stale(self, StaleAllocation::Device(buffer));
                }
            }
        }
    }
    fn is_unified(&self) -> bool {
        self.host_mapping().is_some()
    }
    fn map<'a>(&self, buffer: &'a AnyBuffer) -> Result<&'a [u8]> {
        let mapping = self.host_mapping().ok_or_else(|| not_unified_error(self))?;
        mapping.map(buffer.downcast_ref().ok_or_else(|| foreign_buffer_error(self))?)
    }
    fn map_mut<'a>(&self, buffer: &'a mut AnyBuffer) -> Result<&'a mut [u8]> {
        let mapping = self.host_mapping().ok_or_else(|| not_unified_error(self))?;
        mapping.map_mut(buffer.downcast_mut().ok_or_else(|| foreign_buffer_error(self))?)
    }
    fn adopt(&self, bytes: HostBytes) -> Result<AnyBuffer, HostBytes> {
        match self.host_mapping() {
            Some(mapping) => Ok(AnyBuffer::new(mapping.adopt(bytes)?)),
            None => Err(bytes),
        }
    }
}

/// Returns the error for a buffer from a device whose type differs from that of `device`.
pub(super) fn foreign_buffer_error(device: &dyn ErasedMemory) -> Error {
    Error::device(device.name(), "the operand's memory belongs to another type of device")
}

fn not_unified_error(device: &dyn ErasedMemory) -> Error {
    Error::device(device.name(), "host_mapping() changed between calls")
}

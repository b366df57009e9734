//! Device memory of a GPU.

use super::stream::Stream;
use crate::{
    error::{Error, Result},
    sync::Mutex,
};
use cust::sys::{CUdeviceptr, cuMemsetD8Async};
use std::{fmt, sync::Arc};

/// A range of device memory. When the buffer is dropped, the driver frees the memory after all
/// queued work that uses the memory is done.
///
/// ```no_run
/// use cortado::{Memory, device::CudaDevice};
///
/// let gpu = CudaDevice::new(0)?;
/// let (mut buffer, mut bytes) = (gpu.alloc(4)?, [9; 4]);
/// gpu.upload(&[1, 2], &mut buffer, 2)?;
/// gpu.download(&buffer, 0, &mut bytes)?;
/// assert_eq!((buffer.len(), bytes), (4, [0, 0, 1, 2]));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct CudaBuffer {
    address: CUdeviceptr,
    bytes: usize,
    /// Queue on which the memory is allocated and freed.
    owner: Arc<Stream>,
    /// Other queues that have used the memory.
    users: Mutex<Vec<Arc<Stream>>>,
}

impl CudaBuffer {
    /// Allocates `bytes` uninitialized bytes.
    pub(super) fn new(owner: &Arc<Stream>, bytes: usize) -> Result<Self> {
        let address = if bytes == 0 { 0 } else { alloc(owner, bytes)? };
        Ok(Self { address, bytes, owner: Arc::clone(owner), users: Mutex::default() })
    }

    pub(super) fn zeroed(owner: &Arc<Stream>, bytes: usize) -> Result<Self> {
        let buffer = Self::new(owner, bytes)?;
        if bytes > 0 {
            // SAFETY: `new` allocated `bytes` bytes at this address, on the same stream.
            let set = unsafe { cuMemsetD8Async(buffer.address, 0, bytes, owner.raw()) };
            owner.context.check("cuMemsetD8Async", set)?;
        }
        Ok(buffer)
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether the size is 0.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the device address for work on `stream`. The caller must queue this work on `stream`
    /// before the buffer is dropped.
    pub(super) fn used_by(&self, stream: &Arc<Stream>) -> CUdeviceptr {
        if !Arc::ptr_eq(stream, &self.owner) {
            let mut users = self.users.lock();
            if !users.iter().any(|user| Arc::ptr_eq(user, stream)) {
                users.push(Arc::clone(stream));
            }
        }
        self.address
    }
}

/// Allocates device memory within the memory limit.
fn alloc(owner: &Stream, bytes: usize) -> Result<CUdeviceptr> {
    let context = &owner.context;
    context.enter()?;
    if !owner.budget.reserve(bytes) {
        return Err(Error::OutOfMemory { device: context.name.clone(), bytes });
    }
    context.alloc(bytes, owner.raw()).inspect_err(|_| owner.budget.release(bytes))
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        if self.bytes == 0 || self.owner.context.enter().is_err() {
            return;
        }
        for user in self.users.get_mut() {
            // `order_after` fails only if the GPU, and with it all of its memory, is lost.
            let _ = self.owner.order_after(user);
        }
        self.owner.free(self.address);
        self.owner.budget.release(self.bytes);
    }
}

impl fmt::Debug for CudaBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaBuffer({} bytes of {})", self.bytes, self.owner.context.name)
    }
}

//! Memory of a GPU.

use super::stream::Stream;
use crate::error::{Error, Result};
use cust::sys::{CUdeviceptr, cuMemsetD8Async};
use parking_lot::Mutex;
use std::{fmt, sync::Arc};

/// A run of bytes of a GPU. Dropped, it is given back when the work that uses it is done.
pub struct CudaBuffer {
    address: CUdeviceptr,
    bytes: usize,
    /// The queue in whose order it was taken and is given back.
    home: Arc<Stream>,
    /// Other queues that have used it.
    guests: Mutex<Vec<Arc<Stream>>>,
}

impl CudaBuffer {
    /// `bytes` bytes of any content.
    pub(super) fn new(home: &Arc<Stream>, bytes: usize) -> Result<Self> {
        let address = if bytes == 0 { 0 } else { take(home, bytes)? };
        Ok(Self { address, bytes, home: Arc::clone(home), guests: Mutex::default() })
    }

    /// `bytes` bytes, all zero.
    pub(super) fn zeroed(home: &Arc<Stream>, bytes: usize) -> Result<Self> {
        let buffer = Self::new(home, bytes)?;
        if bytes > 0 {
            // SAFETY: the buffer has that many bytes.
            let set = unsafe { cuMemsetD8Async(buffer.address, 0, bytes, home.raw()) };
            home.context.check("cuMemsetD8Async", set)?;
        }
        Ok(buffer)
    }

    /// Bytes of it.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Its address, for work on `stream` that is queued before the buffer is dropped.
    pub(super) fn used_by(&self, stream: &Arc<Stream>) -> CUdeviceptr {
        if !Arc::ptr_eq(stream, &self.home) {
            let mut guests = self.guests.lock();
            if !guests.iter().any(|guest| Arc::ptr_eq(guest, stream)) {
                guests.push(Arc::clone(stream));
            }
        }
        self.address
    }
}

/// Takes memory; if there is too little, once more when all that the queue gave back is free.
fn take(home: &Stream, bytes: usize) -> Result<CUdeviceptr> {
    let context = &home.context;
    context.enter()?;
    let taken = match context.pool.take(bytes, home.raw()) {
        Err(failure) if failure.is_out_of_memory() => {
            home.wait()?;
            context.pool.release().map_err(|failure| context.error(failure))?;
            context.pool.take(bytes, home.raw())
        }
        taken => taken,
    };
    taken.map_err(|failure| match failure.is_out_of_memory() {
        true => Error::OutOfMemory { device: context.name.clone(), bytes },
        false => context.error(failure),
    })
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        if self.bytes == 0 || self.home.context.enter().is_err() {
            return;
        }
        for guest in self.guests.get_mut() {
            // If that fails the GPU is lost, and all memory with it.
            let _ = self.home.after(guest);
        }
        self.home.context.pool.give(self.address, self.bytes, self.home.raw());
    }
}

impl fmt::Debug for CudaBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaBuffer({} bytes of {})", self.bytes, self.home.context.name)
    }
}

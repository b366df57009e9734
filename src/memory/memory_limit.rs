//! A limit on the total memory that all handles of one device allocate.

use super::host_bytes::{HostBytes, HostStorage};
use crate::{
    error::{Error, Result},
    sync::Mutex,
};
use std::sync::Arc;

/// A limit in bytes, and the number of bytes that are allocated under the limit.
pub(crate) struct MemoryLimit {
    limit: usize,
    used: Mutex<usize>,
}

/// The bytes of one allocation, which count toward a limit until this `CountedBytes` is dropped.
pub(crate) struct CountedBytes {
    limit: Arc<MemoryLimit>,
    bytes: usize,
}

impl MemoryLimit {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: Mutex::new(0) }
    }

    /// Counts `bytes` more bytes toward the memory limit. The error names the device `device`.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] if the sum of all counted bytes would exceed the limit.
    pub(crate) fn count(self: &Arc<Self>, device: &str, bytes: usize) -> Result<CountedBytes> {
        let mut used = self.used.lock();
        match used.checked_add(bytes).filter(|&sum| sum <= self.limit) {
            Some(sum) => {
                *used = sum;
                Ok(CountedBytes { limit: Arc::clone(self), bytes })
            }
            None => {
                let (device, used, limit) = (device.to_owned(), *used, self.limit);
                Err(Error::MemoryLimit { device, bytes, used, limit })
            }
        }
    }
}

impl CountedBytes {
    /// Returns `bytes` as an allocation that counts toward the limit until it is dropped.
    pub(crate) fn attach(self, bytes: HostBytes) -> HostBytes {
        HostBytes::adopt(CountedHostBytes { bytes, _counted_bytes: self })
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        *self.limit.used.lock() -= self.bytes;
    }
}

struct CountedHostBytes {
    bytes: HostBytes,
    _counted_bytes: CountedBytes,
}

impl HostStorage for CountedHostBytes {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

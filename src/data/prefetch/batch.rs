//! A batch of transformed records.

use crate::{blob::Blob, device::AnyDevice, element::Element, error::Result};

/// A batch of transformed records, as blobs on the net's device.
///
/// A recycled batch can be overwritten at once. The net gets a batch only after its upload is done,
/// and the next upload to the batch waits for the work that the net has queued on it
/// ([`SyncedMemory::prefetch`](crate::SyncedMemory::prefetch)).
#[derive(Debug)]
pub struct Batch<T: Element> {
    /// Batch × channels × height × width.
    pub data: Blob<T>,
    /// One label for each record.
    pub label: Blob<T>,
}

impl<T: Element> Batch<T> {
    pub(super) fn new(device: &AnyDevice, shape: [usize; 4]) -> Result<Self> {
        Ok(Self { data: Blob::new(device, &shape)?, label: Blob::new(device, &shape[..1])? })
    }

    pub(super) fn has_shape(&self, shape: [usize; 4]) -> bool {
        self.data.shape()[..] == shape && self.label.shape()[..] == shape[..1]
    }
}

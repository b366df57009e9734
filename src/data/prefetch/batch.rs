//! The type [`Batch`], which holds transformed records on the net's device.

use crate::{blob::Blob, device::AnyDevice, element::Element, error::Result};

/// A batch of transformed records, as blobs on the net's device.
///
/// The prefetching thread can overwrite a recycled batch immediately. The net gets a batch only
/// after the upload of the batch is complete. The next upload to a batch waits for all queued
/// kernels of the net that use the batch
/// ([`SyncedMemory::prefetch`](crate::SyncedMemory::prefetch)).
///
/// ```
/// use cortado::{data::Batch, prelude::*};
///
/// /// Returns the mean value of each channel.
/// fn channel_means(batch: &Batch<f32>) -> Result<Blob<f32>> {
///     batch.data.mean(3)?.mean(2)?.mean(0)
/// }
/// let device = AnyDevice::new(&CpuDevice::new());
/// let (data, label) = (Blob::ones(&device, &[8, 3, 4, 4])?, Blob::zeros(&device, &[8])?);
/// assert_eq!(channel_means(&Batch { data, label })?.to_vec()?, [1.0; 3]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Debug)]
pub struct Batch<T: Element> {
    /// The values of the records, with the shape batch × channels × height × width.
    pub data: Blob<T>,
    /// One label per record.
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

//! The input of an in-place layer, saved for the layer's backward pass.

use super::prelude::*;

/// Storage for a layer's input, which the backward pass reads and an in-place output overwrites.
pub(super) struct SavedInput<T: Element> {
    saved_blob: Blob<T>,
}

impl<T: Element> SavedInput<T> {
    pub(super) fn new(device: &AnyDevice) -> Result<Self> {
        Ok(Self { saved_blob: Blob::new(device, &[0])? })
    }

    /// Resizes the storage to hold `x` if `y` shares the data of `x`, that is, if the layer runs in
    /// place.
    pub(super) fn reshape(&mut self, x: &Blob<T>, y: &Blob<T>) -> Result<()> {
        match x.shares_data_with(y) {
            true => self.saved_blob.reshape_like(x),
            false => Ok(()),
        }
    }

    /// Saves `x` if `y` shares the data of `x`, and returns the blob that holds `x` until the
    /// backward pass. If `y` shares the data of `x`, the caller must overwrite `y`, because `save`
    /// leaves the contents of `y` unspecified.
    ///
    /// If `x` and the saved blob have the same size, `save` swaps the storage of the two blobs
    /// instead of copying.
    pub(super) fn save<'a>(&'a self, x: &'a Blob<T>, y: &Blob<T>) -> Result<&'a Blob<T>> {
        if x.shares_data_with(y) {
            match x.swap_data(&self.saved_blob) {
                Err(Error::Length { .. }) => {
                    x.device().copy(x.data()?.view(), self.saved_blob.data_mut()?.view_mut())?;
                }
                swapped => swapped?,
            }
        }
        Ok(self.input(x, y))
    }

    /// Returns the blob that holds the forward pass's input: the saved blob if `y` shares the data
    /// of `x`, else `x`.
    pub(super) fn input<'a>(&'a self, x: &'a Blob<T>, y: &Blob<T>) -> &'a Blob<T> {
        if x.shares_data_with(y) { &self.saved_blob } else { x }
    }
}

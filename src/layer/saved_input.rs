//! The input of a layer that may run in place.

use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
};

/// Room for a layer's input, which its backward pass reads and its output may replace.
pub(super) struct SavedInput<T: Element, D: Device> {
    aside: Blob<T, D>,
}

impl<T: Element, D: Device> SavedInput<T, D> {
    pub(super) fn new(device: &D) -> Result<Self> {
        Ok(Self { aside: Blob::new(device, &[0])? })
    }

    /// Makes room if `y` is `x`.
    pub(super) fn reshape(&mut self, x: &Blob<T, D>, y: &Blob<T, D>) -> Result<()> {
        match x.shares_data_with(y) {
            true => self.aside.reshape_like(x),
            false => Ok(()),
        }
    }

    /// Puts `x` aside if `y` is `x`; yields the blob that has it. Then `y` has to be overwritten.
    ///
    /// Storage is exchanged rather than copied, except where one was made for a larger shape.
    pub(super) fn keep<'a>(&'a self, x: &'a Blob<T, D>, y: &Blob<T, D>) -> Result<&'a Blob<T, D>> {
        if x.shares_data_with(y) {
            match x.swap_data(&self.aside) {
                Err(Error::Length { .. }) => {
                    x.device().copy(x.data()?.view(), self.aside.data_mut()?.view_mut())?;
                }
                swapped => swapped?,
            }
        }
        Ok(self.input(x, y))
    }

    /// The blob that has what was `x` in the forward pass.
    pub(super) fn input<'a>(&'a self, x: &'a Blob<T, D>, y: &Blob<T, D>) -> &'a Blob<T, D> {
        if x.shares_data_with(y) { &self.aside } else { x }
    }
}

//! Blobs as tensors of files.

use super::Blob;
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    tensor_io::Tensor,
};

impl<T: Element, D: Device> Blob<T, D> {
    /// A copy of the data, in this blob's element type and shape.
    ///
    /// # Errors
    /// [`Error::Borrowed`]; those of the device.
    pub fn to_tensor(&self) -> Result<Tensor> {
        Tensor::from_values(self.shape(), self.data()?.host()?)
    }

    /// Takes data from a tensor, rounded to `T`; the shape too if `reshape`, else it must be this
    /// blob's.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ; [`Error::Borrowed`]; those of the device. The
    /// values are then what they were.
    pub fn from_tensor(&mut self, tensor: &Tensor, reshape: bool) -> Result<()> {
        if reshape {
            self.reshape(tensor.shape())?;
        } else if self.shape() != tensor.shape() {
            let (theirs, ours) = (tensor.shape(), self.shape());
            return Err(Error::Shape(format!("a tensor of shape {theirs} for {ours}")));
        }
        tensor.copy_to(self.data_mut()?.host_write_only()?)
    }
}

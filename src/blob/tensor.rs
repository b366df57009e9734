//! Conversion of blobs from and to tensors.

use super::Blob;
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    tensor_io::Tensor,
};

impl<T: Element, D: Device> Blob<T, D> {
    /// Copies this blob's data to a new tensor of the same element type and shape.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::from_slice(&CpuDevice::new(), &[2], &[1.0_f32, 2.0])?;
    /// let tensor = x.to_tensor()?; // for `tensor_io::write_npy`
    /// assert_eq!(tensor.values().collect::<Vec<_>>(), [1.0, 2.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
    /// returns.
    pub fn to_tensor(&self) -> Result<Tensor> {
        Tensor::from_values(self.shape(), self.data()?.host()?)
    }

    /// Copies the values of a tensor to this blob's data, rounded to `T`. If `reshape` is true, the
    /// blob takes the tensor's shape; otherwise the shapes must be equal.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ; [`Error::Borrowed`] if another access to the data is
    /// in progress; any error that the device returns. On error, the values of the blob are
    /// unchanged.
    pub fn from_tensor(&mut self, tensor: &Tensor, reshape: bool) -> Result<()> {
        if reshape {
            self.reshape(tensor.shape())?;
        } else if self.shape() != tensor.shape() {
            let (found, expected) = (tensor.shape(), self.shape());
            return Err(Error::Shape(format!("tensor: expected shape {expected}, found {found}")));
        }
        tensor.copy_to(self.data_mut()?.host_write_only()?)
    }
}

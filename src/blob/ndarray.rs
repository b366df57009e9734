//! Conversion between blobs and arrays of the crate `ndarray`.

use super::Blob;
use crate::{device::Device, element::Storable, error::Result};
use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

impl<T: Storable, D: Device> Blob<T, D> {
    /// Creates a blob with the shape and a copy of the elements of `array`, in row-major order.
    /// `array` may have any memory layout.
    ///
    /// ```
    /// use cortado::prelude::*;
    /// use ndarray::array;
    ///
    /// let x = Blob::from_ndarray(&CpuDevice::new(), &array![[1.0, 2.0], [3.0, 4.0]].t())?;
    /// assert_eq!(x.to_vec()?, [1.0, 3.0, 2.0, 4.0]);
    /// assert_eq!(x.to_ndarray()?, array![[1.0, 3.0], [2.0, 4.0]].into_dyn());
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow) if the number of elements overflows;
    /// any error that the device returns.
    #[track_caller]
    pub fn from_ndarray<S, I>(device: &D, array: &ArrayBase<S, I>) -> Result<Self>
    where
        S: Data<Elem = T>,
        I: Dimension,
    {
        let blob = Self::new(device, array.shape())?;
        let mut data = blob.data_mut()?;
        for (x, value) in data.host_write_only()?.iter_mut().zip(array) {
            *x = *value;
        }
        drop(data);
        Ok(blob)
    }

    /// Returns an array with the shape and a copy of the elements of this blob.
    ///
    /// # Errors
    /// [`Error::Borrowed`](crate::Error::Borrowed) while this blob or an alias is locked for
    /// writing; any error that the device returns.
    #[track_caller]
    pub fn to_ndarray(&self) -> Result<ArrayD<T>> {
        let array = ArrayD::from_shape_vec(IxDyn(self.shape()), self.to_vec()?);
        array.map_err(|error| crate::Error::Shape(format!("to_ndarray: {error}")))
    }
}

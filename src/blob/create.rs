//! Creation of blobs, and copies of elements between blobs and slices.

use super::Blob;
use crate::{
    device::Device,
    element::{Element, Storable},
    error::{Error, Result, check_len},
};
use std::{mem, ops::Range};

impl<T: Storable, D: Device> Blob<T, D> {
    /// Creates a blob that holds a copy of `values`, in row-major order.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::from_slice(&CpuDevice::new(), &[2, 2], &[1.0, 2.0, 3.0, 4.0])?;
    /// assert_eq!(x.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] unless the length of `values` is the count of `shape`;
    /// [`Error::ShapeOverflow`] if the number of elements overflows; any error that the device
    /// returns.
    #[track_caller]
    pub fn from_slice(device: &D, shape: &[usize], values: &[T]) -> Result<Self> {
        let blob = Self::new(device, shape)?;
        check_len("from_slice", "values", blob.count(), values.len())?;
        blob.copy_from_slice(values)?;
        Ok(blob)
    }

    /// Overwrites the elements of this blob, for example the input of a net, with `values` in
    /// row-major order.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::zeros(&CpuDevice::new(), &[3])?;
    /// x.copy_from_slice(&[1.0f32, 2.0, 3.0])?;
    /// assert_eq!(x.to_vec()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] unless `values` has one value for each element; [`Error::Borrowed`] while
    /// this blob or an alias is locked; any error that the device returns.
    #[track_caller]
    pub fn copy_from_slice(&self, values: &[T]) -> Result<()> {
        check_len("copy_from_slice", "values", self.count(), values.len())?;
        self.data_mut()?.host_write_only()?.copy_from_slice(values);
        Ok(())
    }

    /// Creates a blob whose element `i`, in row-major order, is `value(i)`.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::from_fn(&CpuDevice::new(), &[3], |i| i as f32)?;
    /// assert_eq!(x.to_vec()?, [0.0, 1.0, 2.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] if the number of elements overflows; any error that the device
    /// returns.
    #[track_caller]
    pub fn from_fn(device: &D, shape: &[usize], mut value: impl FnMut(usize) -> T) -> Result<Self> {
        let blob = Self::new(device, shape)?;
        let mut data = blob.data_mut()?;
        data.host_write_only()?.iter_mut().enumerate().for_each(|(i, x)| *x = value(i));
        drop(data);
        Ok(blob)
    }

    /// Creates a blob of zeros, like [`new`](Self::new).
    ///
    /// # Errors
    /// Returns any error from [`new`](Self::new).
    pub fn zeros(device: &D, shape: &[usize]) -> Result<Self> {
        Self::new(device, shape)
    }

    /// Returns a copy of the elements on the host, in row-major order.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked for writing; any error that the
    /// device returns.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        Ok(self.data()?.host()?.to_vec())
    }

    /// Returns the only element of a blob with one element, such as a loss.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let errors = Blob::from_slice(&CpuDevice::new(), &[4], &[1.0, 0.0, 2.0, 5.0])?;
    /// assert_eq!(errors.mean(0)?.item()?, 2.0);
    /// assert!(errors.item().is_err());
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless the blob has one element; [`Error::Borrowed`] if another access to
    /// the data is in progress; any error that the device returns.
    #[track_caller]
    pub fn item(&self) -> Result<T> {
        match self.data()?.host()? {
            [item] => Ok(*item),
            _ => Err(Error::Shape(format!(
                "item: expected a blob of one element, found shape {}",
                self.shape()
            ))),
        }
    }

    /// Returns an alias of this blob that has another shape with the same number of elements.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::from_fn(&CpuDevice::new(), &[2, 3], |i| i as f32)?;
    /// assert_eq!(x.reshaped(&[3, 2])?.shape().to_vec(), [3, 2]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless both shapes have the same number of elements;
    /// [`Error::ShapeOverflow`].
    pub fn reshaped(&self, shape: &[usize]) -> Result<Self> {
        let mut alias = self.share();
        let count = crate::shape::Shape::new(shape)?.count();
        if count != self.count() {
            let (found, elements) = (self.shape(), self.count());
            return Err(Error::Shape(format!(
                "reshaped: shape {found} has {elements} elements, shape {shape:?} has {count}"
            )));
        }
        alias.reshape(shape)?;
        Ok(alias)
    }
}

impl<T: Element, D: Device> Blob<T, D> {
    /// Creates a blob in which every element is `value`.
    ///
    /// ```
    /// use cortado::{bf16, prelude::*};
    ///
    /// let x = Blob::<bf16, _>::full(&CpuDevice::new(), &[2, 3], 0.5)?;
    /// assert_eq!(x.to_vec()?, [bf16::from_f32(0.5); 6]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] if the number of elements overflows; any error that the device
    /// returns.
    #[track_caller]
    pub fn full(device: &D, shape: &[usize], value: f64) -> Result<Self> {
        let blob = Self::new(device, shape)?;
        blob.fill(value)?;
        Ok(blob)
    }

    /// Creates a blob of ones.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] if the number of elements overflows; any error that the device
    /// returns.
    #[track_caller]
    pub fn ones(device: &D, shape: &[usize]) -> Result<Self> {
        Self::full(device, shape, 1.0)
    }

    /// Overwrites every element with `value`.
    ///
    /// # Errors
    /// [`Error::Borrowed`] while this blob or an alias is locked; any error that the device
    /// returns.
    #[track_caller]
    pub fn fill(&self, value: f64) -> Result<()> {
        self.device().fill(T::from_f64(value), self.data_mut()?.view_mut())
    }

    /// Returns a copy of the items at `range` along the first axis, for example some images of a
    /// batch.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::from_fn(&CpuDevice::new(), &[4, 2], |i| i as f32)?;
    /// let middle_rows = x.rows(1..3)?;
    /// assert_eq!(middle_rows.shape().to_vec(), [2, 2]);
    /// assert_eq!(middle_rows.to_vec()?, [2.0, 3.0, 4.0, 5.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] unless `range` lies within the first axis; [`Error::Borrowed`] if another
    /// access to the data is in progress; any error that the device returns.
    #[track_caller]
    pub fn rows(&self, range: Range<usize>) -> Result<Self> {
        let Range { start, end } = range;
        let mut shape = self.shape().to_vec();
        let Some(rows) = shape.first_mut().filter(|rows| start <= end && end <= **rows) else {
            let rows = self.shape().first().copied().unwrap_or(0);
            let reason = format!(
                "rows: range {start}..{end} of shape {}; the first axis has extent {rows}",
                self.shape()
            );
            return Err(Error::Shape(reason));
        };
        let rows = mem::replace(rows, end - start);
        let (y, row) = (Self::new(self.device(), &shape)?, self.count() / rows.max(1));
        let x = self.data()?;
        let x = x.view().slice(start * row..end * row)?;
        self.device().copy(x, y.data_mut()?.view_mut())?;
        Ok(y)
    }
}

//! Reductions of blobs along an axis, and softmax.

use super::{Blob, elementwise::check_output};
use crate::{
    device::Device,
    element::Element,
    error::Result,
    op::{Axis, Reduce},
};

impl<T: Element, D: Device> Blob<T, D> {
    /// Returns the reduction along `axis` as a new blob without that axis. A negative `axis` counts
    /// from the last axis.
    ///
    /// ```
    /// use cortado::{op::Reduce, prelude::*};
    ///
    /// let x = Blob::from_slice(&CpuDevice::new(), &[2, 2], &[1.0, -2.0, 3.0, 4.0])?;
    /// assert_eq!(x.reduce(Reduce::AbsSum, -1)?.to_vec()?, [3.0, 7.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Context`](crate::Error::Context) around [`Error::Axis`](crate::Error::Axis) if the
    /// blob has no such axis; [`Error::InvalidInput`](crate::Error::InvalidInput) for the maximum
    /// or minimum along an axis of extent 0; [`Error::Borrowed`](crate::Error::Borrowed) if another
    /// access to the data is in progress; any error that the device returns.
    #[track_caller]
    pub fn reduce(&self, op: Reduce, axis: isize) -> Result<Self> {
        let (axis, shape) = self.along(op.name(), axis)?;
        let y = Self::new(self.device(), &shape)?;
        self.device().reduce(op, &axis, self.data()?.view(), y.data_mut()?.view_mut())?;
        Ok(y)
    }

    /// Writes the reduction along `axis` to `y`, like [`reduce`](Self::reduce).
    ///
    /// # Errors
    /// Returns any error from [`reduce`](Self::reduce), and [`Error::Shape`](crate::Error::Shape)
    /// unless `y` has this blob's shape without the axis.
    #[track_caller]
    pub fn reduce_into(&self, op: Reduce, axis: isize, y: &Self) -> Result<()> {
        let (axis, shape) = self.along(op.name(), axis)?;
        check_output(op.name(), [("x", self)], &shape, y)?;
        self.device().reduce(op, &axis, self.data()?.view(), y.data_mut()?.view_mut())
    }

    /// Returns the sums along `axis` as a new blob without that axis.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::from_slice(&CpuDevice::new(), &[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// assert_eq!(x.sum(0)?.to_vec()?, [5.0, 7.0, 9.0]);
    /// assert_eq!(x.sum(1)?.to_vec()?, [6.0, 15.0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`reduce`](Self::reduce).
    #[track_caller]
    pub fn sum(&self, axis: isize) -> Result<Self> {
        self.reduce(Reduce::Sum, axis)
    }

    /// Returns the means along `axis` as a new blob without that axis.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::from_slice(&CpuDevice::new(), &[2, 2], &[1.0, 2.0, 3.0, 6.0])?;
    /// assert_eq!(x.mean(0)?.to_vec()?, [2.0, 4.0]);
    /// assert_eq!(x.mean(-1)?.to_vec()?, [1.5, 4.5]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`reduce`](Self::reduce).
    #[track_caller]
    pub fn mean(&self, axis: isize) -> Result<Self> {
        self.reduce(Reduce::Mean, axis)
    }

    /// Returns the maxima along `axis` as a new blob without that axis.
    ///
    /// # Errors
    /// Returns any error from [`reduce`](Self::reduce).
    #[track_caller]
    pub fn max(&self, axis: isize) -> Result<Self> {
        self.reduce(Reduce::Max, axis)
    }

    /// Returns the minima along `axis` as a new blob without that axis.
    ///
    /// # Errors
    /// Returns any error from [`reduce`](Self::reduce).
    #[track_caller]
    pub fn min(&self, axis: isize) -> Result<Self> {
        self.reduce(Reduce::Min, axis)
    }

    /// Returns the sum of all elements.
    ///
    /// # Errors
    /// [`Error::Borrowed`](crate::Error::Borrowed) while this blob or an alias is locked for
    /// writing; any error that the device returns.
    #[track_caller]
    pub fn sum_all(&self) -> Result<T> {
        self.reshaped(&[self.count()])?.sum(0)?.item()
    }

    /// Returns the mean of all elements, for example the loss of a batch. The mean of an empty blob
    /// is NaN.
    ///
    /// # Errors
    /// Returns any error from [`sum_all`](Self::sum_all).
    #[track_caller]
    pub fn mean_all(&self) -> Result<T> {
        self.reshaped(&[self.count()])?.mean(0)?.item()
    }

    /// Returns the index of the greatest element along `axis`, for example the predicted class of
    /// each image.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let scores = Blob::from_slice(&CpuDevice::new(), &[2, 3], &[0.1, 0.7, 0.2, 0.9, 0.0, 0.1])?;
    /// assert_eq!(scores.arg_max(1)?.to_vec()?, [1, 0]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`reduce`](Self::reduce).
    #[track_caller]
    pub fn arg_max(&self, axis: isize) -> Result<Blob<u32, D>> {
        let (axis, shape) = self.along("arg_max", axis)?;
        let y = Blob::new(self.device(), &shape)?;
        self.device().arg_max(&axis, self.data()?.view(), y.data_mut()?.view_mut())?;
        Ok(y)
    }

    /// Returns the softmax `exp(xᵢ) / Σⱼ exp(xⱼ)` along `axis` as a new blob.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::from_slice(&CpuDevice::new(), &[1, 2], &[0.0f32, 0.0])?;
    /// assert_eq!(x.softmax(1)?.to_vec()?, [0.5, 0.5]);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns any error from [`reduce`](Self::reduce).
    #[track_caller]
    pub fn softmax(&self, axis: isize) -> Result<Self> {
        let y = Self::new(self.device(), self.shape())?;
        self.softmax_into(axis, &y)?;
        Ok(y)
    }

    /// Writes the softmax along `axis` to `y`, which may be this blob or an alias of it.
    ///
    /// # Errors
    /// Returns any error from [`softmax`](Self::softmax), and [`Error::Shape`](crate::Error::Shape)
    /// unless this blob and `y` have the same shape.
    #[track_caller]
    pub fn softmax_into(&self, axis: isize, y: &Self) -> Result<()> {
        check_output("softmax", [("x", self)], self.shape(), y)?;
        let (axis, _) = self.along("softmax", axis)?;
        let (x, mut out) = y.data_mut_from(self)?;
        self.device().softmax(&axis, x.src(), out.view_mut())
    }

    /// Returns the axis that `op` reduces, and this blob's shape without the axis.
    fn along(&self, op: &str, axis: isize) -> Result<(Axis, Vec<usize>)> {
        let context =
            |error: crate::Error| error.context(format!("{op}: x of shape {}", self.shape()));
        let index = self.shape().canonical_axis(axis).map_err(context)?;
        let kept_extents = [&self.shape()[..index], &self.shape()[index + 1..]].concat();
        Ok((Axis::of(self.shape(), axis)?, kept_extents))
    }
}

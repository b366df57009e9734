//! Element access, copies and arithmetic of blobs.

use super::{Blob, storage::SrcGuard};
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
};

impl<T: Element, D: Device> Blob<T, D> {
    /// Returns the element of the data at `indices`; missing trailing indices count as 0.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let x = Blob::from_fn(&CpuDevice::new(), &[2, 3, 4], |i| i as f32)?;
    /// assert_eq!(x.data_at(&[1, 2, 3])?, 23.0);
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if `indices` are out of range; [`Error::Borrowed`] if another access to the
    /// data is in progress; any error that the device returns.
    #[track_caller]
    pub fn data_at(&self, indices: &[usize]) -> Result<T> {
        Ok(self.data()?.host()?[self.shape().offset(indices)?])
    }

    /// Returns the element of the diff at `indices`; missing trailing indices count as 0.
    ///
    /// # Errors
    /// Returns any error from [`data_at`](Self::data_at).
    #[track_caller]
    pub fn diff_at(&self, indices: &[usize]) -> Result<T> {
        Ok(self.diff()?.host()?[self.shape().offset(indices)?])
    }

    /// Copies the data of `source` to this blob, and also the diff of `source` if `diff` is true.
    /// If `reshape` is true, this blob takes the shape of `source`; otherwise the shapes must be
    /// equal.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let source = Blob::from_slice(&CpuDevice::new(), &[2], &[1.0, 2.0])?;
    /// let mut copy = Blob::new(&CpuDevice::new(), &[7])?;
    /// copy.copy_from(&source, false, true)?; // data, and the shape
    /// assert_eq!(copy.to_vec()?, [1.0, 2.0]);
    /// assert!(!copy.shares_data_with(&source));
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ and `reshape` is false; [`Error::Borrowed`] if another
    /// access to the data is in progress; any error that the device returns.
    #[doc(alias = "CopyFrom")]
    #[track_caller]
    pub fn copy_from(&mut self, source: &Self, diff: bool, reshape: bool) -> Result<()> {
        if *self.shape() != *source.shape() {
            if !reshape {
                let (expected, found) = (self.shape(), source.shape());
                let reason = format!("copy_from: expected shape {expected}, found {found}");
                return Err(Error::Shape(reason));
            }
            self.reshape_like(source)?;
        }
        if let (SrcGuard::Other(x), mut y) = self.data_mut_from(source)? {
            self.device().copy(x.view(), y.view_mut())?;
        }
        if diff && let (SrcGuard::Other(x), mut y) = self.diff_mut_from(source)? {
            self.device().copy(x.view(), y.view_mut())?;
        }
        Ok(())
    }

    /// Computes `Σ |data|`.
    ///
    /// # Errors
    /// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
    /// returns.
    #[track_caller]
    pub fn asum_data(&self) -> Result<T::Acc> {
        self.device().asum(self.data()?.view())
    }

    /// Computes `Σ |diff|`.
    ///
    /// # Errors
    /// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
    /// returns.
    #[track_caller]
    pub fn asum_diff(&self) -> Result<T::Acc> {
        self.device().asum(self.diff()?.view())
    }

    /// Computes `Σ data²`.
    ///
    /// # Errors
    /// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
    /// returns.
    #[track_caller]
    pub fn sumsq_data(&self) -> Result<T::Acc> {
        self.device().sumsq(self.data()?.view())
    }

    /// Computes `Σ diff²`.
    ///
    /// # Errors
    /// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
    /// returns.
    #[track_caller]
    pub fn sumsq_diff(&self) -> Result<T::Acc> {
        self.device().sumsq(self.diff()?.view())
    }

    /// Computes `data ← factor · data`.
    ///
    /// # Errors
    /// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
    /// returns.
    #[track_caller]
    pub fn scale_data(&self, factor: T::Acc) -> Result<()> {
        self.device().scal(factor, self.data_mut()?.view_mut())
    }

    /// Computes `diff ← factor · diff`.
    ///
    /// # Errors
    /// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
    /// returns.
    #[track_caller]
    pub fn scale_diff(&self, factor: T::Acc) -> Result<()> {
        self.device().scal(factor, self.diff_mut()?.view_mut())
    }

    /// Computes `data ← data − diff`.
    ///
    /// # Errors
    /// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
    /// returns.
    #[doc(alias = "Update")]
    #[track_caller]
    pub fn update(&self) -> Result<()> {
        let minus_one = T::acc(-1.0);
        self.device().axpy(minus_one, self.diff()?.view(), self.data_mut()?.view_mut())
    }
}

//! A blob's arithmetic, element access and copies.

use super::{Blob, SrcGuard};
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
};

impl<T: Element, D: Device> Blob<T, D> {
    /// The element of the data at `indices`; missing trailing indices count as 0.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is none; [`Error::Borrowed`]; those of the device.
    pub fn data_at(&self, indices: &[usize]) -> Result<T> {
        Ok(self.data()?.host()?[self.shape().offset(indices)?])
    }

    /// The element of the diff at `indices`; missing trailing indices count as 0.
    ///
    /// # Errors
    /// As [`data_at`](Self::data_at).
    pub fn diff_at(&self, indices: &[usize]) -> Result<T> {
        Ok(self.diff()?.host()?[self.shape().offset(indices)?])
    }

    /// Copies data from `source`, and the diff if `diff`. The shape is taken over if `reshape`;
    /// else it must be the same.
    ///
    /// # Errors
    /// [`Error::Shape`] if shapes differ and `reshape` is false; [`Error::Borrowed`]; those of the
    /// device.
    #[doc(alias = "CopyFrom")]
    pub fn copy_from(&mut self, source: &Self, diff: bool, reshape: bool) -> Result<()> {
        if *self.shape() != *source.shape() {
            if !reshape {
                let (ours, theirs) = (self.shape(), source.shape());
                return Err(Error::Shape(format!("cannot copy shape {theirs} to {ours}")));
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

    /// `Σ |data|`
    ///
    /// # Errors
    /// [`Error::Borrowed`]; those of the device.
    pub fn asum_data(&self) -> Result<T::Acc> {
        self.device().asum(self.data()?.view())
    }

    /// `Σ |diff|`
    ///
    /// # Errors
    /// [`Error::Borrowed`]; those of the device.
    pub fn asum_diff(&self) -> Result<T::Acc> {
        self.device().asum(self.diff()?.view())
    }

    /// `Σ data²`
    ///
    /// # Errors
    /// [`Error::Borrowed`]; those of the device.
    pub fn sumsq_data(&self) -> Result<T::Acc> {
        self.device().sumsq(self.data()?.view())
    }

    /// `Σ diff²`
    ///
    /// # Errors
    /// [`Error::Borrowed`]; those of the device.
    pub fn sumsq_diff(&self) -> Result<T::Acc> {
        self.device().sumsq(self.diff()?.view())
    }

    /// `data ← factor · data`
    ///
    /// # Errors
    /// [`Error::Borrowed`]; those of the device.
    pub fn scale_data(&self, factor: T::Acc) -> Result<()> {
        self.device().scal(factor, self.data_mut()?.view_mut())
    }

    /// `diff ← factor · diff`
    ///
    /// # Errors
    /// [`Error::Borrowed`]; those of the device.
    pub fn scale_diff(&self, factor: T::Acc) -> Result<()> {
        self.device().scal(factor, self.diff_mut()?.view_mut())
    }

    /// `data ← data − diff`
    ///
    /// # Errors
    /// [`Error::Borrowed`]; those of the device.
    #[doc(alias = "Update")]
    pub fn update(&self) -> Result<()> {
        let minus_one = T::acc(-1.0);
        self.device().axpy(minus_one, self.diff()?.view(), self.data_mut()?.view_mut())
    }
}

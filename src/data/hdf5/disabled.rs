//! Stub of the HDF5 reader for builds without the feature `hdf5`.

use crate::error::{Error, Result};
use std::{ops::Range, path::Path};

/// An open HDF5 file. The enum has no variants, because this build cannot open HDF5 files.
pub(super) enum Datasets {}

impl Datasets {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let reason = "this build does not support HDF5; enable the feature `hdf5`";
        Err(Error::InvalidData(format!("{}: {reason}", path.display())))
    }

    pub(super) fn shape(&self, _name: &str) -> Result<Vec<usize>> {
        match *self {}
    }

    pub(super) fn read(&self, _name: &str, _rows: &Range<usize>) -> Result<Vec<f64>> {
        match *self {}
    }
}

//! Stub for builds without the feature `hdf5`.

use crate::error::{Error, Result};
use std::{ops::Range, path::Path};

/// An open file. The type has no values, because this build cannot open one.
pub(super) enum Datasets {}

impl Datasets {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let why = "HDF5 is not part of this build; enable the feature `hdf5`";
        Err(Error::InvalidData(format!("{}: {why}", path.display())))
    }

    pub(super) fn shape(&self, _name: &str) -> Result<Vec<usize>> {
        match *self {}
    }

    pub(super) fn read(&self, _name: &str, _rows: &Range<usize>) -> Result<Vec<f64>> {
        match *self {}
    }
}

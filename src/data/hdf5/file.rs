//! Datasets of an HDF5 file, read with the crate `hdf5_pure`.

use crate::{
    error::{Error, Result},
    limits,
    proto::{LimitedFile, read_half},
};
use hdf5_pure::Dataset;
use std::{fmt::Display, ops::Range, path::Path};

pub(super) struct Datasets {
    limited: LimitedFile,
    name: String,
}

impl Datasets {
    pub(super) fn open(path: &Path) -> Result<Self> {
        Ok(Self { limited: LimitedFile::open(path)?, name: path.display().to_string() })
    }

    pub(super) fn shape(&self, name: &str) -> Result<Vec<usize>> {
        let found = self.dataset(name)?;
        self.limited.check_size(&self.subject(name), &found, 1)?;
        let extents = found.shape().map_err(|error| self.damaged(name, error))?;
        Ok(extents.into_iter().map(|extent| extent as usize).collect())
    }

    /// Reads the values of the given `rows` of the dataset `name`.
    pub(super) fn read(&self, name: &str, rows: &Range<usize>) -> Result<Vec<f64>> {
        self.limited.reset_read_limit();
        let shape = self.shape(name)?;
        let want = shape.iter().skip(1).product::<usize>() * rows.len();
        let bytes = (want as u64).checked_mul(size_of::<f64>() as u64);
        let subject = format!("{}: {} rows", self.subject(name), rows.len());
        limits::check_expanded(subject, bytes, self.limited.stored)?;
        let dataset = self.dataset(name)?;
        let dtype = dataset.dtype().map_err(|error| self.damaged(name, error))?;
        let (start, count) = (rows.start as u64, rows.len() as u64);
        let values = match read_half(&dtype, || dataset.read_raw_rows(start, count)) {
            Some(values) => values.map(|values| values.into_iter().map(f64::from).collect()),
            None => dataset.read_f64_rows(start, count),
        };
        let values = values.map_err(|error| self.damaged(name, error))?;
        if values.len() != want {
            return Err(
                self.damaged(name, format!("expected {want} values, found {}", values.len()))
            );
        }
        Ok(values)
    }

    fn dataset(&self, name: &str) -> Result<Dataset> {
        self.limited.file.dataset(name).map_err(|error| self.damaged(name, error))
    }

    fn subject(&self, name: &str) -> String {
        format!("{}: dataset `{name}`", self.name)
    }

    fn damaged(&self, name: &str, reason: impl Display) -> Error {
        Error::InvalidData(format!("{}: {reason}", self.subject(name)))
    }
}

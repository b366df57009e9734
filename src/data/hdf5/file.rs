//! Datasets of an HDF5 file, read with the crate `hdf5_pure`.

use crate::{
    error::{Error, Result},
    proto::MAX_DEFLATE_RATIO,
};
use hdf5_pure::{Dataset, File};
use std::{fmt::Display, fs, ops::Range, path::Path};

pub(super) struct Datasets {
    file: File,
    name: String,
    length: u64,
}

impl Datasets {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let io = |error| Error::io(path, error);
        let length = fs::metadata(path).map_err(io)?.len();
        let name = path.display().to_string();
        let opened = File::open_streaming(path);
        let file = opened.map_err(|error| Error::InvalidData(format!("{name}: {error}")))?;
        Ok(Self { file, name, length })
    }

    pub(super) fn shape(&self, name: &str) -> Result<Vec<usize>> {
        let damaged = |error| self.damaged(name, error);
        let dataset = self.dataset(name)?;
        let (extents, size) = (dataset.shape().map_err(damaged)?, dataset.element_size());
        let size = size.map_err(damaged)?;
        // Treat an extent of 0 as 1, so that the size check also limits the number of rows that
        // have no elements.
        let bytes =
            extents.iter().try_fold(size, |bytes, &extent| bytes.checked_mul(extent.max(1)));
        let max = self.length.saturating_mul(MAX_DEFLATE_RATIO);
        if bytes.is_none_or(|bytes| bytes > max) {
            let reason = format!("the file is too short for shape {extents:?}");
            return Err(self.damaged(name, reason));
        }
        Ok(extents.into_iter().map(|extent| extent as usize).collect())
    }

    /// Reads the values of the given `rows` of the dataset `name`.
    pub(super) fn read(&self, name: &str, rows: &Range<usize>) -> Result<Vec<f64>> {
        let shape = self.shape(name)?;
        let values = self.dataset(name)?.read_f64_rows(rows.start as u64, rows.len() as u64);
        let values = values.map_err(|error| self.damaged(name, error))?;
        let want = shape.iter().skip(1).product::<usize>() * rows.len();
        if values.len() != want {
            return Err(
                self.damaged(name, format!("expected {want} values, found {}", values.len()))
            );
        }
        Ok(values)
    }

    fn dataset(&self, name: &str) -> Result<Dataset> {
        self.file.dataset(name).map_err(|error| self.damaged(name, error))
    }

    fn damaged(&self, name: &str, reason: impl Display) -> Error {
        Error::InvalidData(format!("{}: dataset `{name}`: {reason}", self.name))
    }
}

//! Reader of HDF5 files, compiled only with the feature `hdf5`.

use super::detect::SIGNATURE;
use crate::{
    error::{Error, Result},
    proto::{
        MAX_DEFLATE_RATIO,
        messages::{BlobProto, BlobShape},
    },
};
use hdf5_pure::{DType, Dataset, File, Group};
use std::{cell::Cell, fmt::Display, fs, path::Path};

/// An HDF5 file that is open for reading. Paths of groups and datasets are relative to the root
/// group, whose path is empty.
pub(super) struct Reader {
    file: File,
    name: String,
    /// The maximum total size in bytes of the datasets that are not yet read; the limit prevents a
    /// damaged file from exhausting memory.
    byte_budget: Cell<u64>,
}

impl Reader {
    /// Opens an HDF5 file and reads the whole file into memory.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|error| Error::io(path, error))?;
        let name = path.display().to_string();
        let byte_budget = Cell::new((bytes.len() as u64).saturating_mul(MAX_DEFLATE_RATIO));
        if !bytes.starts_with(&SIGNATURE) {
            return Err(Error::InvalidData(format!("{name}: not an HDF5 file")));
        }
        let result = File::from_bytes(bytes);
        let file = result.map_err(|error| Error::InvalidData(format!("{name}: {error}")))?;
        Ok(Self { file, name, byte_budget })
    }

    pub(super) fn groups(&self, group: &str) -> Result<Vec<String>> {
        let names = self.group(group)?.groups();
        names.map_err(|error| self.damaged(group, error))
    }

    pub(super) fn datasets(&self, group: &str) -> Result<Vec<String>> {
        let names = self.group(group)?.datasets();
        names.map_err(|error| self.damaged(group, error))
    }

    /// Reads a dataset of numbers as a `BlobProto` with shape and data. The data are `float`, or
    /// `double` for numeric types that `float` would round.
    pub(super) fn blob(&self, dataset: &str) -> Result<BlobProto> {
        let damaged = |error| self.damaged(dataset, error);
        let found = self.dataset(dataset)?;
        let count = self.count(dataset, &found)?;
        let extents = found.shape().map_err(damaged)?;
        let dim = extents.iter().map(|&extent| i64::try_from(extent)).collect::<Result<_, _>>();
        let dim = dim.map_err(|error| self.damaged(dataset, error))?;
        let mut blob = BlobProto { shape: Some(BlobShape { dim }), ..Default::default() };
        match found.dtype().map_err(damaged)? {
            DType::F32 | DType::I8 | DType::U8 | DType::I16 | DType::U16 => {
                blob.data = found.read_f32().map_err(damaged)?;
            }
            DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64 => {
                blob.double_data = found.read_f64().map_err(damaged)?;
            }
            other => {
                return Err(self.damaged(
                    dataset,
                    format!("expected numbers, found elements of type {other}"),
                ));
            }
        }
        let len = blob.data.len() + blob.double_data.len();
        if len as u64 != count {
            return Err(self
                .damaged(dataset, format!("expected {count} values for the shape, found {len}")));
        }
        Ok(blob)
    }

    pub(super) fn integer(&self, dataset: &str) -> Result<i32> {
        let found = self.dataset(dataset)?;
        if self.count(dataset, &found)? != 1 {
            return Err(self.damaged(dataset, "not a single integer"));
        }
        let values = found.read_i64().map_err(|error| self.damaged(dataset, error))?;
        let value = values.first().copied().unwrap_or_default();
        i32::try_from(value).map_err(|_| {
            self.damaged(dataset, format!("{value} is out of the range of 32-bit integers"))
        })
    }

    pub(super) fn text(&self, dataset: &str) -> Result<String> {
        let found = self.dataset(dataset)?;
        self.count(dataset, &found)?;
        let values = found.read_string().map_err(|error| self.damaged(dataset, error))?;
        let [text] = &values[..] else {
            return Err(self.damaged(dataset, "not a single string"));
        };
        // As in C, a zero byte ends a string in an HDF5 file.
        Ok(text.split('\0').next().unwrap_or_default().to_owned())
    }

    /// Returns an error that names the file and the group or dataset `path`.
    pub(super) fn damaged(&self, path: &str, reason: impl Display) -> Error {
        let path = if path.is_empty() { "/" } else { path };
        Error::InvalidData(format!("{}: `{path}`: {reason}", self.name))
    }

    fn group(&self, group: &str) -> Result<Group> {
        match group {
            "" => Ok(self.file.root()),
            _ => self.file.group(group).map_err(|error| self.damaged(group, error)),
        }
    }

    fn dataset(&self, dataset: &str) -> Result<Dataset> {
        self.file.dataset(dataset).map_err(|error| self.damaged(dataset, error))
    }

    /// Returns the number of elements of a dataset. Fails if this dataset and the datasets read so
    /// far have more bytes than the file can hold.
    fn count(&self, dataset: &str, found: &Dataset) -> Result<u64> {
        let damaged = |error| self.damaged(dataset, error);
        let extents = found.shape().map_err(damaged)?;
        let element_size = found.element_size().map_err(damaged)?;
        let multiply_by_extents =
            |factor: u64| extents.iter().try_fold(factor, |product, &by| product.checked_mul(by));
        let bytes = multiply_by_extents(element_size);
        let budget = bytes.and_then(|bytes| self.byte_budget.get().checked_sub(bytes));
        match (multiply_by_extents(1), budget) {
            (Some(count), Some(budget)) => {
                self.byte_budget.set(budget);
                Ok(count)
            }
            _ => {
                let reason = format!("the file is too short for a dataset of shape {extents:?}");
                Err(self.damaged(dataset, reason))
            }
        }
    }
}

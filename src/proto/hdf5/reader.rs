//! HDF5 files as they are read.

use super::{super::BlobShape, BlobProto, SIGNATURE};
use crate::error::{Error, Result};
use hdf5_pure::{DType, Dataset, File, Group};
use std::{cell::Cell, fmt::Display, fs, path::Path};

/// A byte that deflate has packed becomes at most so many.
const MAX_DEFLATE_RATIO: u64 = 1032;

/// A file that is read. Paths of groups and datasets are from its root, which is the empty one.
pub(super) struct Reader {
    file: File,
    name: String,
    /// Bytes of values that the file may still unpack to.
    left: Cell<u64>,
}

impl Reader {
    /// Memory: the file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|error| Error::io(path, error))?;
        let name = path.display().to_string();
        let left = Cell::new((bytes.len() as u64).saturating_mul(MAX_DEFLATE_RATIO));
        if !bytes.starts_with(&SIGNATURE) {
            return Err(Error::InvalidData(format!("{name}: it is no HDF5 file")));
        }
        let opened = File::from_bytes(bytes);
        let file = opened.map_err(|error| Error::InvalidData(format!("{name}: {error}")))?;
        Ok(Self { file, name, left })
    }

    /// Names of the groups in a group.
    pub(super) fn groups(&self, group: &str) -> Result<Vec<String>> {
        let names = self.group(group)?.groups();
        names.map_err(|error| self.damaged(group, error))
    }

    /// Names of the datasets in a group.
    pub(super) fn datasets(&self, group: &str) -> Result<Vec<String>> {
        let names = self.group(group)?.datasets();
        names.map_err(|error| self.damaged(group, error))
    }

    /// A dataset of numbers as a message with its shape and data: `float`, or `double` for types
    /// that `float` would round.
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
                return Err(self.damaged(dataset, format!("its elements are {other}, no numbers")));
            }
        }
        let got = blob.data.len() + blob.double_data.len();
        if got as u64 != count {
            return Err(self.damaged(dataset, format!("{got} values for a shape of {count}")));
        }
        Ok(blob)
    }

    /// A dataset of one integer.
    pub(super) fn integer(&self, dataset: &str) -> Result<i32> {
        let found = self.dataset(dataset)?;
        if self.count(dataset, &found)? != 1 {
            return Err(self.damaged(dataset, "it is not one integer"));
        }
        let values = found.read_i64().map_err(|error| self.damaged(dataset, error))?;
        let value = values.first().copied().unwrap_or_default();
        i32::try_from(value).map_err(|_| self.damaged(dataset, format!("{value} is too large")))
    }

    /// A dataset of one string.
    pub(super) fn text(&self, dataset: &str) -> Result<String> {
        let found = self.dataset(dataset)?;
        self.count(dataset, &found)?;
        let values = found.read_string().map_err(|error| self.damaged(dataset, error))?;
        let [text] = &values[..] else {
            return Err(self.damaged(dataset, "it is not one string"));
        };
        // As C reads it.
        Ok(text.split('\0').next().unwrap_or_default().to_owned())
    }

    /// What is wrong with a group or a dataset.
    pub(super) fn damaged(&self, place: &str, why: impl Display) -> Error {
        let place = if place.is_empty() { "/" } else { place };
        Error::InvalidData(format!("{}: `{place}`: {why}", self.name))
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

    /// How many elements a dataset has. What all datasets that were read claim together is no more
    /// than the file can hold, though one dataset may go by many names.
    fn count(&self, dataset: &str, found: &Dataset) -> Result<u64> {
        let damaged = |error| self.damaged(dataset, error);
        let (extents, size) = (found.shape().map_err(damaged)?, found.element_size());
        let size = size.map_err(damaged)?;
        let product = |from: u64| extents.iter().try_fold(from, |to, &by| to.checked_mul(by));
        let left = product(size).and_then(|bytes| self.left.get().checked_sub(bytes));
        match (product(1), left) {
            (Some(count), Some(left)) => {
                self.left.set(left);
                Ok(count)
            }
            _ => {
                let why = format!("the file is too short for its shape {extents:?}");
                Err(self.damaged(dataset, why))
            }
        }
    }
}

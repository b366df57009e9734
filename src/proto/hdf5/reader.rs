//! Reader of HDF5 files, compiled only with the feature `hdf5`.

use super::{detect::SIGNATURE, half_precision::read_half, limited_file::LimitedFile};
use crate::{
    error::{Error, Result},
    limits,
    proto::messages::{BlobProto, BlobShape},
};
use hdf5_pure::{DType, Dataset, Group};
use std::{cell::Cell, fmt::Display, io::Read, path::Path};

/// An HDF5 file that is open for reading. Paths of groups and datasets are relative to the root
/// group, whose path is empty.
pub(super) struct Reader {
    limited_file: LimitedFile,
    name: String,
    /// The number of bytes of the datasets that have been read. A dataset to which several links
    /// refer counts once per read.
    total: Cell<u64>,
}

impl Reader {
    /// Opens an HDF5 file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let (mut file, _) = limits::open(path)?;
        let mut start = [0; SIGNATURE.len()];
        if file.read_exact(&mut start).is_err() || start != SIGNATURE {
            return Err(Error::InvalidData(format!("{name}: not an HDF5 file")));
        }
        Ok(Self { limited_file: LimitedFile::open(path)?, name, total: Cell::new(0) })
    }

    pub(super) fn groups(&self, group: &str) -> Result<Vec<String>> {
        let names = self.group(group)?.groups();
        names.map_err(|error| self.damaged(group, error))
    }

    pub(super) fn datasets(&self, group: &str) -> Result<Vec<String>> {
        let names = self.group(group)?.datasets();
        names.map_err(|error| self.damaged(group, error))
    }

    /// Reads a dataset of numbers as a `BlobProto` with shape and data. The data are `float`, also
    /// for half-precision numbers, or `double` for numeric types that `float` would round.
    pub(super) fn blob(&self, dataset: &str) -> Result<BlobProto> {
        let damaged_error = |error| self.damaged(dataset, error);
        let found = self.dataset(dataset)?;
        let dtype = found.dtype().map_err(damaged_error)?;
        let is_float =
            matches!(dtype, DType::F32 | DType::I8 | DType::U8 | DType::I16 | DType::U16);
        let count = self.count(dataset, &found, if is_float { 4 } else { 8 })?;
        let extents = found.shape().map_err(damaged_error)?;
        let dim = extents.iter().map(|&extent| i64::try_from(extent)).collect::<Result<_, _>>();
        let dim = dim.map_err(|error| self.damaged(dataset, error))?;
        let mut blob = BlobProto { shape: Some(BlobShape { dim }), ..Default::default() };
        match dtype {
            DType::Other(_) => {
                let values = read_half(&dtype, || found.read_raw()).ok_or_else(|| {
                    let reason = format!("expected numbers, found elements of type {dtype}");
                    self.damaged(dataset, reason)
                })?;
                let values = values.map_err(damaged_error)?;
                blob.data = values.into_iter().map(f32::from).collect();
            }
            _ if is_float => {
                blob.data = found.read_f32().map_err(damaged_error)?;
            }
            DType::F64 | DType::I32 | DType::U32 | DType::I64 | DType::U64 => {
                blob.double_data = found.read_f64().map_err(damaged_error)?;
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
        if self.count(dataset, &found, 8)? != 1 {
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
        let not_single_error = || self.damaged(dataset, "not a single string");
        if self.count(dataset, &found, 8)? != 1 {
            return Err(not_single_error());
        }
        let values = found.read_string().map_err(|error| self.damaged(dataset, error))?;
        let [text] = &values[..] else { return Err(not_single_error()) };
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
            "" => Ok(self.limited_file.file.root()),
            _ => self.limited_file.file.group(group).map_err(|error| self.damaged(group, error)),
        }
    }

    fn dataset(&self, dataset: &str) -> Result<Dataset> {
        self.limited_file.file.dataset(dataset).map_err(|error| self.damaged(dataset, error))
    }

    /// Returns the number of elements of a dataset, each of which takes at least `element_size`
    /// bytes in memory. Fails if the datasets read so far need too much memory.
    fn count(&self, dataset: &str, found: &Dataset, element_size: u64) -> Result<u64> {
        let subject = format!("{}: `{dataset}`", self.name);
        let bytes = self.limited_file.check_size(&subject, found, element_size)?;
        let total = self.total.get().checked_add(bytes);
        self.total.set(limits::check_expanded(subject, total, self.limited_file.stored)?);
        let extents = found.shape().map_err(|error| self.damaged(dataset, error))?;
        // The product does not overflow, because `check_size` has multiplied the same extents.
        Ok(extents.iter().product())
    }
}

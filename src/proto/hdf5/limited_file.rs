//! Reading of HDF5 files with a limit on the bytes that are read and on the memory.
//!
//! The links and B-trees of a damaged HDF5 file can refer to each other in cycles. The HDF5 library
//! limits the depth of its recursion, but two references in each of 64 levels cause 2⁶⁴ reads. To
//! limit the work of reading a damaged file, [`LimitedSource`] counts the bytes that the library
//! reads.

use crate::{
    error::{Error, Result},
    limits,
    sync::Mutex,
};
use hdf5_pure::{Dataset, File as Hdf5File, FormatError, Source};
use std::{
    fmt::Display,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

/// The minimum number of bytes that a read counts as, because a shorter read takes as much time as
/// a read of this length.
const MIN_READ: u64 = 512;

/// An HDF5 file that is open for reading.
pub(crate) struct LimitedFile {
    pub(crate) file: Hdf5File,
    /// The length of the file in bytes.
    pub(crate) stored: u64,
    #[cfg_attr(not(feature = "net"), allow(dead_code))] // only data layers reset the limit
    remaining_bytes: Arc<Mutex<u64>>,
}

impl LimitedFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (file, metadata) = limits::open(path)?;
        let stored = metadata.len();
        let remaining_bytes = Arc::new(Mutex::new(read_limit(stored)));
        let source = LimitedSource {
            file: Mutex::new(file),
            len: stored,
            remaining_bytes: Arc::clone(&remaining_bytes),
        };
        let invalid_error = |error| Error::InvalidData(format!("{}: {error}", path.display()));
        let file = Hdf5File::from_source(source).map_err(invalid_error)?;
        Ok(Self { file, stored, remaining_bytes })
    }

    /// Resets the number of bytes that the library may still read to the limit for the file. A data
    /// layer, which reads the same rows in each epoch, calls this method before each read.
    #[cfg(feature = "net")]
    pub(crate) fn reset_read_limit(&self) {
        *self.remaining_bytes.lock() = read_limit(self.stored);
    }

    /// Returns the number of bytes of memory that the elements of `dataset` need, at least
    /// `element_size` bytes each. Fails if the elements or the decompressed chunks of `dataset`
    /// need too much memory. `subject` names the file and the dataset.
    pub(crate) fn check_size(
        &self,
        subject: &dyn Display,
        dataset: &Dataset,
        element_size: u64,
    ) -> Result<u64> {
        let damaged_error =
            |error| Error::InvalidData(format!("{subject}: {}", with_remedy(&error)));
        let stored_size = dataset.element_size().map_err(damaged_error)?;
        let extents = dataset.shape().map_err(damaged_error)?;
        // Count an extent of 0 as 1, so that the limit also bounds the number of rows of a dataset
        // without elements.
        let size = element_size.max(stored_size);
        let bytes = extents.iter().try_fold(size, |bytes, &by| bytes.checked_mul(by.max(1)));
        let elements = format_args!("{subject}: shape {extents:?}");
        let bytes = limits::check_expanded(elements, bytes, self.stored)?;
        if let Some(chunk) = dataset.chunk_shape().map_err(damaged_error)? {
            // Several entries of the chunk index can refer to the same compressed bytes.
            let count = dataset.chunks().map_err(damaged_error)?.len();
            let mut factors = [stored_size].into_iter().chain(chunk.iter().copied());
            let chunk_bytes = factors.try_fold(count as u64, u64::checked_mul);
            let chunks = format_args!("{subject}: {count} chunks of shape {chunk:?}");
            limits::check_expanded(chunks, chunk_bytes, self.stored)?;
        }
        Ok(bytes)
    }
}

/// Returns the message of `error`. For chunks in a format that the library does not read, the
/// message names the format and how to avoid it.
fn with_remedy(error: &hdf5_pure::Error) -> String {
    use hdf5_pure::Error::Format;
    let format = match error {
        Format(FormatError::InvalidLayoutVersion(5)) => "compressed chunks as HDF5 2.0 stores them",
        Format(FormatError::ChunkedReadError(reason)) if reason.contains("version 2 B-tree") => {
            "chunks of a dataset with several unlimited dimensions, as HDF5 1.10 and later store them,"
        }
        _ => return error.to_string(),
    };
    let remedy = "write the file with `libver=\"earliest\"`, the default of h5py";
    format!("{format} are not supported; {remedy}")
}

/// Returns the number of bytes that the library may read from a file of `stored` bytes.
fn read_limit(stored: u64) -> u64 {
    stored.saturating_mul(limits::EXPANDED_RATIO).saturating_add(limits::HDF5_READ_FLOOR)
}

struct LimitedSource {
    file: Mutex<File>,
    len: u64,
    remaining_bytes: Arc<Mutex<u64>>,
}

impl Source for LimitedSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FormatError> {
        let len = buffer.len() as u64;
        let mut remaining_bytes = self.remaining_bytes.lock();
        *remaining_bytes = remaining_bytes.checked_sub(len.max(MIN_READ)).ok_or_else(|| {
            FormatError::Source(format!(
                "reading the file takes more than the limit of {} bytes; its links or B-trees may \
                 form a cycle",
                read_limit(self.len)
            ))
        })?;
        drop(remaining_bytes);
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            let end = offset.saturating_add(len);
            let reason = format!("byte {end} is beyond the end of the file");
            return Err(FormatError::Source(reason));
        }
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(buffer))
            .map_err(|error| FormatError::Source(error.to_string()))
    }
}

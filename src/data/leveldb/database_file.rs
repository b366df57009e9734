//! A file of a LevelDB database, which is read from front to back.

use crate::{
    error::{Error, Result},
    limits,
};
use std::{
    fmt::Display,
    fs::File,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

/// The number of bytes that the reader reads at once from a file.
const BUFFER_LEN: usize = 1 << 16;

/// An open file and its position.
pub(super) struct DatabaseFile {
    path: PathBuf,
    file: BufReader<File>,
    len: u64,
    position: u64,
}

impl DatabaseFile {
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let (file, metadata) = limits::open(&path)?;
        let file = BufReader::with_capacity(BUFFER_LEN, file);
        Ok(Self { path, file, len: metadata.len(), position: 0 })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Replaces the contents of `buffer` with the `len` bytes at `offset`.
    pub(super) fn read(&mut self, offset: u64, len: u64, buffer: &mut Vec<u8>) -> Result<()> {
        let io = |error| Error::io(&self.path, error);
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(self.damaged(
                offset,
                format_args!("{len} bytes expected here, but the file has {} bytes", self.len),
            ));
        }
        let size = len as usize;
        buffer.clear();
        buffer.try_reserve(size).map_err(|_| Error::out_of_host_memory(size))?;
        // `offset` and `position` are at most the length of the file, which is less than 2⁶³.
        self.file.seek_relative(offset as i64 - self.position as i64).map_err(io)?;
        let read = self.file.by_ref().take(len).read_to_end(buffer).map_err(io)?;
        self.position = offset + read as u64;
        if read < size {
            return Err(self.damaged(self.position, "the file became shorter while it was read"));
        }
        Ok(())
    }

    /// Returns the error for damage at the byte `offset`.
    pub(super) fn damaged(&self, offset: u64, reason: impl Display) -> Error {
        damaged(&self.path, offset, reason)
    }
}

/// Returns the error for damage at the byte `offset` of the file at `path`.
pub(super) fn damaged(path: &Path, offset: u64, reason: impl Display) -> Error {
    Error::InvalidData(format!("{}: damaged at byte {offset}: {reason}", path.display()))
}

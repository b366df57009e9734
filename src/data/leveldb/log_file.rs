//! The log format of LevelDB's manifest and write-ahead log.

use super::{checksum::masked_crc32c, database_file::DatabaseFile, fields::Fields};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// The length of a block. Only the last block of a file can be shorter.
const BLOCK_LEN: usize = 1 << 15;
/// The length of the header of a fragment: checksum (4 bytes), length (2), type (1).
const HEADER_LEN: usize = 7;

/// The types of fragments. A record that fits into the rest of its block is one `FULL` fragment. A
/// longer record has a `FIRST` fragment, any number of `MIDDLE` fragments and a `LAST` fragment.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// A reader of the records of a log file, with memory for one block.
pub(super) struct LogFile {
    file: DatabaseFile,
    block: Vec<u8>,
    block_start: u64,
    /// The offset, in the block, of the next fragment.
    next: usize,
}

impl LogFile {
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let file = DatabaseFile::open(path)?;
        Ok(Self { file, block: Vec::new(), block_start: 0, next: 0 })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the length of the file in bytes.
    pub(super) fn len(&self) -> u64 {
        self.file.len()
    }

    /// Replaces the contents of `record` with the next record. Returns the offset of the record in
    /// the file, or `None` at the end of the file.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for a damaged record. Returns the same error for an
    /// incomplete record at the end of the file. LevelDB ignores such a record, because a writer
    /// that was killed leaves one behind. However, an incomplete record can also mean that the file
    /// was truncated, and that more records are missing.
    pub(super) fn read(&mut self, record: &mut Vec<u8>) -> Result<Option<u64>> {
        record.clear();
        let mut start = None;
        loop {
            let offset = self.block_start + self.next as u64;
            let rest = &self.block[self.next..];
            if rest.len() < HEADER_LEN {
                // LevelDB fills the end of a block with zeros if no header fits there.
                let at_end = offset + rest.len() as u64 == self.file.len();
                if at_end && rest.iter().all(|&byte| byte == 0) {
                    return match start {
                        Some(start) => Err(self.incomplete(start)),
                        None => Ok(None),
                    };
                }
                if at_end {
                    return Err(self.incomplete(start.unwrap_or(offset)));
                }
                self.read_block()?;
                continue;
            }
            let mut fields = Fields(rest);
            let (Some(checksum), Some(len), Some(kind)) = (fields.u32(), fields.u16(), fields.u8())
            else {
                return Err(self.incomplete(offset));
            };
            if (checksum, len, kind) == (0, 0, 0) && rest.iter().all(|&byte| byte == 0) {
                // Early versions of LevelDB allocated the file in advance, so the rest of the block
                // can be zeros.
                self.next = self.block.len();
                continue;
            }
            let Some(data) = fields.bytes(len.into()) else {
                return Err(match self.block.len() {
                    BLOCK_LEN => self.damaged(offset, "a record extends beyond its block"),
                    _ => self.incomplete(start.unwrap_or(offset)),
                });
            };
            // The checksum covers the type and the data.
            if masked_crc32c(&rest[HEADER_LEN - 1..][..=data.len()]) != checksum {
                return Err(self.damaged(offset, "wrong checksum of a record"));
            }
            // An early version of LevelDB wrote an empty `FIRST` fragment at the end of a block,
            // and wrote the record into the next block.
            let is_inside = start.is_some() && !record.is_empty();
            match (kind, start) {
                (FULL | FIRST, _) if !is_inside => start = Some(offset),
                (MIDDLE | LAST, Some(_)) => {}
                (FULL | FIRST | MIDDLE | LAST, _) => {
                    return Err(self.damaged(offset, "a fragment of another record was expected"));
                }
                _ => return Err(self.damaged(offset, format_args!("unknown type {kind}"))),
            }
            record.try_reserve(data.len()).map_err(|_| Error::out_of_host_memory(data.len()))?;
            record.extend_from_slice(data);
            self.next += HEADER_LEN + data.len();
            if kind == FULL || kind == LAST {
                return Ok(start);
            }
        }
    }

    fn read_block(&mut self) -> Result<()> {
        self.block_start += self.block.len() as u64;
        self.next = 0;
        let len = (self.file.len() - self.block_start).min(BLOCK_LEN as u64);
        self.file.read(self.block_start, len, &mut self.block)
    }

    fn incomplete(&self, offset: u64) -> Error {
        self.damaged(
            offset,
            "the file ends within this record: the file was truncated, or its writer was stopped; \
             to drop the record, open the database for writing with LevelDB",
        )
    }

    pub(super) fn damaged(&self, offset: u64, reason: impl std::fmt::Display) -> Error {
        self.file.damaged(offset, reason)
    }
}

//! A block of a LevelDB table: keys and values, in ascending order of keys.

use super::{checksum::masked_crc32c, database_file::DatabaseFile, fields::Fields};
use crate::error::{Error, Result};
use std::ops::Range;

/// The length of the trailer that follows each block in a file: compression (1 byte), checksum (4).
pub(super) const TRAILER_LEN: u64 = 5;
/// The maximum ratio of the decompressed to the compressed length with Snappy: an element of 3
/// bytes copies at most 64 bytes.
const SNAPPY_RATIO: usize = 22;

/// The offset of a block in a file, and its length without the trailer.
#[derive(Clone, Copy)]
pub(super) struct Handle {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Handle {
    pub(super) fn parse(fields: &mut Fields) -> Option<Self> {
        Some(Self { offset: fields.varint()?, len: fields.varint()? })
    }

    /// Returns the offset of the first byte after the block's trailer.
    pub(super) fn end(self) -> Option<u64> {
        self.offset.checked_add(self.len)?.checked_add(TRAILER_LEN)
    }
}

/// A cursor over the entries of a block.
#[derive(Default)]
pub(super) struct Block {
    /// The bytes of the block as stored in the file, with the trailer.
    stored: Vec<u8>,
    /// The decompressed bytes of a compressed block.
    expanded: Vec<u8>,
    is_compressed: bool,
    /// The offset of the block in the file, for error messages.
    offset: u64,
    next: usize,
    /// The offset in the block at which the entries end.
    end: usize,
    key: Vec<u8>,
    value: Range<usize>,
}

impl Block {
    /// Reads the block at `handle`, and places the cursor before the first entry.
    pub(super) fn read(&mut self, file: &mut DatabaseFile, handle: Handle) -> Result<()> {
        (self.offset, self.next, self.end) = (handle.offset, 0, 0);
        self.key.clear();
        let damaged = |reason: &str| file.damaged(handle.offset, reason);
        let len = handle.len.checked_add(TRAILER_LEN);
        let len = len.ok_or_else(|| damaged("a block extends beyond the end of the file"))?;
        file.read(handle.offset, len, &mut self.stored)?;
        let damaged = |reason: &str| file.damaged(handle.offset, reason);
        let Some((checked, checksum)) = self.stored.split_last_chunk() else {
            return Err(damaged("a block without a trailer"));
        };
        if masked_crc32c(checked) != u32::from_le_bytes(*checksum) {
            return Err(damaged("wrong checksum of a block"));
        }
        let Some((compression, stored)) = checked.split_last() else {
            return Err(damaged("a block without a trailer"));
        };
        self.is_compressed = match compression {
            0 => false,
            1 => {
                expand(stored, &mut self.expanded)
                    .map_err(|reason| file.damaged(handle.offset, reason))?;
                true
            }
            other => {
                let name = if *other == 2 { " (Zstandard)" } else { "" };
                let reason = format!(
                    "block at byte {}: compression {other}{name} is not supported, only Snappy",
                    handle.offset
                );
                return Err(Error::InvalidData(format!("{}: {reason}", file.path().display())));
            }
        };
        // A block ends with the offsets of the entries that store a whole key, and with the number
        // of these offsets. A cursor that only moves forward does not need these offsets.
        let bytes = self.bytes();
        let end = bytes.split_last_chunk().and_then(|(rest, count)| {
            let count = u32::from_le_bytes(*count) as usize;
            rest.len().checked_sub(count.checked_mul(4)?)
        });
        self.end = end.ok_or_else(|| damaged("a block is too short for its list of restarts"))?;
        Ok(())
    }

    /// Returns the block's bytes, with the trailer if the block is not compressed.
    fn contents(&self) -> &[u8] {
        if self.is_compressed { &self.expanded } else { &self.stored }
    }

    fn bytes(&self) -> &[u8] {
        let trailer_len = if self.is_compressed { 0 } else { TRAILER_LEN as usize };
        let contents = self.contents();
        &contents[..contents.len() - trailer_len]
    }

    /// Moves the cursor to the next entry; returns `false` after the last entry.
    pub(super) fn advance(&mut self, file: &DatabaseFile) -> Result<bool> {
        if self.next == self.end {
            return Ok(false);
        }
        let contents = if self.is_compressed { &self.expanded } else { &self.stored };
        let mut fields = Fields(&contents[self.next..self.end]);
        let mut parse = || {
            let (shared, unshared, value) = (fields.len()?, fields.len()?, fields.len()?);
            let key = fields.bytes(unshared)?;
            fields.bytes(value)?;
            // The first `shared` bytes of the key are those of the previous key.
            (shared <= self.key.len()).then(|| {
                self.key.truncate(shared);
                self.key.extend_from_slice(key);
                value
            })
        };
        let Some(value_len) = parse() else {
            let reason = format!("invalid entry at byte {} of the expanded block", self.next);
            return Err(file.damaged(self.offset, reason));
        };
        self.next = self.end - fields.0.len();
        self.value = self.next - value_len..self.next;
        Ok(true)
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.contents()[self.value.clone()]
    }

    /// Returns the offset of the block in its file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
}

/// Decompresses a block that was compressed with Snappy.
fn expand(stored: &[u8], expanded: &mut Vec<u8>) -> Result<(), String> {
    let invalid = |error: snap::Error| format!("invalid Snappy data: {error}");
    let len = snap::raw::decompress_len(stored).map_err(invalid)?;
    if len > stored.len().saturating_mul(SNAPPY_RATIO) {
        return Err(format!("invalid Snappy data: {} bytes cannot expand to {len}", stored.len()));
    }
    expanded.resize(len, 0);
    let written = snap::raw::Decoder::new().decompress(stored, expanded).map_err(invalid)?;
    expanded.truncate(written);
    Ok(())
}

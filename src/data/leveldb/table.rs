//! A cursor over the entries of a LevelDB table.

use super::{
    block::{Block, Handle},
    database_file::DatabaseFile,
    fields::Fields,
    manifest::{TAG_LEN, Table},
};
use crate::error::Result;

const FOOTER_LEN: u64 = 48;
const MAGIC: u64 = 0xDB47_7524_8B80_FB57;

/// A cursor over the entries of a table, with memory for the index block and for one data block.
pub(super) struct TableCursor {
    file: DatabaseFile,
    index: Block,
    data: Block,
    /// The offset at which the last data block that was read ends. Data blocks do not overlap, so
    /// the cursor reads each byte of the file at most once.
    data_end: u64,
    /// The offset of the index block, before which all data blocks end.
    index_start: u64,
}

impl TableCursor {
    /// Opens a table. The cursor starts before the first entry.
    pub(super) fn open(table: &Table) -> Result<Self> {
        let mut file = DatabaseFile::open(table.path.clone())?;
        let start = file.len().saturating_sub(FOOTER_LEN);
        let mut footer = Vec::new();
        file.read(start, FOOTER_LEN, &mut footer)?;
        let not_table = || file.damaged(start, "the footer is not that of a LevelDB table");
        // The footer contains two handles, zeros up to its 40th byte, and the magic number.
        let (handles, magic) = footer.split_last_chunk().ok_or_else(not_table)?;
        if u64::from_le_bytes(*magic) != MAGIC {
            return Err(not_table());
        }
        let mut fields = Fields(handles);
        // The first handle is that of the metaindex block, which locates the filters and which a
        // cursor does not need.
        let handle = Handle::parse(&mut fields).and_then(|_| Handle::parse(&mut fields));
        let handle = handle.filter(|handle| handle.end().is_some_and(|end| end <= start));
        let handle = handle.ok_or_else(|| {
            file.damaged(start, "the footer states an index block outside of the file")
        })?;
        let mut index = Block::default();
        index.read(&mut file, handle)?;
        let data = Block::default();
        Ok(Self { file, index, data, data_end: 0, index_start: handle.offset })
    }

    /// Moves the cursor to the next entry; returns `false` after the last entry.
    pub(super) fn advance(&mut self) -> Result<bool> {
        while !self.data.advance(&self.file)? {
            if !self.index.advance(&self.file)? {
                return Ok(false);
            }
            let handle = Handle::parse(&mut Fields(self.index.value()));
            let end = handle.and_then(|handle| handle.end());
            let (Some(handle), Some(end)) = (handle, end.filter(|&end| end <= self.index_start))
            else {
                let reason = "the index refers to a block outside of the data";
                return Err(self.file.damaged(self.index.offset(), reason));
            };
            if handle.offset < self.data_end {
                let reason = "the index refers to overlapping blocks";
                return Err(self.file.damaged(self.index.offset(), reason));
            }
            self.data_end = end;
            self.data.read(&mut self.file, handle)?;
        }
        match self.data.key().split_last_chunk() {
            Some((_, tag)) if u64::from_le_bytes(*tag) & 0xFF <= 1 => Ok(true),
            _ => Err(self.damaged("a key without a valid sequence number")),
        }
    }

    /// Returns the key and the tag of the current entry. The cursor must be at an entry.
    pub(super) fn key(&self) -> (&[u8], u64) {
        match self.data.key().split_last_chunk::<TAG_LEN>() {
            Some((key, tag)) => (key, u64::from_le_bytes(*tag)),
            None => (&[], 0),
        }
    }

    pub(super) fn value(&self) -> &[u8] {
        self.data.value()
    }

    /// Returns the error for damage in the current data block.
    pub(super) fn damaged(&self, reason: &str) -> crate::error::Error {
        self.file.damaged(self.data.offset(), reason)
    }
}

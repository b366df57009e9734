//! The changes in the write-ahead logs of a LevelDB database.

use super::{fields::Fields, log_file::LogFile};
use crate::error::{Error, Result};
use std::path::PathBuf;

/// The length of the header of a batch: sequence number of the first change (8 bytes), number of
/// changes (4).
const HEADER_LEN: usize = 12;

/// The changes in all write-ahead logs, sorted by key, the newest change of a key first.
#[derive(Default)]
pub(super) struct WriteLog {
    /// The batches of the logs, which contain the keys and the values.
    bytes: Vec<u8>,
    changes: Vec<Change>,
    /// The length of the logs in bytes.
    pub(super) len: u64,
}

/// A change of one key; `start` and `value_start` are the offsets of the key and the value in the
/// bytes of all batches.
struct Change {
    start: usize,
    key_len: usize,
    value_start: usize,
    value_len: usize,
    tag: u64,
}

impl WriteLog {
    /// Reads the logs at `paths`.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        let (mut log, mut record) = (Self::default(), Vec::new());
        for path in paths {
            let mut file = LogFile::open(path.clone())?;
            log.len += file.len();
            while let Some(offset) = file.read(&mut record)? {
                let base = log.bytes.len();
                let reserved = log.bytes.try_reserve(record.len());
                reserved.map_err(|_| Error::out_of_host_memory(record.len()))?;
                log.bytes.extend_from_slice(&record);
                let added = add_batch(&mut log.changes, base, &record);
                added.ok_or_else(|| file.damaged(offset, "invalid batch of changes"))?;
            }
        }
        let Self { bytes, changes, .. } = &mut log;
        changes.sort_unstable_by(|a, b| {
            let key = |change: &Change| &bytes[change.start..][..change.key_len];
            key(a).cmp(key(b)).then(b.tag.cmp(&a.tag))
        });
        Ok(log)
    }

    /// Returns the key, the tag and the value of a change; `None` after the last change.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], u64, &[u8])> {
        let change = self.changes.get(index)?;
        let key = self.bytes.get(change.start..)?.get(..change.key_len)?;
        let value = self.bytes.get(change.value_start..)?.get(..change.value_len)?;
        Some((key, change.tag, value))
    }
}

/// Adds the changes of `batch`, whose first byte has the index `base` among the bytes of all
/// batches. Returns `None` if the batch is invalid.
fn add_batch(changes: &mut Vec<Change>, base: usize, batch: &[u8]) -> Option<()> {
    let mut fields = Fields(batch.get(..HEADER_LEN)?);
    let (sequence, count) = (fields.u64()?, fields.u32()?);
    let mut fields = Fields(&batch[HEADER_LEN..]);
    let position = |fields: &Fields| base + batch.len() - fields.0.len();
    for index in 0..u64::from(count) {
        let kind = fields.u8().filter(|&kind| kind <= 1)?;
        let key_len = fields.string()?.len();
        let start = position(&fields) - key_len;
        // A deletion has no value.
        let value_len = if kind == 1 { fields.string()?.len() } else { 0 };
        let value_start = position(&fields) - value_len;
        // A tag is the sequence number in 56 bits, and the type in 8 bits.
        let sequence = sequence.checked_add(index).filter(|&sequence| sequence >> 56 == 0)?;
        let tag = sequence << 8 | u64::from(kind);
        changes.push(Change { start, key_len, value_start, value_len, tag });
    }
    fields.is_empty().then_some(())
}

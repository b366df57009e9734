//! A reader of LevelDB databases.

use super::{
    manifest::{Manifest, Table},
    table::TableCursor,
    write_log::WriteLog,
};
use crate::{
    error::{Error, Result},
    limits,
};
use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, binary_heap::PeekMut},
    path::{Path, PathBuf},
};

/// A cursor over the records of a LevelDB database, in key order.
///
/// The cursor starts before the first record. [`advance`](Self::advance) moves the cursor to the
/// next record, and [`entry`](Self::entry) returns the current record. The cursor merges the tables
/// and the write-ahead log, and skips old values and deleted keys. A database does not state the
/// number of its records.
///
/// The cursor keeps in memory the write-ahead log and the list of tables. In addition, the cursor
/// keeps an index block and a data block of each table whose key range contains the current key;
/// usually, this is one table for each level.
///
/// ```no_run
/// use cortado::data::LevelDbReader;
///
/// let mut reader = LevelDbReader::open("mnist_train_leveldb")?;
/// let (mut records, mut bytes) = (0, 0);
/// while reader.advance()? {
///     let (_key, value) = reader.entry();
///     (records, bytes) = (records + 1, bytes + value.len());
/// }
/// println!("{records} records, {bytes} bytes");
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct LevelDbReader {
    folder: PathBuf,
    /// Lists of tables. The key ranges of the tables in a list ascend and do not overlap.
    chains: Vec<Vec<Table>>,
    log: WriteLog,
    cursors: Vec<Cursor>,
    /// The current entry of each cursor that is not at its end.
    heads: BinaryHeap<Head>,
    /// The key of the current record, or of the last deletion.
    key: Vec<u8>,
    state: State,
    /// The number of bytes of keys and values that the cursor may still read before the next
    /// rewind. The files can be smaller than the keys and values, because LevelDB stores a common
    /// prefix of keys only once and compresses blocks.
    remaining: u64,
    /// The total length of tables and write-ahead logs in bytes.
    len: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    BeforeFirst,
    AtRecord,
    AfterLast,
    Failed,
}

/// A cursor over a chain of tables, or over the write-ahead log.
enum Cursor {
    Tables { chain: usize, next: usize, table: Option<Box<TableCursor>> },
    Log { next: usize },
}

/// The current entry of a cursor. The greatest head is the entry with the smallest key, and among
/// the entries of a key the newest one.
#[derive(PartialEq, Eq)]
struct Head {
    key: Vec<u8>,
    tag: u64,
    cursor: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = other.key.cmp(&self.key);
        by_key.then(self.tag.cmp(&other.tag)).then(other.cursor.cmp(&self.cursor))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl LevelDbReader {
    /// Opens the LevelDB database in the directory `path`, and reads its manifest and its
    /// write-ahead log.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if a file cannot be read. Returns [`Error::InvalidData`] for a damaged
    /// file, with the file and the offset of the damage, and for a database whose keys are in an
    /// order that its program defined.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let folder = path.as_ref().to_owned();
        let Manifest { tables, logs } = Manifest::read(&folder)?;
        let log = WriteLog::read(&logs)?;
        let len = tables.iter().fold(log.len, |sum, table| sum.saturating_add(table.len));
        let (chains, cursors, heads) = (chains(tables), Vec::new(), BinaryHeap::new());
        let (key, state) = (Vec::new(), State::BeforeFirst);
        let remaining = limits::expanded(len);
        Ok(Self { folder, chains, log, cursors, heads, key, state, remaining, len })
    }

    /// Moves the cursor to the next record. Returns `false` after the last record.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if a read fails, and [`Error::InvalidData`] for a damaged table. After
    /// an error, the cursor does not move until [`rewind`](Self::rewind) is called.
    pub fn advance(&mut self) -> Result<bool> {
        let result = self.move_to_next();
        self.state = match result {
            Ok(true) => State::AtRecord,
            Ok(false) => State::AfterLast,
            Err(_) => State::Failed,
        };
        result
    }

    fn move_to_next(&mut self) -> Result<bool> {
        let mut is_first = false;
        match self.state {
            State::BeforeFirst => {
                self.start()?;
                is_first = true;
            }
            State::AtRecord => self.advance_newest()?,
            State::AfterLast => return Ok(false),
            State::Failed => {
                let reason = "an earlier read failed; rewind the cursor first";
                return Err(Error::InvalidData(format!("{}: {reason}", self.folder.display())));
            }
        }
        while let Some(head) = self.heads.peek() {
            let order = if is_first { Ordering::Greater } else { head.key.cmp(&self.key) };
            is_first = false;
            match order {
                Ordering::Less => return Err(self.cursors[head.cursor].out_of_order(&self.folder)),
                // An older entry of the same key.
                Ordering::Equal => {}
                Ordering::Greater => {
                    self.key.clone_from(&head.key);
                    if head.tag & 0xFF == 1 {
                        return Ok(true);
                    }
                }
            }
            self.advance_newest()?;
        }
        Ok(false)
    }

    /// Moves each cursor to its first entry.
    fn start(&mut self) -> Result<()> {
        let tables = |chain| Cursor::Tables { chain, next: 0, table: None };
        self.cursors = (0..self.chains.len()).map(tables).collect();
        self.cursors.push(Cursor::Log { next: 0 });
        for cursor in 0..self.cursors.len() {
            let (key, tag) = (Vec::new(), 0);
            let mut head = Head { key, tag, cursor };
            if self.cursors[cursor].advance(&self.chains, &self.log)? {
                self.cursors[cursor]
                    .store(&mut head, &self.log, &mut self.remaining)
                    .ok_or_else(|| exceeds(&self.folder, self.len))?;
                self.heads.push(head);
            }
        }
        Ok(())
    }

    /// Advances the cursor of the greatest head.
    fn advance_newest(&mut self) -> Result<()> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(()) };
        let cursor = &mut self.cursors[head.cursor];
        if cursor.advance(&self.chains, &self.log)? {
            cursor
                .store(&mut head, &self.log, &mut self.remaining)
                .ok_or_else(|| exceeds(&self.folder, self.len))
        } else {
            PeekMut::pop(head);
            Ok(())
        }
    }

    /// Returns the key and the value of the current record. The key and the value are empty before
    /// the first record, after the last record and after an error.
    pub fn entry(&self) -> (&[u8], &[u8]) {
        match self.heads.peek().filter(|_| self.state == State::AtRecord) {
            Some(head) => (&self.key, self.cursors[head.cursor].entry(&self.log).2),
            None => (&[], &[]),
        }
    }

    /// Moves the cursor back to the start, before the first record.
    pub fn rewind(&mut self) {
        self.heads.clear();
        self.state = State::BeforeFirst;
        self.remaining = limits::expanded(self.len);
    }
}

impl Cursor {
    /// Moves the cursor to its next entry; returns `false` after the last entry.
    fn advance(&mut self, chains: &[Vec<Table>], log: &WriteLog) -> Result<bool> {
        match self {
            Self::Log { next } => {
                *next += 1;
                Ok(log.get(*next - 1).is_some())
            }
            Self::Tables { chain, next, table } => loop {
                if let Some(table) = table
                    && table.advance()?
                {
                    return Ok(true);
                }
                let Some(next_table) = chains[*chain].get(*next) else { return Ok(false) };
                *table = Some(Box::new(TableCursor::open(next_table)?));
                *next += 1;
            },
        }
    }

    /// Returns the key, the tag and the value of the current entry.
    fn entry<'a>(&'a self, log: &'a WriteLog) -> (&'a [u8], u64, &'a [u8]) {
        match self {
            Self::Log { next } => log.get(next.wrapping_sub(1)).unwrap_or_default(),
            Self::Tables { table: Some(table), .. } => {
                let (key, tag) = table.key();
                (key, tag, table.value())
            }
            Self::Tables { table: None, .. } => (&[], 0, &[]),
        }
    }

    /// Stores the key and the tag of the current entry in `head`, and counts the bytes of the entry
    /// toward the limit. Returns `None` if the entry exceeds the limit.
    fn store(&self, head: &mut Head, log: &WriteLog, remaining: &mut u64) -> Option<()> {
        let (key, tag, value) = self.entry(log);
        *remaining = remaining.checked_sub(key.len() as u64 + value.len() as u64)?;
        head.key.clear();
        head.key.extend_from_slice(key);
        head.tag = tag;
        Some(())
    }

    fn out_of_order(&self, folder: &Path) -> Error {
        let reason = "the keys do not ascend";
        match self {
            Self::Tables { table: Some(table), .. } => table.damaged(reason),
            _ => Error::InvalidData(format!("{}: damaged: {reason}", folder.display())),
        }
    }
}

fn exceeds(folder: &Path, len: u64) -> Error {
    let limit = limits::expanded(len);
    let reason =
        format!("keys and values have more than the limit of {limit} bytes for {len} stored bytes");
    Error::InvalidData(format!("{}: {reason}", folder.display()))
}

/// Divides the tables into the smallest number of chains such that the key ranges of the tables in
/// a chain ascend and do not overlap. The tables of one level of a database form a chain, except
/// those of level 0. A repaired database has all its tables in level 0.
fn chains(mut tables: Vec<Table>) -> Vec<Vec<Table>> {
    tables.sort_by(|a, b| a.smallest.cmp(&b.smallest));
    let mut chains: Vec<Vec<Table>> = Vec::new();
    // The chain that ends with the smallest key is on top.
    let mut ends: BinaryHeap<Reverse<(Vec<u8>, usize)>> = BinaryHeap::new();
    for table in tables {
        let end = table.largest.clone();
        let chain = match ends.peek_mut() {
            Some(top) if top.0.0 < table.smallest => PeekMut::pop(top).0.1,
            _ => {
                chains.push(Vec::new());
                chains.len() - 1
            }
        };
        chains[chain].push(table);
        ends.push(Reverse((end, chain)));
    }
    chains
}

#[cfg(test)]
mod tests;

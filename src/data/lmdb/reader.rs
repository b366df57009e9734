//! A reader of LMDB databases.

use super::page::{
    BIG, BRANCH, DATABASE, DUPLICATE, HEADER, LEAF, MAGIC, META, META_END, META_FREE,
    META_LAST_PAGE, META_MAIN, META_TRANSACTION, META_VERSION, NO_PAGE, NODE, OVERFLOW, Page,
    TREE_DEPTH, TREE_ENTRIES, TREE_FLAGS, TREE_ROOT, VERSION,
};
use crate::{
    error::{Error, Result},
    limits,
};
use std::{
    fmt::Display,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// The maximum number of pages from the root to a leaf, as in LMDB.
const MAX_DEPTH: u16 = 32;
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 256..=1 << 16;
/// The flag of a tree whose keys can have several values (`MDB_DUPSORT`).
const DUPLICATE_KEYS: u16 = 0x04;

/// A cursor over the records of an LMDB database, in key order.
///
/// The cursor starts before the first record. [`advance`](Self::advance) moves the cursor to the
/// next record, and [`entry`](Self::entry) reads the current record. The cursor keeps in memory one
/// page per level of the tree and a buffer for the longest value.
///
/// ```no_run
/// use cortado::data::LmdbReader;
///
/// let mut reader = LmdbReader::open("mnist_train_lmdb")?;
/// let mut bytes = 0;
/// while reader.advance()? {
///     let (_key, value) = reader.entry()?;
///     bytes += value.len();
/// }
/// println!("{} records, {bytes} bytes", reader.entries());
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct LmdbReader {
    file: Pages,
    root: u64,
    entries: u64,
    position: u64,
    /// The path from the root of the tree to the current record: a page and a node index for each
    /// level.
    levels: Vec<Level>,
    /// The buffer of a value on overflow pages: the header of the first page, followed by the
    /// value.
    value: Vec<u8>,
    /// The position of the record to which the contents of `value` belong; 0 if `value` has no
    /// valid contents.
    value_position: u64,
}

#[derive(Default)]
struct Level {
    page: Vec<u8>,
    index: usize,
}

struct Pages {
    path: PathBuf,
    file: File,
    page_size: usize,
    count: u64,
    /// The number of bytes that the cursor may still read before the next rewind. In an undamaged
    /// database, the tree refers to each page only once.
    remaining: u64,
}

impl LmdbReader {
    /// Opens the LMDB database at `path`, which is the file `data.mdb` or the directory of that
    /// file.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the file cannot be read. Returns [`Error::InvalidData`] for a file
    /// that is not an LMDB database from a 64-bit little-endian machine, is shorter than its header
    /// states, or allows several values per key.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let path = if path.is_dir() { path.join("data.mdb") } else { path.to_owned() };
        let io = |error| Error::io(&path, error);
        let (mut file, metadata) = limits::open(&path)?;
        let length = metadata.len();
        let invalid = |reason: String| Error::InvalidData(format!("{}: {reason}", path.display()));

        let mut first_meta = Vec::new();
        file.by_ref().take(META_END as u64).read_to_end(&mut first_meta).map_err(io)?;
        let not_lmdb = || invalid("not an LMDB database".into());
        check_meta(&first_meta).ok_or_else(not_lmdb)?.map_err(invalid)?;
        let page_size = Page(&first_meta).u32(META_FREE).ok_or_else(not_lmdb)?;
        if !PAGE_SIZES.contains(&page_size) || !page_size.is_power_of_two() {
            return Err(invalid(format!(
                "damaged: the header states a page size of {page_size} bytes"
            )));
        }
        let mut second_meta = vec![0; META_END];
        file.seek(SeekFrom::Start(page_size.into())).map_err(io)?;
        let result = file.read_exact(&mut second_meta);
        result.map_err(|_| invalid("damaged: the file ends within the header".into()))?;
        let damaged = || invalid("damaged: the second page is not a meta page".into());
        check_meta(&second_meta).ok_or_else(damaged)?.map_err(invalid)?;
        let transaction = |meta| Page(meta).u64(META_TRANSACTION);
        let newer_meta = if transaction(&first_meta) < transaction(&second_meta) {
            &second_meta
        } else {
            &first_meta
        };

        let field = |at| Page(newer_meta).u64(at).unwrap_or_default();
        let tree_field = |at| Page(newer_meta).u16(META_MAIN + at).unwrap_or_default();
        let last_page = field(META_LAST_PAGE);
        let needed_len =
            last_page.checked_add(1).and_then(|pages| pages.checked_mul(page_size.into()));
        if needed_len.is_none_or(|needed_len| needed_len > length) {
            let reason = format!(
                "the file has {length} bytes, too short for page {last_page} of {page_size} bytes"
            );
            return Err(invalid(format!("damaged: {reason}")));
        }
        if tree_field(TREE_FLAGS) & DUPLICATE_KEYS != 0 {
            return Err(invalid(
                "keys can have several values, unlike in databases that Caffe writes".into(),
            ));
        }
        let (entries, root) = (field(META_MAIN + TREE_ENTRIES), field(META_MAIN + TREE_ROOT));
        let depth = if root == NO_PAGE { 0 } else { tree_field(TREE_DEPTH) };
        if depth > MAX_DEPTH || (depth == 0) != (entries == 0) {
            let reason = format!(
                "damaged: the header states a tree of {depth} levels and {entries} records"
            );
            return Err(invalid(reason));
        }
        let levels = (0..depth).map(|_| Level::default()).collect();
        let page_size = page_size as usize;
        let mut file = Pages { path, file, page_size, count: last_page + 1, remaining: 0 };
        file.reset_remaining();
        let (position, value_position) = (0, 0);
        Ok(Self { file, root, entries, position, levels, value: Vec::new(), value_position })
    }

    /// Returns the number of records.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Moves the cursor to the next record. At the last record, returns `false` and does not move
    /// the cursor.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if a read fails, and [`Error::InvalidData`] for a damaged tree.
    pub fn advance(&mut self) -> Result<bool> {
        let next = self.levels.iter().rposition(|level| level.index + 1 < level.page().count());
        if self.position == self.entries {
            return match next {
                Some(_) if self.position > 0 => {
                    Err(self.file.damaged("the tree has more records than the header states"))
                }
                _ => Ok(false),
            };
        }
        let (mut number, top) = match next {
            _ if self.position == 0 => (self.root, 0),
            None => {
                return Err(self.file.damaged("the tree has fewer records than the header states"));
            }
            Some(level) => {
                self.levels[level].index += 1;
                if level + 1 == self.levels.len() {
                    return self.count_record();
                }
                (self.child(level)?, level + 1)
            }
        };
        for level in top..self.levels.len() {
            let is_leaf = level + 1 == self.levels.len();
            let current_level = &mut self.levels[level];
            current_level.index = 0;
            current_level.page.resize(self.file.page_size, 0);
            self.file.read(number, if is_leaf { LEAF } else { BRANCH }, &mut current_level.page)?;
            if current_level.page().count() == 0 {
                return Err(self.file.damaged(format_args!("page {number} has no nodes")));
            }
            if !is_leaf {
                number = self.child(level)?;
            }
        }
        self.count_record()
    }

    /// Counts the record to which the cursor has moved. Also counts the bytes of the record's node
    /// toward the limit, because overlapping nodes can have more bytes in total than their page.
    fn count_record(&mut self) -> Result<bool> {
        let node = self.levels.last().map(|level| level.page().node(level.index));
        let node = node.flatten().ok_or_else(|| self.file.damaged(OUTSIDE))?;
        let value = if node.flags & BIG == 0 { node.len() } else { 0 };
        let bytes = NODE + node.key.len() + value;
        self.file.consume(bytes as u64)?;
        self.position += 1;
        Ok(true)
    }

    /// Returns the page number of the current child of the branch page at `level`.
    fn child(&self, level: usize) -> Result<u64> {
        let Level { page, index } = &self.levels[level];
        let node = Page(page).node(*index).ok_or_else(|| self.file.damaged(OUTSIDE))?;
        Ok(node.child())
    }

    /// Returns the key and the value of the current record. The key and the value are empty before
    /// the first call of `advance`.
    ///
    /// # Errors
    /// Returns any error from [`advance`](Self::advance), and [`Error::InvalidData`] for a nested
    /// database.
    pub fn entry(&mut self) -> Result<(&[u8], &[u8])> {
        let Some(Level { page, index }) = self.levels.last().filter(|_| self.position > 0) else {
            return Ok((&[], &[]));
        };
        let outside_page = || self.file.damaged(OUTSIDE);
        let node = Page(page).node(*index).ok_or_else(outside_page)?;
        if node.flags & (DATABASE | DUPLICATE) != 0 {
            let name = String::from_utf8_lossy(node.key);
            let reason = format!("`{name}` is a nested database, which Caffe does not write");
            return Err(Error::InvalidData(format!("{}: {reason}", self.file.path.display())));
        }
        if node.flags & BIG == 0 {
            return Ok((node.key, node.value().ok_or_else(outside_page)?));
        }
        let first = node.overflow().ok_or_else(outside_page)?;
        let length = HEADER + node.len();
        let pages = length.div_ceil(self.file.page_size) as u64;
        if first.checked_add(pages).is_none_or(|end| end > self.file.count) {
            return Err(self.file.damaged("a value extends beyond the end of the file"));
        }
        if self.value_position == self.position {
            return Ok((node.key, &self.value[HEADER..]));
        }
        self.value_position = 0;
        self.file.check_remaining(length as u64)?;
        let reserve_result = self.value.try_reserve(length.saturating_sub(self.value.len()));
        reserve_result.map_err(|_| Error::out_of_host_memory(length))?;
        self.value.resize(length, 0);
        self.file.read(first, OVERFLOW, &mut self.value)?;
        if Page(&self.value).u32(12).is_none_or(|count| u64::from(count) < pages) {
            return Err(self.file.damaged(format_args!(
                "a value does not fit in the overflow pages from page {first} on"
            )));
        }
        self.value_position = self.position;
        Ok((node.key, &self.value[HEADER..]))
    }

    /// Moves the cursor back to the start, before the first record.
    pub fn rewind(&mut self) {
        (self.position, self.value_position) = (0, 0);
        self.file.reset_remaining();
    }
}

const OUTSIDE: &str = "a node extends beyond the end of its page";

impl Level {
    fn page(&self) -> Page<'_> {
        Page(&self.page)
    }
}

impl Pages {
    /// Fills `buffer` from the start of page `number`, which must have the flag `kind`.
    fn read(&mut self, number: u64, kind: u16, buffer: &mut [u8]) -> Result<()> {
        // The first two pages of a database are meta pages.
        if !(2..self.count).contains(&number) {
            return Err(self.damaged(format_args!("page {number} is not in the file")));
        }
        self.consume(buffer.len() as u64)?;
        let start = SeekFrom::Start(number * self.page_size as u64);
        let result = self.file.seek(start).and_then(|_| self.file.read_exact(buffer));
        result.map_err(|error| Error::io(&self.path, error))?;
        let page = Page(buffer);
        if page.number() != Some(number) || page.flags().is_none_or(|flags| flags & kind == 0) {
            return Err(self.damaged(format_args!(
                "page {number} has another number or type than the tree states"
            )));
        }
        Ok(())
    }

    /// Sets the limit to twice the size of the pages: the cursor reads each page once, and each
    /// node of the leaf pages once more.
    fn reset_remaining(&mut self) {
        self.remaining = self.count.saturating_mul(2 * self.page_size as u64);
    }

    /// Fails if `bytes` more bytes would exceed the limit of the current pass.
    fn check_remaining(&self, bytes: u64) -> Result<()> {
        if bytes <= self.remaining {
            return Ok(());
        }
        let limit = self.count.saturating_mul(2 * self.page_size as u64);
        Err(self.damaged(format_args!(
            "the tree refers to a page or a value more than once: one pass over the records takes \
             more than the limit of {limit} bytes, twice the size of the pages"
        )))
    }

    fn consume(&mut self, bytes: u64) -> Result<()> {
        self.check_remaining(bytes)?;
        self.remaining -= bytes;
        Ok(())
    }

    fn damaged(&self, reason: impl Display) -> Error {
        Error::InvalidData(format!("{}: damaged: {reason}", self.path.display()))
    }
}

/// Checks the format of a meta page. Returns `None` if `page` is not a meta page, and an error if
/// the format is not supported.
fn check_meta(page: &[u8]) -> Option<Result<(), String>> {
    let page = Page(page);
    // A database that a 32-bit machine wrote has 4-byte page numbers, and therefore a page header
    // of 12 bytes.
    let is_foreign = [12, HEADER].into_iter().any(|at| page.u32(at) == Some(MAGIC.swap_bytes()))
        || page.u32(12) == Some(MAGIC);
    if is_foreign {
        let reason = "an LMDB database from a 32-bit or big-endian machine; convert it with \
                   `mdb_dump` there and `mdb_load` here";
        return Some(Err(reason.into()));
    }
    if page.flags()? & META == 0 || page.u32(HEADER)? != MAGIC {
        return None;
    }
    let version = page.u32(META_VERSION)?;
    let reason =
        format!("an LMDB database of format {version}; only format {VERSION} is supported");
    Some(if version == VERSION { Ok(()) } else { Err(reason) })
}

#[cfg(test)]
mod tests;

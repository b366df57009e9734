//! Reads the records of a database in the order of their keys.

use super::{
    file_of,
    page::{
        BIG, BRANCH, DATABASE, HEADER, LEAF, MAGIC, META, META_END, META_FREE, META_LAST_PAGE,
        META_MAIN, META_TRANSACTION, META_VERSION, NO_PAGE, OVERFLOW, Page, SEVERAL, TREE_DEPTH,
        TREE_ENTRIES, TREE_FLAGS, TREE_ROOT, VERSION,
    },
};
use crate::error::{Error, Result};
use std::{
    fmt::Display,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// Pages from a root to a leaf, at most: LMDB's own limit.
const MAX_DEPTH: u16 = 32;
/// Sizes that a page may have.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 256..=1 << 16;
/// Of a tree whose keys have several values each.
const DUPLICATES: u16 = 0x04;

/// A database's records, in the order of their keys.
///
/// Starts before the first: [`advance`](Self::advance) goes to the next, and
/// [`entry`](Self::entry) reads it. Memory: a page a level of the tree, and the longest value.
pub struct LmdbReader {
    file: Pages,
    root: u64,
    /// Records there are, and records gone to.
    entries: u64,
    passed: u64,
    /// From the root to a leaf, the pages of the record and its place in each.
    levels: Vec<Level>,
    /// A value of overflow pages, after the first one's header.
    value: Vec<u8>,
}

#[derive(Default)]
struct Level {
    page: Vec<u8>,
    index: usize,
}

/// The file.
struct Pages {
    path: PathBuf,
    file: File,
    page_size: usize,
    /// Pages in use.
    count: u64,
}

impl LmdbReader {
    /// Opens the database at `path`: a folder with a `data.mdb`, or such a file itself.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::InvalidData`] for a file that is no LMDB database of a 64-bit
    /// little-endian machine, that is shorter than its header tells, or that keeps several values
    /// to a key.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = file_of(path.as_ref());
        let io = |error| Error::io(&path, error);
        let mut file = File::open(&path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let invalid = |why: String| Error::InvalidData(format!("{}: {why}", path.display()));

        let mut start = Vec::new();
        file.by_ref().take(META_END as u64).read_to_end(&mut start).map_err(io)?;
        let none = || invalid("it is no LMDB database".into());
        expect_meta(&start).ok_or_else(none)?.map_err(invalid)?;
        let page_size = Page(&start).u32(META_FREE).ok_or_else(none)?;
        if !PAGE_SIZES.contains(&page_size) || !page_size.is_power_of_two() {
            return Err(invalid(format!("damaged: pages of {page_size} bytes")));
        }
        let mut other = vec![0; META_END];
        file.seek(SeekFrom::Start(page_size.into())).map_err(io)?;
        let second = file.read_exact(&mut other);
        second.map_err(|_| invalid("damaged: it ends within its header".into()))?;
        let damaged = || invalid("damaged: its second page is no header".into());
        expect_meta(&other).ok_or_else(damaged)?.map_err(invalid)?;
        let transaction = |meta| Page(meta).u64(META_TRANSACTION);
        let newer = if transaction(&start) < transaction(&other) { &other } else { &start };

        let field = |at| Page(newer).u64(at).unwrap_or_default();
        let small = |at| Page(newer).u16(META_MAIN + at).unwrap_or_default();
        let last = field(META_LAST_PAGE);
        let needed = last.checked_add(1).and_then(|pages| pages.checked_mul(page_size.into()));
        if needed.is_none_or(|needed| needed > length) {
            let why =
                format!("{last} pages of {page_size} bytes follow its first, says its header");
            return Err(invalid(format!("damaged: {length} bytes, but {why}")));
        }
        if small(TREE_FLAGS) & DUPLICATES != 0 {
            return Err(invalid("its keys have several values each, unlike Caffe's".into()));
        }
        let (entries, root) = (field(META_MAIN + TREE_ENTRIES), field(META_MAIN + TREE_ROOT));
        let depth = if root == NO_PAGE { 0 } else { small(TREE_DEPTH) };
        if depth > MAX_DEPTH || (depth == 0) != (entries == 0) {
            let why = format!("damaged: a tree of {depth} levels and {entries} records");
            return Err(invalid(why));
        }
        let levels = (0..depth).map(|_| Level::default()).collect();
        let page_size = page_size as usize;
        let file = Pages { path, file, page_size, count: last + 1 };
        Ok(Self { file, root, entries, passed: 0, levels, value: Vec::new() })
    }

    /// Number of records.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Goes to the next record; `false` after the last, where it stays.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::InvalidData`] for a tree that is damaged.
    pub fn advance(&mut self) -> Result<bool> {
        let step = self.levels.iter().rposition(|level| level.index + 1 < level.page().count());
        if self.passed == self.entries {
            return match step {
                Some(_) if self.passed > 0 => {
                    Err(self.file.damaged("more records than its header says"))
                }
                _ => Ok(false),
            };
        }
        let (mut number, below) = match step {
            _ if self.passed == 0 => (self.root, 0),
            None => return Err(self.file.damaged("fewer records than its header says")),
            Some(level) => {
                self.levels[level].index += 1;
                if level + 1 == self.levels.len() {
                    self.passed += 1;
                    return Ok(true);
                }
                (self.child(level)?, level + 1)
            }
        };
        for level in below..self.levels.len() {
            let leaf = level + 1 == self.levels.len();
            let to = &mut self.levels[level];
            to.index = 0;
            to.page.resize(self.file.page_size, 0);
            self.file.read(number, if leaf { LEAF } else { BRANCH }, &mut to.page)?;
            if to.page().count() == 0 {
                return Err(self.file.damaged(format_args!("page {number} has no nodes")));
            }
            if !leaf {
                number = self.child(level)?;
            }
        }
        self.passed += 1;
        Ok(true)
    }

    /// The child that a branch's place is at.
    fn child(&self, level: usize) -> Result<u64> {
        let Level { page, index } = &self.levels[level];
        let node = Page(page).node(*index).ok_or_else(|| self.file.damaged(OUTSIDE))?;
        Ok(node.child())
    }

    /// Key and value of the record gone to; both empty before the first.
    ///
    /// # Errors
    /// As [`advance`](Self::advance); [`Error::InvalidData`] for a database in the database.
    pub fn entry(&mut self) -> Result<(&[u8], &[u8])> {
        let Some(Level { page, index }) = self.levels.last().filter(|_| self.passed > 0) else {
            return Ok((&[], &[]));
        };
        let outside = || self.file.damaged(OUTSIDE);
        let node = Page(page).node(*index).ok_or_else(outside)?;
        if node.flags & (DATABASE | SEVERAL) != 0 {
            let name = String::from_utf8_lossy(node.key);
            let why = format!("`{name}` is a database of its own, unlike Caffe's records");
            return Err(Error::InvalidData(format!("{}: {why}", self.file.path.display())));
        }
        if node.flags & BIG == 0 {
            return Ok((node.key, node.value().ok_or_else(outside)?));
        }
        let first = node.overflow().ok_or_else(outside)?;
        let length = HEADER + node.len();
        let pages = length.div_ceil(self.file.page_size) as u64;
        if first.checked_add(pages).is_none_or(|end| end > self.file.count) {
            return Err(self.file.damaged("a value reaches outside of the file"));
        }
        self.value.resize(length, 0);
        self.file.read(first, OVERFLOW, &mut self.value)?;
        if Page(&self.value).u32(12).is_none_or(|count| u64::from(count) < pages) {
            return Err(self.file.damaged(format_args!("a value too long for page {first}")));
        }
        Ok((node.key, &self.value[HEADER..]))
    }

    /// Goes back before the first record.
    pub fn rewind(&mut self) {
        self.passed = 0;
    }
}

const OUTSIDE: &str = "a node reaches outside of its page";

impl Level {
    fn page(&self) -> Page<'_> {
        Page(&self.page)
    }
}

impl Pages {
    /// Fills `into` with a page of this kind, or with its start, or with it and its followers.
    fn read(&mut self, number: u64, kind: u16, into: &mut [u8]) -> Result<()> {
        // The first two are headers.
        if !(2..self.count).contains(&number) {
            return Err(self.damaged(format_args!("there is no page {number}")));
        }
        let start = SeekFrom::Start(number * self.page_size as u64);
        let read = self.file.seek(start).and_then(|_| self.file.read_exact(into));
        read.map_err(|error| Error::io(&self.path, error))?;
        let page = Page(into);
        if page.number() != Some(number) || page.flags().is_none_or(|flags| flags & kind == 0) {
            return Err(self.damaged(format_args!("page {number} is not what its tree tells")));
        }
        Ok(())
    }

    fn damaged(&self, why: impl Display) -> Error {
        Error::InvalidData(format!("{}: damaged: {why}", self.path.display()))
    }
}

/// `None` unless the page is a header, an error for one of another format.
fn expect_meta(page: &[u8]) -> Option<Result<(), String>> {
    let page = Page(page);
    // Where pages have numbers of 4 bytes, headers are shorter.
    let narrow = [12, HEADER].into_iter().any(|at| page.u32(at) == Some(MAGIC.swap_bytes()))
        || page.u32(12) == Some(MAGIC);
    if narrow {
        let why = "an LMDB database of a 32-bit or big-endian machine; `mdb_dump` there and \
                   `mdb_load` here convert it";
        return Some(Err(why.into()));
    }
    if page.flags()? & META == 0 || page.u32(HEADER)? != MAGIC {
        return None;
    }
    let version = page.u32(META_VERSION)?;
    let old = format!("an LMDB database of format {version}; format {VERSION} is read");
    Some(if version == VERSION { Ok(()) } else { Err(old) })
}

#[cfg(test)]
mod tests;

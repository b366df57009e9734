//! A writer of LMDB databases, for records in ascending key order.

use super::page::{
    BIG, BRANCH, HEADER, LEAF, MAGIC, META, META_FREE, META_LAST_PAGE, META_MAIN, META_MAP_SIZE,
    META_TRANSACTION, META_VERSION, NO_PAGE, NODE, OVERFLOW, Page, TREE_BRANCHES, TREE_DEPTH,
    TREE_ENTRIES, TREE_FLAGS, TREE_LEAVES, TREE_OVERFLOWS, TREE_ROOT, VERSION,
};
use crate::{
    atomic_fs::StagedDir,
    error::{Error, Result},
};
use std::{
    fs::File,
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::Path,
};

const PAGE_SIZE: usize = 4096;
/// The maximum length of a key in bytes, as in LMDB.
const MAX_KEY_LEN: usize = 511;
/// The maximum size of a leaf node in bytes, so that two nodes fit on a page.
const MAX_NODE_SIZE: usize = (PAGE_SIZE - HEADER) / 2 - 2;
/// The flag of a tree with integer keys, which LMDB sets for the tree of free pages.
const INTEGER_KEYS: u16 = 0x08;

/// A writer that creates an LMDB database with the contents that a single transaction of LMDB's C
/// library would write.
///
/// The writer writes each page once, in order, and holds one page per level of the tree in memory.
/// The writer uses a temporary directory, which [`finish`](Self::finish) renames to the path of the
/// database. The writer creates no file `lock.mdb`, because LMDB's C library creates this file when
/// it opens the database.
///
/// ```
/// use cortado::data::{LmdbReader, LmdbWriter};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("pairs");
/// let mut writer = LmdbWriter::create(&path, false)?;
/// writer.put(b"a", b"first")?;
/// assert!(writer.put(b"a", b"again").is_err()); // keys must increase
/// writer.put(b"b", b"second")?;
/// writer.finish()?;
/// assert_eq!(LmdbReader::open(&path)?.entries(), 2);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct LmdbWriter {
    dir: StagedDir,
    file: BufWriter<File>,
    pages: u64,
    /// The unfinished pages of the B+ tree: a leaf page, followed by one branch page for each
    /// higher level.
    levels: Vec<PageBuilder>,
    last_key: Vec<u8>,
    entries: u64,
    leaves: u64,
    branches: u64,
    overflows: u64,
}

/// An unfinished page. The nodes fill the page from the end, and the pointers to the nodes fill the
/// page from the start.
struct PageBuilder {
    page: Box<[u8; PAGE_SIZE]>,
    kind: u16,
    /// The first key of the page. A branch page does not store its first key.
    first_key: Vec<u8>,
    nodes: usize,
    /// The byte offset of the most recently added node, where the free space of the page ends.
    free_end: usize,
    /// The value of `free_end` before the last node was added.
    previous_free_end: usize,
}

impl LmdbWriter {
    /// Starts a database in a temporary directory, which [`finish`](Self::finish) renames to
    /// `path`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `path` exists, unless `path` is a directory and `replace`
    /// is set. Returns [`Error::Io`] if the directory cannot be created.
    pub fn create(path: impl AsRef<Path>, replace: bool) -> Result<Self> {
        let dir = StagedDir::create(path.as_ref(), replace)?;
        let io = |error| Error::io(path.as_ref(), error);
        let mut file = BufWriter::with_capacity(1 << 20, {
            File::create_new(dir.path().join("data.mdb")).map_err(io)?
        });
        // Leave the meta pages empty until all other pages are written.
        file.write_all(&[0; 2 * PAGE_SIZE]).map_err(io)?;
        let (levels, last_key) = (Vec::new(), Vec::new());
        let (pages, entries, leaves, branches, overflows) = (2, 0, 0, 0, 0);
        Ok(Self { dir, file, pages, levels, last_key, entries, leaves, branches, overflows })
    }

    /// Appends a record to the database.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for a key that is empty, longer than 511 bytes or not greater
    /// than the previous key, and for a value of 4 GiB or more. Returns [`Error::Io`] if the write
    /// fails.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let invalid = |reason: &str| {
            let (path, key) = (self.dir.target().display(), String::from_utf8_lossy(key));
            Err(Error::InvalidData(format!("{path}: key `{key}`: {reason}")))
        };
        if key.is_empty() || key.len() > MAX_KEY_LEN {
            return invalid(&format!("expected 1 to {MAX_KEY_LEN} bytes, found {}", key.len()));
        }
        if self.entries > 0 && key <= &self.last_key[..] {
            return invalid("not greater than the previous key");
        }
        let Ok(length) = u32::try_from(value.len()) else {
            return invalid("value of 4 GiB or more");
        };
        if NODE + key.len() + value.len() > MAX_NODE_SIZE {
            let first = self.overflow(value);
            let first = first.map_err(|error| self.io(error))?;
            self.insert(0, key, length, BIG, &first.to_le_bytes())?;
        } else {
            self.insert(0, key, length, 0, value)?;
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.entries += 1;
        Ok(())
    }

    /// Completes the database, and renames the temporary directory to the path of the database.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if a write fails. If `finish` fails, the new database does not appear
    /// at its path.
    #[doc(alias = "Commit")]
    pub fn finish(mut self) -> Result<()> {
        let (mut root, mut level) = (NO_PAGE, 0);
        // Writing the last page of a level can add a page to the next higher level, or a new level.
        while level < self.levels.len() {
            if level > 0 {
                let key = std::mem::take(&mut self.levels[level - 1].first_key);
                self.insert_child(level, &key, root)?;
            }
            root = self.flush(level)?;
            level += 1;
        }
        let result = self.write_meta_pages(root);
        result.map_err(|error| self.io(error))?;
        drop(self.file);
        self.dir.finish()
    }

    fn io(&self, error: io::Error) -> Error {
        Error::io(self.dir.target(), error)
    }

    /// Writes a value to overflow pages. Returns the page number of the first overflow page.
    fn overflow(&mut self, value: &[u8]) -> io::Result<u64> {
        let first = self.pages;
        let count = (HEADER + value.len()).div_ceil(PAGE_SIZE);
        let mut header = [0; HEADER];
        set(&mut header, 0, first.to_le_bytes());
        set(&mut header, 10, OVERFLOW.to_le_bytes());
        set(&mut header, 12, (count as u32).to_le_bytes());
        self.file.write_all(&header)?;
        self.file.write_all(value)?;
        let padding = count * PAGE_SIZE - HEADER - value.len();
        self.file.write_all(&[0; PAGE_SIZE][..padding])?;
        self.pages += count as u64;
        self.overflows += count as u64;
        Ok(first)
    }

    /// Adds a node to the unfinished page of `level` in the B+ tree. Starts a new page if the
    /// unfinished page is full.
    fn insert(
        &mut self,
        level: usize,
        key: &[u8],
        low: u32,
        flags: u16,
        rest: &[u8],
    ) -> Result<()> {
        if level == self.levels.len() {
            let kind = if level == 0 { LEAF } else { BRANCH };
            self.levels.push(PageBuilder::new(kind));
        }
        if !self.levels[level].fits(key.len() + rest.len()) {
            // A branch page needs at least two children, so move one child to the next page.
            let moved_child = (level > 0).then(|| self.levels[level].take_last());
            let number = self.flush(level)?;
            let first_key = std::mem::take(&mut self.levels[level].first_key);
            self.insert_child(level + 1, &first_key, number)?;
            let kind = self.levels[level].kind;
            self.levels[level] = PageBuilder::new(kind);
            if let Some((key, child)) = moved_child {
                self.insert_child(level, &key, child)?;
            }
        }
        self.levels[level].push(key, low, flags, rest);
        Ok(())
    }

    fn insert_child(&mut self, level: usize, key: &[u8], child: u64) -> Result<()> {
        self.insert(level, key, child as u32, (child >> 32) as u16, &[])
    }

    /// Writes the unfinished page of `level` to the file, and returns the page number.
    fn flush(&mut self, level: usize) -> Result<u64> {
        let number = self.pages;
        let builder = &mut self.levels[level];
        builder.write_header(number);
        let result = self.file.write_all(&builder.page[..]);
        result.map_err(|error| self.io(error))?;
        self.pages += 1;
        let count = if level == 0 { &mut self.leaves } else { &mut self.branches };
        *count += 1;
        Ok(number)
    }

    /// Writes two meta pages: an older one of an empty database, and a newer one of the written
    /// database.
    fn write_meta_pages(&mut self, root: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        for (number, root) in [(0, NO_PAGE), (1, root)] {
            let mut page = [0; PAGE_SIZE];
            set(&mut page, 0, u64::to_le_bytes(number));
            set(&mut page, 10, META.to_le_bytes());
            set(&mut page, HEADER, MAGIC.to_le_bytes());
            set(&mut page, META_VERSION, VERSION.to_le_bytes());
            set(&mut page, META_MAP_SIZE, (self.pages * PAGE_SIZE as u64).to_le_bytes());
            set(&mut page, META_FREE, (PAGE_SIZE as u32).to_le_bytes());
            set(&mut page, META_FREE + TREE_FLAGS, INTEGER_KEYS.to_le_bytes());
            set(&mut page, META_FREE + TREE_ROOT, NO_PAGE.to_le_bytes());
            set(&mut page, META_MAIN + TREE_ROOT, root.to_le_bytes());
            set(&mut page, META_TRANSACTION, number.to_le_bytes());
            let is_empty = root == NO_PAGE;
            let last_page = if is_empty { 1 } else { self.pages - 1 };
            set(&mut page, META_LAST_PAGE, last_page.to_le_bytes());
            if !is_empty {
                let depth = self.levels.len() as u16;
                set(&mut page, META_MAIN + TREE_DEPTH, depth.to_le_bytes());
                set(&mut page, META_MAIN + TREE_BRANCHES, self.branches.to_le_bytes());
                set(&mut page, META_MAIN + TREE_LEAVES, self.leaves.to_le_bytes());
                set(&mut page, META_MAIN + TREE_OVERFLOWS, self.overflows.to_le_bytes());
                set(&mut page, META_MAIN + TREE_ENTRIES, self.entries.to_le_bytes());
            }
            self.file.write_all(&page)?;
        }
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }
}

impl PageBuilder {
    fn new(kind: u16) -> Self {
        let page = Box::new([0; PAGE_SIZE]);
        let (first_key, free_end, previous_free_end) = (Vec::new(), PAGE_SIZE, PAGE_SIZE);
        Self { page, kind, first_key, nodes: 0, free_end, previous_free_end }
    }

    /// Returns whether a node fits on the page if `bytes` bytes follow the node header.
    fn fits(&self, bytes: usize) -> bool {
        let pointers = HEADER + 2 * (self.nodes + 1);
        pointers + (NODE + bytes).next_multiple_of(2) <= self.free_end
    }

    /// Adds a node to the page. The node must fit on the page.
    fn push(&mut self, key: &[u8], low: u32, flags: u16, rest: &[u8]) {
        let mut stored_key = key;
        if self.nodes == 0 {
            self.first_key = key.to_vec();
            if self.kind == BRANCH {
                stored_key = &[];
            }
        }
        self.previous_free_end = self.free_end;
        self.free_end -= (NODE + stored_key.len() + rest.len()).next_multiple_of(2);
        let start = self.free_end;
        set(&mut *self.page, start, low.to_le_bytes());
        set(&mut *self.page, start + 4, flags.to_le_bytes());
        set(&mut *self.page, start + 6, (stored_key.len() as u16).to_le_bytes());
        let key = start + NODE;
        self.page[key..key + stored_key.len()].copy_from_slice(stored_key);
        self.page[key + stored_key.len()..][..rest.len()].copy_from_slice(rest);
        set(&mut *self.page, HEADER + 2 * self.nodes, (start as u16).to_le_bytes());
        self.nodes += 1;
    }

    /// Removes the last node of a full branch page. Returns the key of the removed node, and the
    /// page number of its child.
    fn take_last(&mut self) -> (Vec<u8>, u64) {
        let page = Page(&self.page[..]);
        let last_node = page.node(self.nodes - 1).map(|node| (node.key.to_vec(), node.child()));
        self.nodes -= 1;
        self.free_end = self.previous_free_end;
        last_node.unwrap_or_default()
    }

    fn write_header(&mut self, number: u64) {
        set(&mut *self.page, 0, number.to_le_bytes());
        set(&mut *self.page, 10, self.kind.to_le_bytes());
        set(&mut *self.page, 12, ((HEADER + 2 * self.nodes) as u16).to_le_bytes());
        set(&mut *self.page, 14, (self.free_end as u16).to_le_bytes());
    }
}

fn set<const N: usize>(page: &mut [u8], offset: usize, bytes: [u8; N]) {
    page[offset..offset + N].copy_from_slice(&bytes);
}

#[cfg(test)]
mod tests;

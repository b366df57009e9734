//! Writes a database from records that come in the order of their keys.

use super::page::{
    BIG, BRANCH, HEADER, LEAF, MAGIC, META, META_FREE, META_LAST_PAGE, META_MAIN, META_MAP_SIZE,
    META_TRANSACTION, META_VERSION, NO_PAGE, NODE, OVERFLOW, TREE_BRANCHES, TREE_DEPTH,
    TREE_ENTRIES, TREE_FLAGS, TREE_LEAVES, TREE_OVERFLOWS, TREE_ROOT, VERSION,
};
use crate::{
    error::{Error, Result},
    atomic_fs::StagedDir,
};
use std::{
    fs::File,
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

const PAGE_SIZE: usize = 4096;
/// LMDB's own limits: of a key, and of a node on a leaf, of which two have to fit.
const LONGEST_KEY: usize = 511;
const LARGEST_NODE: usize = (PAGE_SIZE - HEADER) / 2 - 2;
/// Of the tree of free pages.
const INTEGER_KEYS: u16 = 0x08;

/// A new database, as one transaction of LMDB's would leave it.
///
/// Pages are written one after the other, each once, so a database of any size takes a page of
/// memory a level. It comes to be in a folder beside, which takes its name at
/// [`finish`](Self::finish): until then, or if that never comes, there is none. LMDB adds the
/// `lock.mdb` when it opens the database.
pub struct LmdbWriter {
    folder: StagedDir,
    file: BufWriter<File>,
    pages: u64,
    /// The pages that are being filled: a leaf, then a branch for each level above.
    levels: Vec<Filling>,
    last_key: Vec<u8>,
    entries: u64,
    leaves: u64,
    branches: u64,
    overflows: u64,
}

/// A page that is being filled: nodes from its end, pointers to them from its start.
struct Filling {
    page: Box<[u8; PAGE_SIZE]>,
    kind: u16,
    /// Its first key: that of a branch's first node is left out in the page.
    first: Vec<u8>,
    nodes: usize,
    free: usize,
    /// Where its last node but one begins.
    before: usize,
}

impl LmdbWriter {
    /// Begins a database that is to be the folder `path`.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if there is something at `path` and `replace` is not set;
    /// [`Error::Io`].
    pub fn create(path: impl AsRef<Path>, replace: bool) -> Result<Self> {
        let folder = StagedDir::create(path.as_ref(), replace)?;
        let io = |error| Error::io(path.as_ref(), error);
        let mut file = BufWriter::with_capacity(1 << 20, {
            File::create_new(folder.path().join("data.mdb")).map_err(io)?
        });
        // No header until all is there.
        file.write_all(&[0; 2 * PAGE_SIZE]).map_err(io)?;
        let (levels, last_key) = (Vec::new(), Vec::new());
        let (entries, leaves, branches, overflows) = (0, 0, 0, 0);
        let pages = 2;
        Ok(Self { folder, file, pages, levels, last_key, entries, leaves, branches, overflows })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for a key of no bytes, of more than 511, or that is not greater than
    /// the one before, and for a value of 4 GiB; [`Error::Io`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let refused = |why: &str| {
            let key = String::from_utf8_lossy(key);
            Err(Error::InvalidData(format!("{}: key `{key}` {why}", self.target().display())))
        };
        if key.is_empty() || key.len() > LONGEST_KEY {
            return refused("is not of 1 to 511 bytes");
        }
        if self.entries > 0 && key <= &self.last_key[..] {
            return refused("does not come after the one before");
        }
        let Ok(length) = u32::try_from(value.len()) else {
            return refused("has a value of more than 4 GiB");
        };
        if NODE + key.len() + value.len() > LARGEST_NODE {
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

    /// Completes the database and gives it its name.
    ///
    /// # Errors
    /// [`Error::Io`]; there is then no new database.
    #[doc(alias = "Commit")]
    pub fn finish(mut self) -> Result<()> {
        let (mut root, mut level) = (NO_PAGE, 0);
        // The last page of a level may be one too many for the level above.
        while level < self.levels.len() {
            if level > 0 {
                let below = std::mem::take(&mut self.levels[level - 1].first);
                self.insert_child(level, &below, root)?;
            }
            root = self.flush(level)?;
            level += 1;
        }
        let written = self.write_headers(root);
        written.map_err(|error| self.io(error))?;
        drop(self.file);
        self.folder.finish()
    }

    fn target(&self) -> PathBuf {
        self.folder.target().to_owned()
    }

    fn io(&self, error: io::Error) -> Error {
        Error::io(self.target(), error)
    }

    /// Writes a value on pages of its own; the first one's number.
    fn overflow(&mut self, value: &[u8]) -> io::Result<u64> {
        let first = self.pages;
        let count = (HEADER + value.len()).div_ceil(PAGE_SIZE);
        let mut header = [0; HEADER];
        set(&mut header, 0, first.to_le_bytes());
        set(&mut header, 10, OVERFLOW.to_le_bytes());
        set(&mut header, 12, (count as u32).to_le_bytes());
        self.file.write_all(&header)?;
        self.file.write_all(value)?;
        let rest = count * PAGE_SIZE - HEADER - value.len();
        self.file.write_all(&[0; PAGE_SIZE][..rest])?;
        self.pages += count as u64;
        self.overflows += count as u64;
        Ok(first)
    }

    /// Adds a node to the page of a level, or to a new one once it is full.
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
            self.levels.push(Filling::new(kind));
        }
        if !self.levels[level].has_room(key.len() + rest.len()) {
            // A branch has two children at least, so the next page takes one over.
            let moved = (level > 0).then(|| self.levels[level].take_last());
            let number = self.flush(level)?;
            let first = std::mem::take(&mut self.levels[level].first);
            self.insert_child(level + 1, &first, number)?;
            let kind = self.levels[level].kind;
            self.levels[level] = Filling::new(kind);
            if let Some((key, child)) = moved {
                self.insert_child(level, &key, child)?;
            }
        }
        self.levels[level].push(key, low, flags, rest);
        Ok(())
    }

    fn insert_child(&mut self, level: usize, key: &[u8], child: u64) -> Result<()> {
        self.insert(level, key, child as u32, (child >> 32) as u16, &[])
    }

    /// Writes the page of a level; its number.
    fn flush(&mut self, level: usize) -> Result<u64> {
        let number = self.pages;
        let filling = &mut self.levels[level];
        filling.close(number);
        let written = self.file.write_all(&filling.page[..]);
        written.map_err(|error| self.io(error))?;
        self.pages += 1;
        if level == 0 {
            self.leaves += 1
        } else {
            self.branches += 1
        }
        Ok(number)
    }

    /// Of an empty database, and of this one as the transaction after that.
    fn write_headers(&mut self, root: u64) -> io::Result<()> {
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
            let empty = root == NO_PAGE;
            let last = if empty { 1 } else { self.pages - 1 };
            set(&mut page, META_LAST_PAGE, last.to_le_bytes());
            if !empty {
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

impl Filling {
    fn new(kind: u16) -> Self {
        let page = Box::new([0; PAGE_SIZE]);
        Self { page, kind, first: Vec::new(), nodes: 0, free: PAGE_SIZE, before: PAGE_SIZE }
    }

    /// Whether a node with so many bytes after its header fits.
    fn has_room(&self, bytes: usize) -> bool {
        let pointers = HEADER + 2 * (self.nodes + 1);
        pointers + (NODE + bytes).next_multiple_of(2) <= self.free
    }

    /// Adds a node that fits.
    fn push(&mut self, key: &[u8], low: u32, flags: u16, rest: &[u8]) {
        let mut stored = key;
        if self.nodes == 0 {
            self.first = key.to_vec();
            if self.kind == BRANCH {
                stored = &[];
            }
        }
        self.before = self.free;
        self.free -= (NODE + stored.len() + rest.len()).next_multiple_of(2);
        let start = self.free;
        set(&mut *self.page, start, low.to_le_bytes());
        set(&mut *self.page, start + 4, flags.to_le_bytes());
        set(&mut *self.page, start + 6, (stored.len() as u16).to_le_bytes());
        let key = start + NODE;
        self.page[key..key + stored.len()].copy_from_slice(stored);
        self.page[key + stored.len()..][..rest.len()].copy_from_slice(rest);
        set(&mut *self.page, HEADER + 2 * self.nodes, (start as u16).to_le_bytes());
        self.nodes += 1;
    }

    /// Takes a full branch's last node off: its key and child.
    fn take_last(&mut self) -> (Vec<u8>, u64) {
        let page = super::page::Page(&self.page[..]);
        let last = page.node(self.nodes - 1).map(|node| (node.key.to_vec(), node.child()));
        self.nodes -= 1;
        self.free = self.before;
        last.unwrap_or_default()
    }

    /// Writes the header.
    fn close(&mut self, number: u64) {
        set(&mut *self.page, 0, number.to_le_bytes());
        set(&mut *self.page, 10, self.kind.to_le_bytes());
        set(&mut *self.page, 12, ((HEADER + 2 * self.nodes) as u16).to_le_bytes());
        set(&mut *self.page, 14, (self.free as u16).to_le_bytes());
    }
}

/// Overwrites bytes of a page.
fn set<const N: usize>(page: &mut [u8], at: usize, bytes: [u8; N]) {
    page[at..at + N].copy_from_slice(&bytes);
}

#[cfg(test)]
mod tests;

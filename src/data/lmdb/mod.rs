//! LMDB databases, as Caffe keeps its records in, read and written without the C library.
//!
//! A database is a file, `data.mdb` in a folder of its own, that is a B+ tree of pages: two *meta*
//! pages, the newer of which tells the tree's root; *branch* pages with keys and children; *leaf*
//! pages with keys and values; values too long for a leaf on *overflow* pages of their own. The
//! format is that of LMDB 0.9 on 64-bit little-endian machines; what it is comes from LMDB's own
//! `mdb.c`.
//!
//! Reading takes no lock, writes nothing beside the database and maps no memory: read-only file
//! systems will do, and a damaged file is an error. The price is that nobody may write to the
//! database meanwhile.

mod page;
mod reader;
mod source;
mod writer;

pub use reader::LmdbReader;
pub use source::LmdbSource;
pub use writer::LmdbWriter;

use std::path::{Path, PathBuf};

/// The file of the database at `path`, which is a folder with a `data.mdb` or the file itself.
fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("data.mdb") } else { path.to_owned() }
}

//! A reader and a writer of Caffe's LMDB databases, without the C library.
//!
//! A database is a directory with the file `data.mdb`, a B+ tree of pages. The first two pages are
//! *meta* pages; the newer meta page contains the number of the root page. The *branch* pages
//! contain keys and children, and the *leaf* pages contain keys and values. A value that is too
//! long for a leaf is on separate *overflow* pages. The format is LMDB 0.9 (`mdb.c`) on 64-bit
//! little-endian machines.
//!
//! The reader takes no lock, creates no file and maps no memory. The reader therefore works on
//! read-only file systems and returns an error for a damaged file. No process may write to a
//! database that a reader has opened.

mod page;
mod reader;
mod source;
mod writer;

pub use reader::LmdbReader;
pub use source::LmdbSource;
pub use writer::LmdbWriter;

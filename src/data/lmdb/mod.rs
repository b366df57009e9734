//! A reader and a writer of Caffe's LMDB databases, without the C library.
//!
//! An LMDB database is a directory with the file `data.mdb`, a B+ tree of pages. The first two
//! pages of the file are *meta* pages; the newer meta page contains the page number of the root.
//! The *branch* pages contain keys and the page numbers of children, and the *leaf* pages contain
//! keys and values. A value that is too long for a leaf page is stored on separate *overflow*
//! pages. The format is that of LMDB 0.9 (`mdb.c`) on 64-bit little-endian machines.
//!
//! The LMDB reader takes no lock and creates no file, so it works on read-only file systems. The
//! LMDB reader does not map the file into memory, and returns an error for a damaged file. No
//! process may write to a database that a reader has opened.

mod page;
mod reader;
mod source;
mod writer;

pub use reader::LmdbReader;
pub use source::LmdbSource;
pub use writer::LmdbWriter;

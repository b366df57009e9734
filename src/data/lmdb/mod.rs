//! Caffe's LMDB databases, read and written without the C library.
//!
//! A database is a directory with the file `data.mdb`, a B+ tree of pages. Two *meta* pages come
//! first; the newer one contains the number of the root page. *Branch* pages contain keys and
//! children, *leaf* pages contain keys and values. A value too long for a leaf has its own *overflow*
//! pages. The format is that of LMDB 0.9 on 64-bit little-endian machines, as in its `mdb.c`.
//!
//! The reader takes no lock, creates no file and maps no memory. So it works on read-only file systems
//! and returns an error for a damaged file. In exchange, no process may write to the database
//! meanwhile.

mod page;
mod reader;
mod source;
mod writer;

pub use reader::LmdbReader;
pub use source::LmdbSource;
pub use writer::LmdbWriter;

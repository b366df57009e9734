//! A reader of LevelDB databases, without the C++ library.
//!
//! A LevelDB database is a directory. The file `CURRENT` names the *manifest*, a log of the changes
//! to the set of tables. A *table* (`000005.ldb`, in older databases `000005.sst`) is a sorted file
//! of keys and values. The *write-ahead log* (`000007.log`) contains the newest changes, which no
//! table contains yet. Each change has a sequence number. The change with the largest sequence
//! number determines the value of a key, or deletes the key.
//!
//! The manifest and the write-ahead log are sequences of records in blocks of 32 KiB. A table
//! consists of data blocks, an index block with the positions of the data blocks, and a footer with
//! the position of the index block. Blocks are stored as they are or compressed by Snappy. All
//! blocks and log records have a CRC-32C checksum, which the reader verifies for each block and
//! record that it reads. The format is that of LevelDB 1.23 (`doc/table_format.md`,
//! `doc/log_format.md`, `db/version_edit.cc`).
//!
//! The LevelDB reader takes no lock, changes no file and creates no file. No process may write to a
//! database that a reader has opened.

mod block;
mod checksum;
mod database_file;
mod fields;
mod log_file;
mod manifest;
mod reader;
mod source;
mod table;
mod write_log;

pub use reader::LevelDbReader;
pub use source::LevelDbSource;

//! What kind of database a path holds.

use std::{fs::File, io::Read, path::Path};

/// Caffe's `backend`, told by what is there: `backend: LEVELDB` is Caffe's default, and so says
/// nothing.
#[derive(Clone, Copy)]
pub(super) enum Database {
    Lmdb,
    LevelDb,
}

impl Database {
    /// The kind of the database at `path`, or why there is none.
    pub(super) fn at(path: &Path) -> Result<Self, &'static str> {
        if path.join("data.mdb").is_file() {
            Ok(Self::Lmdb)
        } else if path.join("CURRENT").is_file() {
            Ok(Self::LevelDb)
        } else if path.is_dir() {
            Err("this folder is no database: it has neither `data.mdb`, as LMDB, nor `CURRENT`, \
                 as LevelDB")
        } else if !path.exists() {
            Err("there is no database of this path")
        } else if is_lmdb(path) {
            Ok(Self::Lmdb)
        } else {
            Err("this file is no database")
        }
    }

    /// The scheme of its sources.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Lmdb => "lmdb",
            Self::LevelDb => "leveldb",
        }
    }

    /// What is said where that scheme is not known.
    pub(super) fn refusal(self) -> &'static str {
        match self {
            Self::Lmdb => "an LMDB database, and no scheme `lmdb` is known",
            Self::LevelDb => {
                "a LevelDB database, which is not read: make it an LMDB one, by `cortado \
                 convert-mnist` or `cortado convert-imageset` from what it was made from"
            }
        }
    }
}

/// Whether a file starts as LMDB's do, after the 16 bytes of a page's header.
fn is_lmdb(path: &Path) -> bool {
    let mut start = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start[16..] == [0xDE, 0xC0, 0xEF, 0xBE]
}

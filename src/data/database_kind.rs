//! Detection of LMDB and LevelDB databases from their files.

use std::{fs::File, io::Read, path::Path};

/// The format of a database, detected from its files. The detection ignores Caffe's field
/// `backend`, because a definition that does not set this field selects `LEVELDB`, even for an LMDB
/// database.
#[derive(Clone, Copy)]
pub(super) enum Database {
    Lmdb,
    LevelDb,
}

impl Database {
    /// Returns the format of the database at `path`, or the reason why `path` is not a database.
    pub(super) fn detect(path: &Path) -> Result<Self, &'static str> {
        if path.join("data.mdb").is_file() {
            Ok(Self::Lmdb)
        } else if path.join("CURRENT").is_file() {
            Ok(Self::LevelDb)
        } else if path.is_dir() {
            Err("this directory is not a database: it has neither LMDB's `data.mdb` nor \
                 LevelDB's `CURRENT`")
        } else if !path.exists() {
            Err("there is no database at this path")
        } else if is_lmdb(path) {
            Ok(Self::Lmdb)
        } else {
            Err("this file is not a database")
        }
    }

    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Lmdb => "lmdb",
            Self::LevelDb => "leveldb",
        }
    }

    /// Returns the error message for a source registry without the scheme of this database format.
    pub(super) fn unsupported(self) -> &'static str {
        match self {
            Self::Lmdb => "this is an LMDB database, but no scheme `lmdb` is registered",
            Self::LevelDb => "this is a LevelDB database, but no scheme `leveldb` is registered",
        }
    }
}

/// Returns whether the file at `path` has LMDB's magic number after a page header of 16 bytes.
fn is_lmdb(path: &Path) -> bool {
    let mut start = [0; 20];
    let result = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    result.is_ok() && start[16..] == [0xDE, 0xC0, 0xEF, 0xBE]
}

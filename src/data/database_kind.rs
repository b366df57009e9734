//! Detection of LMDB and LevelDB databases.

use std::{fs::File, io::Read, path::Path};

/// The database format, detected from the database files. Caffe's field `backend` is ignored,
/// because its default is `LEVELDB`.
#[derive(Clone, Copy)]
pub(super) enum Database {
    Lmdb,
    LevelDb,
}

impl Database {
    /// Returns the kind of the database at `path`, or the reason why none was found.
    pub(super) fn detect(path: &Path) -> Result<Self, &'static str> {
        if path.join("data.mdb").is_file() {
            Ok(Self::Lmdb)
        } else if path.join("CURRENT").is_file() {
            Ok(Self::LevelDb)
        } else if path.is_dir() {
            Err("this directory is not a database: it has neither LMDB's `data.mdb` nor \
                 LevelDB's `CURRENT`")
        } else if !path.exists() {
            Err("no database has this path")
        } else if is_lmdb(path) {
            Ok(Self::Lmdb)
        } else {
            Err("this file is not a database")
        }
    }

    /// Returns the source scheme for this kind of database.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Lmdb => "lmdb",
            Self::LevelDb => "leveldb",
        }
    }

    /// Returns the error message for a registry that lacks this scheme.
    pub(super) fn unsupported(self) -> &'static str {
        match self {
            Self::Lmdb => "an LMDB database, but no scheme `lmdb` is registered",
            Self::LevelDb => {
                "LevelDB databases are not supported; convert the original data to LMDB with \
                 `cortado convert-mnist` or `cortado convert-imageset`"
            }
        }
    }
}

/// Returns whether the file has LMDB's magic number after the 16-byte page header.
fn is_lmdb(path: &Path) -> bool {
    let mut start = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start[16..] == [0xDE, 0xC0, 0xEF, 0xBE]
}

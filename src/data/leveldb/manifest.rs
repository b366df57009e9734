//! The manifest of a LevelDB database: the tables and the write-ahead logs of its newest version.

use super::{fields::Fields, log_file::LogFile};
use crate::{
    error::{Error, Result},
    limits,
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The name of the order of keys that LevelDB uses if a program does not define its own order.
const COMPARATOR: &[u8] = b"leveldb.BytewiseComparator";
/// The maximum length of the file `CURRENT` in bytes.
const CURRENT_LEN: u64 = 1 << 10;
/// The number of levels of a LevelDB database.
const LEVELS: u64 = 7;
/// The length of the tag at the end of an internal key: sequence number and type.
pub(super) const TAG_LEN: usize = 8;

/// A table of a database.
pub(super) struct Table {
    pub(super) path: PathBuf,
    pub(super) len: u64,
    /// The smallest and the largest key, without their tags.
    pub(super) smallest: Vec<u8>,
    pub(super) largest: Vec<u8>,
}

/// The files of the newest version of a database.
pub(super) struct Manifest {
    pub(super) tables: Vec<Table>,
    /// The write-ahead logs, oldest first.
    pub(super) logs: Vec<PathBuf>,
}

/// The state that the records of a manifest file describe.
#[derive(Default)]
struct State {
    /// The tables by level and number.
    tables: BTreeMap<(u64, u64), Properties>,
    log: Option<u64>,
    previous_log: u64,
}

/// The length of a table in bytes, and its smallest and its largest key without their tags.
struct Properties {
    len: u64,
    smallest: Vec<u8>,
    largest: Vec<u8>,
}

impl Manifest {
    /// Reads the file `CURRENT` and the manifest that `CURRENT` names, and checks that all tables
    /// exist with the expected lengths.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut log_file = LogFile::open(manifest_path(folder)?)?;
        let (mut state, mut record) = (State::default(), Vec::new());
        while let Some(offset) = log_file.read(&mut record)? {
            state.apply(&record).map_err(|reason| log_file.damaged(offset, reason))?;
        }
        let no_log = || log_file.damaged(log_file.len(), "no record states the write-ahead log");
        let log = state.log.ok_or_else(no_log)?;
        let logs = logs(folder, log, state.previous_log)?;
        let tables = state.tables.into_iter().map(|((_, number), properties)| {
            let Properties { len, smallest, largest } = properties;
            let path = table_path(folder, number, len, log_file.path())?;
            Ok(Table { path, len, smallest, largest })
        });
        Ok(Self { tables: tables.collect::<Result<_>>()?, logs })
    }
}

impl State {
    /// Applies a record of the manifest, which LevelDB calls a version edit.
    fn apply(&mut self, record: &[u8]) -> Result<(), String> {
        let mut fields = Fields(record);
        while !fields.is_empty() {
            let field = fields.varint();
            let parsed = match field {
                Some(1) => {
                    let Some(name) = fields.string() else { return Err(truncated(1)) };
                    if name != COMPARATOR {
                        let name = String::from_utf8_lossy(name);
                        let name = limits::quoted(&name);
                        return Err(format!(
                            "the keys are in the order `{name}`, which is not supported"
                        ));
                    }
                    Some(())
                }
                Some(2) => fields.varint().map(|number| self.log = Some(number)),
                // The number of the next file, and the last sequence number.
                Some(3 | 4) => fields.varint().map(|_| ()),
                // The key from which the next compaction starts.
                Some(5) => fields.varint().and_then(|_| fields.string()).map(|_| ()),
                Some(6) => fields.level().zip(fields.varint()).map(|table| {
                    self.tables.remove(&table);
                }),
                Some(7) => fields.new_table().map(|(table, properties)| {
                    self.tables.insert(table, properties);
                }),
                Some(9) => fields.varint().map(|number| self.previous_log = number),
                Some(number) => {
                    return Err(format!(
                        "unknown field {number}; databases of RocksDB are not supported"
                    ));
                }
                None => None,
            };
            parsed.ok_or_else(|| truncated(field.unwrap_or_default()))?;
        }
        Ok(())
    }
}

fn truncated(field: u64) -> String {
    format!("invalid field {field} of a version edit")
}

impl Fields<'_> {
    fn level(&mut self) -> Option<u64> {
        self.varint().filter(|&level| level < LEVELS)
    }

    /// Removes the level and the number of a new table, its length, and its first and last key.
    fn new_table(&mut self) -> Option<((u64, u64), Properties)> {
        let table = (self.level()?, self.varint()?);
        let len = self.varint()?;
        let mut key = || self.string()?.split_last_chunk::<TAG_LEN>().map(|(key, _)| key.to_vec());
        Some((table, Properties { len, smallest: key()?, largest: key()? }))
    }
}

/// Returns the path of the manifest that the file `CURRENT` names.
fn manifest_path(folder: &Path) -> Result<PathBuf> {
    let current = folder.join("CURRENT");
    let content = limits::read(&current, CURRENT_LEN)?;
    let name = std::str::from_utf8(&content).ok().and_then(|text| text.strip_suffix('\n'));
    let number = name.and_then(|name| name.strip_prefix("MANIFEST-"));
    match (name, number) {
        (Some(name), Some(number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(folder.join(name))
        }
        _ => {
            let text = String::from_utf8_lossy(&content);
            let reason = format!(
                "damaged at byte 0: expected a name such as `MANIFEST-000002` and a line feed, \
                 found `{}`",
                limits::quoted(&text).escape_debug()
            );
            Err(Error::InvalidData(format!("{}: {reason}", current.display())))
        }
    }
}

/// Returns the path of a table. Fails if the length of the file is not `len`.
fn table_path(folder: &Path, number: u64, len: u64, manifest: &Path) -> Result<PathBuf> {
    let new_name = folder.join(format!("{number:06}.ldb"));
    let old_name = new_name.with_extension("sst");
    let path = if !new_name.exists() && old_name.exists() { old_name } else { new_name };
    let metadata = fs::metadata(&path).map_err(|error| Error::io(&path, error))?;
    if metadata.len() != len {
        let reason = format!(
            "damaged at byte {}: the file has {} bytes, but {} states {len} bytes",
            metadata.len().min(len),
            metadata.len(),
            manifest.display()
        );
        return Err(Error::InvalidData(format!("{}: {reason}", path.display())));
    }
    Ok(path)
}

/// Returns the paths of the write-ahead logs whose number is `previous` or at least `oldest`, in
/// ascending order of their numbers. Only old versions of LevelDB set `previous`.
fn logs(folder: &Path, oldest: u64, previous: u64) -> Result<Vec<PathBuf>> {
    let io = |error| Error::io(folder, error);
    let mut logs = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let number = stem.and_then(|stem| stem.parse::<u64>().ok());
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        if let Some(number) = number.filter(|_| is_log)
            && (number >= oldest || number == previous)
        {
            logs.insert(number, path);
        }
    }
    // LevelDB creates the log before the manifest names it. The manifest of a repaired database
    // names no log.
    if oldest != 0 && !logs.contains_key(&oldest) {
        let path = folder.join(format!("{oldest:06}.log"));
        let reason = "the write-ahead log is missing; it contains the newest records";
        return Err(Error::InvalidData(format!("{}: {reason}", path.display())));
    }
    Ok(logs.into_values().collect())
}

use super::*;
use std::{collections::BTreeSet, fs};

type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Returns the path of a database that `tests/leveldb/make.py` wrote with LevelDB itself.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/leveldb").join(name)
}

/// Returns the records that LevelDB itself read from a database.
fn expected(name: &str) -> Records {
    let bytes = fs::read(fixture(name).with_extension("records")).unwrap();
    let (mut rest, mut records) = (&bytes[..], Records::new());
    while let Some((lens, after)) = rest.split_first_chunk::<8>() {
        let len = |at: usize| u32::from_le_bytes(lens[at..at + 4].try_into().unwrap()) as usize;
        let (key, after) = after.split_at(len(0));
        let (value, after) = after.split_at(len(4));
        records.push((key.to_vec(), value.to_vec()));
        rest = after;
    }
    records
}

fn read_all(path: &Path) -> Result<Records> {
    let (mut reader, mut records) = (LevelDbReader::open(path)?, Records::new());
    while reader.advance()? {
        let (key, value) = reader.entry();
        records.push((key.to_vec(), value.to_vec()));
    }
    Ok(records)
}

/// A copy of the files of a database; a test changes one file at a time.
struct Copy {
    folder: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Copy {
    fn new(name: &str) -> Self {
        // Files in memory speed up the tests that damage a file once per byte.
        let memory = Path::new("/dev/shm");
        let folder = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap();
        let mut files = Vec::new();
        for entry in fs::read_dir(fixture(name)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let copy = folder.path().join(path.file_name().unwrap());
            fs::write(&copy, &bytes).unwrap();
            files.push((copy, bytes));
        }
        Self { folder, files }
    }

    /// Returns the path and the contents of the first file whose name contains `part`.
    fn file(&self, part: &str) -> (&Path, &[u8]) {
        let is_file = |path: &Path| path.file_name().unwrap().to_str().unwrap().contains(part);
        let (path, bytes) = self.files.iter().find(|(path, _)| is_file(path)).unwrap();
        (path, bytes)
    }

    fn read(&self) -> Result<Records> {
        read_all(self.folder.path())
    }

    fn error(&self) -> String {
        self.read().unwrap_err().to_string()
    }
}

#[test]
fn databases_written_by_leveldb_are_read_in_order_and_rewound() {
    for name in ["plain", "snappy"] {
        let mut reader = LevelDbReader::open(fixture(name)).unwrap();
        // The tables are in several levels with overlapping key ranges, so the reader needs several
        // chains.
        assert_eq!(reader.chains.len(), 4, "{name}");
        let want = expected(name);
        assert!(want.len() > 90);
        assert_eq!(reader.entry(), (&[][..], &[][..]));
        for _ in 0..2 {
            for (key, value) in &want {
                assert!(reader.advance().unwrap());
                assert_eq!(reader.entry(), (&key[..], &value[..]));
            }
            for _ in 0..2 {
                assert!(!reader.advance().unwrap());
                assert_eq!(reader.entry(), (&[][..], &[][..]));
            }
            reader.rewind();
        }
    }
}

#[test]
fn a_read_changes_no_file_of_the_database() {
    let copy = Copy::new("snappy");
    copy.read().unwrap();
    let names = fs::read_dir(copy.folder.path()).unwrap();
    let names: BTreeSet<_> = names.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names, copy.files.iter().map(|(path, _)| path.clone()).collect());
    for (path, bytes) in &copy.files {
        assert_eq!(fs::read(path).unwrap(), *bytes);
    }
}

/// A truncated log of changes can end between two changes. LevelDB itself then also reads the
/// records as they were before the missing changes.
#[test]
fn truncated_databases_give_an_error_or_the_records_before_the_missing_changes() {
    for name in ["plain", "snappy"] {
        let (copy, want) = (Copy::new(name), expected(name));
        let mut accepted = 0;
        for (path, bytes) in &copy.files {
            let file_name = path.file_name().unwrap().to_str().unwrap();
            for len in 0..bytes.len() {
                fs::write(path, &bytes[..len]).unwrap();
                match copy.read() {
                    Err(error) => {
                        let text = error.to_string();
                        assert!(
                            text.contains("damaged at byte ")
                                || text.contains(".log: the write-ahead log is missing"),
                            "{file_name} at {len}: {text}"
                        );
                    }
                    Ok(records) => {
                        assert!(file_name.ends_with(".log"), "{file_name} at {len}");
                        assert!(records != want);
                        accepted += 1;
                    }
                }
            }
            fs::write(path, bytes).unwrap();
        }
        // The last program that opened the database wrote one batch and three deletions, so the log
        // has four record boundaries before its end.
        assert_eq!(accepted, 4);
        assert!(copy.read().unwrap() == want);
    }
}

#[test]
fn a_flipped_bit_gives_an_error_with_file_and_offset_or_the_right_records() {
    for name in ["plain", "snappy"] {
        let (copy, want) = (Copy::new(name), expected(name));
        for (path, bytes) in &copy.files {
            let (file_name, mut harmless) = (path.file_name().unwrap().to_str().unwrap(), 0);
            let mut damaged = bytes.clone();
            // Each read of a large file takes milliseconds. Odd steps change each bit of a byte.
            let step = if bytes.len() < 1000 { 3 } else { 29 };
            for index in (0..bytes.len()).step_by(step) {
                damaged[index] ^= 1 << (index % 8);
                fs::write(path, &damaged).unwrap();
                damaged[index] = bytes[index];
                match copy.read() {
                    Ok(records) => {
                        assert!(records == want, "{file_name} at {index}");
                        harmless += 1;
                    }
                    Err(error) => {
                        let text = error.to_string();
                        let has_place = text.contains(" damaged at byte ");
                        // A changed digit in `CURRENT` gives the name of a manifest that does not
                        // exist.
                        let is_missing = file_name == "CURRENT" && text.contains("MANIFEST-");
                        assert!(has_place || is_missing, "{file_name} at {index}: {text}");
                    }
                }
            }
            // A footer has unused bytes, and tables have blocks that a cursor does not read, so
            // changes there are harmless.
            let is_table =
                !["CURRENT", "MANIFEST", ".log"].iter().any(|part| file_name.contains(part));
            assert!(
                if is_table { harmless < 100 / step } else { harmless == 0 },
                "{file_name}: {harmless}"
            );
            fs::write(path, bytes).unwrap();
        }
    }
}

#[test]
fn databases_that_caffe_does_not_write_are_rejected() {
    let copy = Copy::new("plain");
    let folder = copy.folder.path();
    let (manifest, _) = copy.file("MANIFEST");
    let record = |fields: &[u8]| {
        let content = [&[1], fields].concat();
        let checksum = super::super::checksum::masked_crc32c(&content).to_le_bytes();
        [&checksum[..], &(fields.len() as u16).to_le_bytes(), &content].concat()
    };
    for (fields, want) in [
        (&b"\x01\x05other"[..], "the keys are in the order `other`, which is not supported"),
        (b"\xC8\x01\x00", "unknown field 200; databases of RocksDB are not supported"),
        (b"\x07\x07\x01\x00\x00\x00", "invalid field 7"),
        (b"\x07\x01\x01\x00\x01a\x01b", "invalid field 7"),
        (b"\x01\xFF", "invalid field 1"),
        (b"\x80", "invalid field 0"),
    ] {
        fs::write(manifest, record(fields)).unwrap();
        let text = copy.error();
        assert!(text.contains("damaged at byte 0: ") && text.contains(want), "{text}");
    }
    fs::write(manifest, record(b"\x03\x01")).unwrap();
    assert!(copy.error().contains("damaged at byte 9: no record states the write-ahead log"));

    fs::write(folder.join("CURRENT"), "../MANIFEST-1\n").unwrap();
    let text = copy.error();
    assert!(text.contains("CURRENT: damaged at byte 0: ") && text.contains(r"`../MANIFEST-1\n`"));
    fs::remove_file(folder.join("CURRENT")).unwrap();
    assert!(matches!(copy.read(), Err(Error::Io { path, .. }) if path.ends_with("CURRENT")));
}

#[test]
fn a_missing_file_is_named() {
    let copy = Copy::new("snappy");
    for (part, want) in [(".log", "the write-ahead log is missing"), (".ldb", "No such file")] {
        let (path, bytes) = copy.file(part);
        fs::remove_file(path).unwrap();
        let text = copy.error();
        assert!(text.contains(path.to_str().unwrap()) && text.contains(want), "{text}");
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn a_cursor_does_not_move_after_an_error_until_it_is_rewound() {
    let copy = Copy::new("plain");
    let (table, bytes) = copy.file(".sst");
    let mut damaged = bytes.to_vec();
    damaged[100] ^= 1;
    fs::write(table, damaged).unwrap();
    let mut reader = LevelDbReader::open(copy.folder.path()).unwrap();
    let error = reader.advance().unwrap_err().to_string();
    assert!(error.ends_with("damaged at byte 0: wrong checksum of a block"), "{error}");
    let error = reader.advance().unwrap_err().to_string();
    assert!(error.ends_with("an earlier read failed; rewind the cursor first"), "{error}");
    assert_eq!(reader.entry(), (&[][..], &[][..]));
    fs::write(table, bytes).unwrap();
    reader.rewind();
    assert!(reader.advance().unwrap());
}

use super::*;
use std::{fs, io::Write, path::PathBuf};

/// The lengths of the values in the database `tree`.
const LENGTHS: [usize; 16] = [0, 3, 40, 7, 1, 1547, 2, 5, 1548, 0, 3, 4080, 1, 4081, 2, 8300];

/// Returns the path of a database that `tests/lmdb/make.py` wrote with LMDB's C library.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lmdb").join(format!("{name}.mdb"))
}

fn error(path: &Path) -> String {
    LmdbReader::open(path).err().unwrap().to_string()
}

/// Reads all records and returns the total size of keys and values.
fn read_all(path: &Path) -> Result<usize> {
    let (mut reader, mut bytes) = (LmdbReader::open(path)?, 0);
    while reader.advance()? {
        let (key, value) = reader.entry()?;
        bytes += key.len() + value.len();
    }
    Ok(bytes)
}

#[test]
fn a_database_written_by_liblmdb_is_read_in_order_and_rewound() {
    let mut reader = LmdbReader::open(fixture("tree")).unwrap();
    assert_eq!((reader.entries(), reader.levels.len()), (32, 3));
    assert_eq!(reader.entry().unwrap(), (&[][..], &[][..]));
    for _ in 0..2 {
        for (i, length) in [LENGTHS; 2].concat().into_iter().enumerate() {
            assert!(reader.advance().unwrap());
            let (key, value) = reader.entry().unwrap();
            assert_eq!(key, [format!("{i:03}").as_bytes(), &[b'k'; 480]].concat());
            assert!(*value == vec![i as u8; length], "record {i}");
        }
        assert!(!reader.advance().unwrap());
        assert!(!reader.advance().unwrap());
        reader.rewind();
    }
}

#[test]
fn an_empty_database_has_no_records() {
    let mut reader = LmdbReader::open(fixture("empty")).unwrap();
    assert_eq!(reader.entries(), 0);
    assert!(!reader.advance().unwrap());
}

#[test]
fn databases_that_caffe_does_not_write_are_rejected() {
    let mut reader = LmdbReader::open(fixture("databases")).unwrap();
    assert!(reader.advance().unwrap());
    let text = reader.entry().unwrap_err().to_string();
    assert!(text.contains("`inner` is a nested database"), "{text}");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.mdb");
    let missing = LmdbReader::open(dir.path()).err().unwrap();
    assert!(matches!(&missing, Error::Io { path: p, .. } if *p == path), "{missing}");
    let original = fs::read(fixture("tree")).unwrap();
    let error_with = |at: usize, bytes: &[u8]| {
        let mut file = original.clone();
        for page in [0, 4096] {
            file[page + at..][..bytes.len()].copy_from_slice(bytes);
        }
        fs::write(&path, file).unwrap();
        error(dir.path())
    };
    let magic = MAGIC.to_be_bytes();
    for (at, bytes, want) in [
        (16, &[0; 4][..], "not an LMDB database"),
        (16, &magic, "from a 32-bit or big-endian machine"),
        (12, &MAGIC.to_le_bytes(), "from a 32-bit or big-endian machine"),
        (20, &[2], "of format 2; only format 1 is supported"),
        (40, &[1, 16], "page size of 4097 bytes"),
        (92, &[4], "keys can have several values"),
        (94, &[33], "tree of 33 levels"),
        (120, &[0], "tree of 3 levels and 0 records"),
        (136, &[0xff; 8], "too short for page 18446744073709551615 of 4096 bytes"),
    ] {
        let text = error_with(at, bytes);
        assert!(text.contains(want), "{at}: {text}");
    }
}

#[test]
fn truncated_databases_are_rejected() {
    let original = fs::read(fixture("tree")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    for length in (0..original.len()).step_by(512).chain([original.len() - 1]) {
        fs::write(&path, &original[..length]).unwrap();
        let text = error(&path);
        assert!(text.contains("not an LMDB database") || text.contains("damaged: "), "{text}");
    }
}

/// Inverts each header byte and some other bytes of the pages of a database, one at a time. Reading
/// the damaged database must terminate; the result may be an error or wrong records.
#[test]
fn damaged_databases_never_cause_a_panic_or_an_endless_loop() {
    let original = fs::read(fixture("tree")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, &original).unwrap();
    let mut file = File::options().write(true).open(&path).unwrap();
    let mut write_byte = |at: usize, byte: u8| {
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&[byte]).unwrap();
    };
    let (good, mut rejected_count) = (read_all(&path).unwrap(), 0);
    for page in 0..original.len() / 4096 {
        for offset in (0..if page < 2 { 160 } else { 24 }).chain([3600, 3602, 3604, 3606]) {
            let at = page * 4096 + offset;
            write_byte(at, !original[at]);
            match read_all(&path) {
                Ok(bytes) => assert!(bytes < 2 * original.len()),
                Err(_) => rejected_count += 1,
            }
            write_byte(at, original[at]);
        }
    }
    assert_eq!(read_all(&path).unwrap(), good);
    assert!(rejected_count > 200, "{rejected_count}");
}

/// The reader limits the number of bytes that it reads in one pass, because the pages of a damaged
/// tree can form a cycle. Rewinding the reader starts a new pass with a new limit.
#[test]
fn repeated_passes_and_repeated_reads_of_a_value_are_allowed() {
    let mut reader = LmdbReader::open(fixture("tree")).unwrap();
    for _ in 0..5 {
        for length in [LENGTHS; 2].concat() {
            assert!(reader.advance().unwrap());
            for _ in 0..5 {
                assert_eq!(reader.entry().unwrap().1.len(), length);
            }
        }
        reader.rewind();
    }
}

#[test]
fn a_pass_that_reads_a_page_more_often_than_the_tree_has_pages_is_refused() {
    let mut reader = LmdbReader::open(fixture("tree")).unwrap();
    let mut page = vec![0; reader.file.page_size];
    let limit = 2 * reader.file.count;
    for _ in 0..limit {
        let root = reader.root;
        reader.file.read(root, BRANCH, &mut page).unwrap();
    }
    let error = reader.advance().unwrap_err().to_string();
    let want = format!("more than the limit of {} bytes", limit * 4096);
    assert!(error.contains("tree.mdb: damaged: ") && error.contains(&want), "{error}");
    reader.rewind();
    assert!(reader.advance().unwrap());
}

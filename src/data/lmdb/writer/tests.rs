use super::*;
use crate::data::LmdbReader;
use std::fs;

/// Returns records with values that fit in a leaf page and values that need overflow pages,
/// including the longest value that fits and the shortest value that does not.
fn records(count: usize, key_length: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let record = |i: usize| {
        let key = format!("{i:0key_length$}").into_bytes();
        let length = [0, 1, 700, 2030 - key_length, 2031 - key_length, 4080, 4081, 9000][i % 8];
        (key, vec![i as u8; length])
    };
    (0..count).map(record).collect()
}

fn read(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut reader = LmdbReader::open(path).unwrap();
    let mut records = Vec::new();
    while reader.advance().unwrap() {
        let (key, value) = reader.entry().unwrap();
        records.push((key.to_vec(), value.to_vec()));
    }
    assert_eq!(records.len() as u64, reader.entries());
    records
}

/// A page of 4096 bytes holds at most 8 keys of 500 bytes, so a few records already need a tree of
/// several levels.
#[test]
fn records_written_to_databases_of_several_levels_are_read_back() {
    let dir = tempfile::tempdir().unwrap();
    for (i, (count, key_length)) in
        (0..70).chain([400, 500]).map(|n| (n, 500)).chain([(3000, 8)]).enumerate()
    {
        let (path, want) = (dir.path().join(i.to_string()), records(count, key_length));
        let mut writer = LmdbWriter::create(&path, false).unwrap();
        for (key, value) in &want {
            writer.put(key, value).unwrap();
        }
        assert!(!path.exists());
        writer.finish().unwrap();
        assert!(read(&path) == want, "{count} records");
        let length = fs::metadata(path.join("data.mdb")).unwrap().len();
        assert_eq!(length % PAGE_SIZE as u64, 0);
    }
}

#[test]
fn keys_of_invalid_length_or_order_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut writer = LmdbWriter::create(&path, false).unwrap();
    writer.put(b"b", b"1").unwrap();
    for (key, want) in [
        (&b"b"[..], "key `b`: not greater than the previous key"),
        (b"a", "key `a`: not greater than the previous key"),
        (b"", "key ``: expected 1 to 511 bytes, found 0"),
        (&[b'c'; 512], ": expected 1 to 511 bytes, found 512"),
    ] {
        let error = writer.put(key, b"2").unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    writer.put(&[b'c'; 511], &[2; 5000]).unwrap();
    writer.finish().unwrap();
    assert_eq!(read(&path), [(b"b".to_vec(), b"1".to_vec()), (vec![b'c'; 511], vec![2; 5000])]);
    let error = LmdbWriter::create(&path, false).err().unwrap().to_string();
    assert!(error.contains("already exists"), "{error}");
}

/// The writer writes the meta pages last, so the reader rejects an unfinished database.
#[test]
fn an_unfinished_database_is_rejected_and_removed_on_drop() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LmdbWriter::create(dir.path().join("a"), false).unwrap();
    for (key, value) in records(3000, 8) {
        writer.put(&key, &value).unwrap();
    }
    let error = LmdbReader::open(writer.dir.path()).err().unwrap().to_string();
    assert!(error.contains("not an LMDB database"), "{error}");
    drop(writer);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

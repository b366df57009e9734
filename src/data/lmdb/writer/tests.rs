use super::*;
use crate::data::LmdbReader;
use std::fs;

/// Keys with values of many lengths, both sides of where overflow pages begin.
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

/// Counts at which a level begins, and around: 7 to 8 keys of 500 bytes fit a page.
#[test]
fn what_is_written_is_read() {
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
fn keys_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let mut writer = LmdbWriter::create(&path, false).unwrap();
    writer.put(b"b", b"1").unwrap();
    for (key, want) in [
        (&b"b"[..], "`b` does not come after the one before"),
        (b"a", "`a` does not come after the one before"),
        (b"", "`` is not of 1 to 511 bytes"),
        (&[b'c'; 512], "is not of 1 to 511 bytes"),
    ] {
        let error = writer.put(key, b"2").unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    writer.put(&[b'c'; 511], &[2; 5000]).unwrap();
    writer.finish().unwrap();
    assert_eq!(read(&path), [(b"b".to_vec(), b"1".to_vec()), (vec![b'c'; 511], vec![2; 5000])]);
    let again = LmdbWriter::create(&path, false).err().unwrap().to_string();
    assert!(again.contains("exists already"), "{again}");
}

/// The headers come last: a database that was not finished is none, whatever its name.
#[test]
fn an_unfinished_database_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = LmdbWriter::create(dir.path().join("a"), false).unwrap();
    for (key, value) in records(3000, 8) {
        writer.put(&key, &value).unwrap();
    }
    let error = LmdbReader::open(writer.folder.path()).err().unwrap().to_string();
    assert!(error.contains("it is no LMDB database"), "{error}");
    drop(writer);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

//! Tests of LevelDB databases, which LevelDB itself wrote through the Python package plyvel.

use cortado::{
    CpuDevice, Net,
    data::{LevelDbReader, LevelDbSource, Record, RecordValues, Source, SourceRegistry},
    proto::{self, NetParameter, Phase},
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the path of a database of Datum messages: a table of three records, and a write-ahead
/// log of two records. Record i has the bytes 10·i and 10·i + 1 and the label i.
fn datums() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/leveldb/datums")
}

#[test]
fn a_leveldb_source_counts_its_records_and_starts_again() {
    let path = datums().display().to_string();
    for name in [path.clone(), format!("leveldb:{path}")] {
        let mut source = SourceRegistry::default().open(&name).unwrap();
        assert_eq!(source.describe(), format!("leveldb:{path}"));
        let mut record = Record::default();
        for pass in 0..2 {
            for i in 0..5 {
                assert_eq!(source.records(), (pass > 0).then_some(5));
                source.read(&mut record).unwrap();
                assert_eq!((record.shape(), record.label()), ([1, 1, 2], i.into()));
                assert_eq!(record.values(), RecordValues::Bytes(&[10 * i, 10 * i + 1]));
            }
        }
    }
}

#[test]
fn a_leveldb_source_skips_records_over_the_end_of_a_pass() {
    for (skipped, label) in [(0, 0), (3, 3), (5, 0), (7, 2), (10_u64.pow(18) + 4, 4)] {
        let (mut source, mut record) = (LevelDbSource::open(datums()).unwrap(), Record::default());
        source.skip(skipped).unwrap();
        source.read(&mut record).unwrap();
        assert_eq!(record.label(), label);
    }
}

/// `LEVELDB` is the default of the field `backend`.
#[test]
fn a_data_layer_reads_a_leveldb_database() {
    for backend in ["", "backend: LEVELDB"] {
        let text = format!(
            "layer {{ name: 'data' type: 'Data' top: 'data' top: 'label'
               data_param {{ source: '{}' batch_size: 4 {backend} }} }}",
            datums().display()
        );
        let device = CpuDevice::with_threads(1).unwrap();
        let definition: NetParameter = proto::parse_text(&text, "net.prototxt").unwrap();
        let mut net = Net::<f32>::builder(&device).phase(Phase::Test).build(&definition).unwrap();
        for labels in [[0, 1, 2, 3], [4, 0, 1, 2]] {
            net.forward().unwrap();
            let values = |blob| net.blob(blob).unwrap().to_vec().unwrap();
            assert_eq!(values("label"), labels.map(|label| label as f32));
            let pixels = labels.map(|label| [10 * label, 10 * label + 1]).concat();
            assert_eq!(values("data"), pixels.into_iter().map(|x| x as f32).collect::<Vec<_>>());
        }
    }
}

/// Compares all records with those that LevelDB itself reads. The environment variable
/// `CORTADO_LEVELDB_PYTHON` names a Python interpreter with the packages in
/// `tests/leveldb/requirements.txt`.
#[test]
fn large_databases_have_the_records_that_leveldb_reads() {
    let Some(python) = env::var_os("CORTADO_LEVELDB_PYTHON") else {
        eprintln!("skipped: CORTADO_LEVELDB_PYTHON is not set");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = datums().with_file_name("make.py");
    assert!(Command::new(python).arg(script).arg(folder.path()).status().unwrap().success());
    let (mut databases, mut records) = (0, 0);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let expected = fs::read(path.with_extension("records")).unwrap();
        let (mut reader, mut rest) = (LevelDbReader::open(&path).unwrap(), &expected[..]);
        while reader.advance().unwrap() {
            let (key, value) = reader.entry();
            let lens = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes).concat();
            for part in [&lens[..], key, value] {
                rest = rest.strip_prefix(part).unwrap_or_else(|| {
                    panic!("{}: key `{}`", path.display(), String::from_utf8_lossy(key))
                });
            }
            records += 1;
        }
        assert!(rest.is_empty(), "{}: records are missing", path.display());
        databases += 1;
    }
    assert_eq!(databases, 6);
    assert!(records > 30_000, "{records}");
}

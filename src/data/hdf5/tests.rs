use super::*;
use crate::proto::{BlobProto, BlobShape, write_hdf5_blobs};
use std::{collections::BTreeSet, fs};
use tempfile::TempDir;

/// Writes an HDF5 file with rows i = `start`, `start` + 1, …: the row of `x` is [i, i + ½], and the
/// row of `y` is 10·i.
fn write(path: &Path, start: usize, rows: usize) {
    let blob = |dim: Vec<i64>, data| BlobProto {
        shape: Some(BlobShape { dim }),
        data,
        ..Default::default()
    };
    let row_numbers = start..start + rows;
    let x = row_numbers.clone().flat_map(|i| [i as f32, i as f32 + 0.5]).collect();
    let y = row_numbers.map(|i| 10.0 * i as f32).collect();
    let blobs = [("x", blob(vec![rows as i64, 1, 2], x)), ("y", blob(vec![rows as i64], y))];
    write_hdf5_blobs(path, blobs.iter().map(|(name, blob)| (*name, blob))).unwrap();
}

/// Writes one HDF5 file for each row count in `counts`, and a list file with the paths of the HDF5
/// files.
fn files(counts: &[usize]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (mut start, mut list) = (0, String::new());
    for (i, &rows) in counts.iter().enumerate() {
        let path = dir.path().join(format!("a b {i}.h5"));
        write(&path, start, rows);
        list += &format!("{}\n\n", path.display());
        start += rows;
    }
    let path = dir.path().join("list");
    fs::write(&path, list).unwrap();
    (dir, path)
}

fn names() -> [String; 2] {
    ["x".into(), "y".into()]
}

/// Reads the next `count` rows and returns the row numbers.
fn read(rows: &mut Hdf5Rows, count: usize) -> Vec<usize> {
    let read_row = |_| {
        let row: Vec<_> = rows.read().unwrap().map(<[f64]>::to_vec).collect();
        let number = row[0][0];
        assert_eq!(row, [vec![number, number + 0.5], vec![10.0 * number]]);
        number as usize
    };
    (0..count).map(read_row).collect()
}

#[test]
fn hdf5_rows_come_in_order_across_files_and_epochs() {
    for counts in [&[5][..], &[2, 1, 4]] {
        let (_dir, list) = files(counts);
        let total = counts.iter().sum::<usize>();
        for slice in [0, 1, 3, 100, usize::MAX] {
            let mut rows = Hdf5Rows::open(&list, &names(), slice, None).unwrap();
            assert_eq!(rows.shapes(), [vec![1, 2], vec![]]);
            let want: Vec<_> = (0..2 * total + 1).map(|i| i % total).collect();
            assert_eq!(read(&mut rows, 2 * total + 1), want);
        }
    }
}

#[test]
fn a_shuffled_epoch_has_each_row_once_in_an_order_that_depends_on_the_key_only() {
    let (_dir, list) = files(&[20, 30]);
    let open = |key| Hdf5Rows::open(&list, &names(), 4, Some(RngKey::new(key))).unwrap();
    let (mut rows, mut same_key) = (open(1), open(1));
    let epochs = [(); 3].map(|()| read(&mut rows, 50));
    for epoch in &epochs {
        assert_eq!(epoch.iter().collect::<BTreeSet<_>>().len(), 50);
        // In each epoch, the source returns all rows of one file before any row of the other file.
        let first = epoch[0] < 20;
        let len = if first { 20 } else { 30 };
        assert!(epoch[..len].iter().all(|row| (*row < 20) == first), "{epoch:?}");
    }
    assert_ne!(epochs[0], epochs[1]);
    assert_eq!([(); 3].map(|()| read(&mut same_key, 50)), epochs);
    assert_ne!(read(&mut open(2), 50), epochs[0]);
}

#[test]
fn seeking_continues_with_the_row_that_reading_reaches() {
    for counts in [&[7][..], &[4, 1, 6], &[3, 5]] {
        let (_dir, list) = files(counts);
        let total = counts.iter().sum::<usize>();
        for key in [None, Some(RngKey::new(1))] {
            let open = || Hdf5Rows::open(&list, &names(), 2, key).unwrap();
            let all_rows = read(&mut open(), 5 * total);
            let mut rows = open();
            for start in [0, 1, total - 1, total, total + 2, 3 * total - 1, 2, 3 * total, 0] {
                rows.seek(start as u64).unwrap();
                assert_eq!(
                    read(&mut rows, total + 3),
                    all_rows[start..][..total + 3],
                    "from {start}"
                );
                assert_eq!(rows.position(), (start + total + 3) as u64);
            }
        }
    }
}

#[test]
fn a_failed_seek_leaves_the_reader_at_its_row() {
    let (dir, list) = files(&[3, 2]);
    let mut rows = Hdf5Rows::open(&list, &names(), 1, None).unwrap();
    assert_eq!(read(&mut rows, 1), [0]);
    fs::write(dir.path().join("a b 1.h5"), b"no HDF5").unwrap();
    let error = rows.seek(3).unwrap_err().to_string();
    assert!(error.contains("a b 1.h5: "), "{error}");
    assert_eq!((rows.position(), read(&mut rows, 2)), (1, vec![1, 2]));
}

#[test]
fn hdf5_errors_name_the_file_and_the_dataset() {
    let (dir, list) = files(&[3, 2]);
    let error = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        Hdf5Rows::open(&list, &names, 1, None).err().unwrap().to_string()
    };
    let text = error(&["x", "z"]);
    assert!(text.contains("a b 0.h5: dataset `z`: "), "{text}");
    assert!(error(&[]).contains("expected the name of at least one dataset"));
    let second = dir.path().join("a b 1.h5");
    let mut rows = Hdf5Rows::open(&list, &names(), 1, None).unwrap();
    fs::write(&second, b"no HDF5").unwrap();
    read(&mut rows, 3);
    let text = rows.read().err().unwrap().to_string();
    assert!(text.contains("a b 1.h5: "), "{text}");
    fs::write(&list, "\n").unwrap();
    assert!(error(&["x"]).contains("lists no files"));
    fs::write(&list, "none.h5").unwrap();
    assert!(error(&["x"]).starts_with("none.h5: "));
}

#[test]
fn a_number_of_empty_rows_beyond_the_file_size_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (path, list) = (dir.path().join("a.h5"), dir.path().join("list"));
    let shape = Some(BlobShape { dim: vec![1 << 60, 0] });
    write_hdf5_blobs(&path, [("x", &BlobProto { shape, ..Default::default() })]).unwrap();
    fs::write(&list, path.display().to_string()).unwrap();
    let result = Hdf5Rows::open(&list, &["x".into()], 1, Some(RngKey::new(1)));
    let error = result.err().unwrap().to_string();
    assert!(error.contains("a.h5: dataset `x`: shape [1152921504606846976, 0]: "), "{error}");
    assert!(error.contains(" stored bytes is 33554432 bytes"), "{error}");
}

/// The script `tests/hdf5/make.py` writes the file `rows.h5` with h5py.
#[test]
fn compressed_chunks_of_all_number_types_are_read() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hdf5/rows.h5");
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("list");
    fs::write(&list, file.display().to_string()).unwrap();
    let names = ["x", "label", "byte"].map(str::to_owned);
    for slice in [1, 3, 7] {
        let mut rows = Hdf5Rows::open(&list, &names, slice, None).unwrap();
        assert_eq!(rows.shapes(), [vec![2, 3], vec![], vec![1]]);
        for row in (0..7).cycle().take(15) {
            let got: Vec<_> = rows.read().unwrap().map(<[f64]>::to_vec).collect();
            let x = (0..6).map(|i| f64::from(6 * row + i) / 8.0).collect();
            assert_eq!(got, [x, vec![f64::from(1000 * row)], vec![f64::from(row)]]);
        }
    }
}

/// Returns the rows of the file `name` in `tests/hdf5`, which h5py wrote.
fn rows_of_h5py(name: &str, datasets: &[&str]) -> Result<Hdf5Rows> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hdf5").join(name);
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("list");
    fs::write(&list, file.display().to_string()).unwrap();
    let datasets: Vec<_> = datasets.iter().map(|dataset| (*dataset).to_owned()).collect();
    Hdf5Rows::open(&list, &datasets, 3, None)
}

#[test]
fn chunks_of_hdf5_1_10_and_half_precision_numbers_are_read() {
    let datasets = ["single", "fixed", "extensible", "implicit", "half"];
    let mut rows = rows_of_h5py("chunk_indices.h5", &datasets).unwrap();
    for row in (0..7).cycle().take(15) {
        let x: Vec<_> = (0..6).map(|i| f64::from(6 * row + i) / 8.0).collect();
        for (got, dataset) in rows.read().unwrap().zip(datasets) {
            assert_eq!(got, x, "{dataset}, row {row}");
        }
    }
}

#[test]
fn unsupported_chunks_are_refused_with_their_format_and_a_remedy() {
    for (file, want) in [
        ("several_unlimited.h5", "chunks of a dataset with several unlimited dimensions"),
        ("version_5.h5", "compressed chunks as HDF5 2.0 stores them"),
    ] {
        let text = rows_of_h5py(file, &["x"]).err().unwrap().to_string();
        assert!(text.contains(&format!("{file}: dataset `x`: {want}")), "{text}");
        assert!(text.ends_with("; write the file with `libver=\"earliest\"`, the default of h5py"));
    }
}

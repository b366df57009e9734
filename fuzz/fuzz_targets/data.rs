//! Databases, images and HDF5: records that are read and written are read again as the same ones,
//! and so are images; nets and solver states only have to be read or refused.
#![no_main]

use cortado::{
    Result,
    data::{Color, Image, LmdbReader, LmdbWriter},
    proto,
};
use libfuzzer_sys::fuzz_target;
use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::LazyLock,
};

/// The file that all of it goes through.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("cortado-fuzz-{}", process::id())));

/// Records looked at: a damaged tree can lead through the same pages for ever.
const RECORDS: usize = 500;

/// Elements of images that are written again: headers may claim a hundred million, and mean it.
const ELEMENTS: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let image = Image::decode(bytes, Color::AsStored);
    if let Ok(image) = image
        && image.shape().iter().product::<usize>() <= ELEMENTS
    {
        let again = Image::decode(&image.encode_png().unwrap(), Color::AsStored).unwrap();
        assert_eq!(again.shape(), image.shape());
        assert_eq!(again.encode_png().unwrap(), image.encode_png().unwrap());
    }
    fs::write(&*FILE, bytes).unwrap();
    if let Ok(records) = read(&FILE) {
        let folder = FILE.with_extension("lmdb");
        let ascending = records.is_sorted_by(|(a, _), (b, _)| a < b);
        let mut database = LmdbWriter::create(&folder, true).unwrap();
        let put = records.iter().try_for_each(|(key, value)| database.put(key, value));
        if put.is_ok() {
            assert!(ascending);
            database.finish().unwrap();
            assert_eq!(read(&folder).unwrap(), records);
        }
    }
    let _ = proto::read_trained_net(&*FILE);
    let _ = proto::read_solver_state(&*FILE);
});

type Records = Vec<(Vec<u8>, Vec<u8>)>;

fn read(path: &Path) -> Result<Records> {
    let mut reader = LmdbReader::open(path)?;
    let mut records = Records::new();
    while records.len() < RECORDS && reader.advance()? {
        let (key, value) = reader.entry()?;
        records.push((key.to_vec(), value.to_vec()));
    }
    Ok(records)
}

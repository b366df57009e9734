//! Fuzz target for databases, images and HDF5. Records and images that are written and read again
//! must stay equal. Readers of HDF5 nets and solver states must not panic.
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

/// Path of the input file, which differs between processes.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("cortado-fuzz-{}", process::id())));

/// Largest image, in elements, that the fuzz target encodes and decodes again. A small file can
/// hold an image of 10⁸ elements, whose encoding would take too long.
const MAX_ELEMENTS: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let _ = Image::decode(bytes, Color::Gray);
    let image = Image::decode(bytes, Color::AsStored);
    if let Ok(image) = image
        && image.shape().iter().product::<usize>() <= MAX_ELEMENTS
    {
        let again = Image::decode(&image.encode_png().unwrap(), Color::AsStored).unwrap();
        assert_eq!(again.shape(), image.shape());
        assert_eq!(again.encode_png().unwrap(), image.encode_png().unwrap());
    }
    fs::write(&*FILE, bytes).unwrap();
    if let Ok(records) = read(&FILE) {
        let dir = FILE.with_extension("lmdb");
        let ascending = records.is_sorted_by(|(a, _), (b, _)| a < b);
        let mut database = LmdbWriter::create(&dir, true).unwrap();
        let put = records.iter().try_for_each(|(key, value)| database.put(key, value));
        if put.is_ok() {
            assert!(ascending);
            database.finish().unwrap();
            assert_eq!(read(&dir).unwrap(), records);
        }
    }
    let _ = proto::read_trained_net(&*FILE);
    let _ = proto::read_solver_state(&*FILE);
});

type Records = Vec<(Vec<u8>, Vec<u8>)>;

fn read(path: &Path) -> Result<Records> {
    let mut reader = LmdbReader::open(path)?;
    let mut records = Records::new();
    while reader.advance()? {
        let (key, value) = reader.entry()?;
        records.push((key.to_vec(), value.to_vec()));
    }
    Ok(records)
}

//! Arrays by name in a file: NumPy's `.npz`, a zip archive of `.npy` files.

use super::{Tensor, expect_distinct, npy};
use crate::{
    error::{Error, Result},
    atomic_fs,
};
use std::{
    fs::File,
    io::{BufReader, Cursor, Write},
    path::Path,
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// What the name of a member ends in.
const END: &str = ".npy";

/// Reads the arrays of a `.npz` file, in their order in it, compressed or not.
///
/// # Errors
/// As [`read_npy`](super::read_npy), with the names of the file and of the array; and
/// [`Error::InvalidData`] for what is no zip archive or holds anything but `.npy` files.
pub fn read_npz(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| failed(path, error))?;
    (0..archive.len()).map(|place| member(&mut archive, place, path)).collect()
}

/// Writes a `.npz` file, whole or not at all, as `numpy.savez` does: not compressed. What is `bf16`
/// is written as `float32`, exactly.
///
/// Memory: the tensors and the file, at the same time.
///
/// # Errors
/// [`Error::InvalidData`] if two tensors have one name; [`Error::Io`], [`Error::OutOfMemory`].
pub fn write_npz(path: impl AsRef<Path>, tensors: &[(String, Tensor)]) -> Result<()> {
    let path = path.as_ref();
    expect_distinct(tensors).map_err(|error| error.context(path.display().to_string()))?;
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, tensor) in tensors {
        let bytes = npy::to_bytes(tensor)?;
        // Longer members need the fields of zip64.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes.len() >= u32::MAX as usize);
        let begun = archive.start_file(format!("{name}{END}"), options);
        begun.map_err(|error| failed(path, error))?;
        archive.write_all(&bytes).map_err(|error| Error::io(path, error))?;
    }
    let content = archive.finish().map_err(|error| failed(path, error))?;
    atomic_fs::write_atomically(path, &content.into_inner())
}

fn member(
    archive: &mut ZipArchive<BufReader<File>>,
    place: usize,
    path: &Path,
) -> Result<(String, Tensor)> {
    let member = archive.by_index(place).map_err(|error| failed(path, error))?;
    let name = member.name().map_err(|error| failed(path, error))?.into_owned();
    let place = format!("{}: `{name}`", path.display());
    let Some(stem) = name.strip_suffix(END) else {
        return Err(Error::InvalidData(format!("{place} is no .npy file")));
    };
    let tensor = npy::parse(member, path, &place)?;
    Ok((stem.to_owned(), tensor))
}

fn failed(path: &Path, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => Error::io(path, error),
        other => Error::InvalidData(format!("{}: {other}", path.display())),
    }
}

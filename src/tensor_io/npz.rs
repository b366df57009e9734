//! NumPy's file format `.npz`: named arrays in a zip archive of `.npy` files.

use super::{
    npy,
    tensor::{Tensor, check_distinct_names},
};
use crate::{
    atomic_fs,
    error::{Error, Result},
    limits,
};
use std::{
    fs::File,
    io::{BufReader, Cursor, Write},
    path::{Component, Path},
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// File extension of the members of a `.npz` archive.
const EXTENSION: &str = ".npy";

/// Reads the arrays of a `.npz` file, compressed or not, in the order of the archive's members.
///
/// # Errors
/// Returns any error from [`read_npy`](super::read_npy), with the names of the file and of the
/// array. Returns [`Error::InvalidData`] for a file that is not a zip archive, a member that is not
/// a `.npy` file, or arrays that together need more than 32 MiB and more than 64 bytes per byte of
/// the file.
pub fn read_npz(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    let (file, metadata) = limits::open(path)?;
    let mut archive =
        ZipArchive::new(BufReader::new(file)).map_err(|error| zip_error(path, error))?;
    // Members of an archive may overlap in the file, so the limit applies to the sum of their
    // lengths.
    let mut total_len = 0;
    let mut check_len = |name: &str, len: u64| {
        total_len = limits::check_expanded(name, len.checked_add(total_len), metadata.len())?;
        Ok(())
    };
    (0..archive.len()).map(|index| read_member(&mut archive, index, path, &mut check_len)).collect()
}

/// Writes an uncompressed `.npz` file like `numpy.savez`, completely or not at all. The writer
/// converts `bf16` to `float32` without rounding.
///
/// Writing needs memory for both the tensors and the content of the file.
///
/// # Errors
/// Returns [`Error::Io`] if the file cannot be written. Returns [`Error::OutOfMemory`] if the
/// conversion of a `bf16` tensor to `float32` runs out of memory. Returns [`Error::InvalidData`] if
/// two tensors have the same name, or if a name, such as `../x`, is a path outside the folder into
/// which a program extracts the archive.
pub fn write_npz(path: impl AsRef<Path>, tensors: &[(String, Tensor)]) -> Result<()> {
    let path = path.as_ref();
    let name_check = check_distinct_names(tensors).and_then(|()| check_relative_names(tensors));
    name_check.map_err(|error| error.context(path.display().to_string()))?;
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, tensor) in tensors {
        let bytes = npy::to_bytes(tensor)?;
        // An archive member of 4 GiB or more needs the zip64 format.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes.len() >= u32::MAX as usize);
        let result = archive.start_file(format!("{name}{EXTENSION}"), options);
        result.map_err(|error| zip_error(path, error))?;
        archive.write_all(&bytes).map_err(|error| Error::io(path, error))?;
    }
    let content = archive.finish().map_err(|error| zip_error(path, error))?;
    atomic_fs::write_atomically(path, &content.into_inner())
}

fn read_member(
    archive: &mut ZipArchive<BufReader<File>>,
    index: usize,
    path: &Path,
    check_len: &mut impl FnMut(&str, u64) -> Result<()>,
) -> Result<(String, Tensor)> {
    let member = archive.by_index(index).map_err(|error| zip_error(path, error))?;
    let name = member.name().map_err(|error| zip_error(path, error))?.into_owned();
    let full_name = format!("{}: `{name}`", path.display());
    let Some(stem) = name.strip_suffix(EXTENSION) else {
        return Err(Error::InvalidData(format!("{full_name}: not a .npy file")));
    };
    let tensor = npy::parse(member, path, &full_name, |len| check_len(&full_name, len))?;
    Ok((stem.to_owned(), tensor))
}

/// Fails if the name of a tensor is a path outside the folder into which a program extracts the
/// archive. A tensor name contains a layer name, so an untrusted net definition could choose such a
/// path.
fn check_relative_names(tensors: &[(String, Tensor)]) -> Result<()> {
    let is_normal = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    // Reject Windows paths as well, in which `\` separates folders and `:` follows the drive
    // letter.
    let leaves_folder = |name: &str| {
        !Path::new(&name.replace('\\', "/")).components().all(is_normal)
            || name.as_bytes().get(1) == Some(&b':')
    };
    match tensors.iter().find(|(name, _)| leaves_folder(name)) {
        Some((name, _)) => Err(Error::InvalidData(format!(
            "the name `{}` leads outside the folder of the extracted archive; rename the layer",
            limits::quoted(name)
        ))),
        None => Ok(()),
    }
}

fn zip_error(path: &Path, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => Error::io(path, error),
        other => Error::InvalidData(format!("{}: {other}", path.display())),
    }
}

//! Detection of HDF5 files by name or content.

use std::{ffi::OsStr, fs::File, io::Read, path::Path};

/// The signature at the start of an HDF5 file without a user block. HDF5 files that Caffe writes
/// never have a user block.
pub(super) const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

pub(in crate::proto) fn has_extension(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("h5"))
}

/// Returns whether a file's name ends in `.h5` or the file starts with the HDF5 signature.
pub(in crate::proto) fn is_hdf5(path: &Path) -> bool {
    has_extension(path) || has_signature(path)
}

/// Returns whether a file starts with the HDF5 signature.
pub(super) fn has_signature(path: &Path) -> bool {
    let mut start = [0; SIGNATURE.len()];
    // `has_signature` opens only regular files, because bytes that are read from a pipe cannot be
    // read again.
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == SIGNATURE
}

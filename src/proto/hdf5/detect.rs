//! Detection of HDF5 files by name or content.

use std::{ffi::OsStr, fs::File, io::Read, path::Path};

/// The first bytes of an HDF5 file without a user block. Caffe's files never have a user block.
pub(super) const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

pub(in crate::proto) fn has_extension(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("h5"))
}

/// Returns whether a file has the extension or the content of an HDF5 file.
pub(in crate::proto) fn is_hdf5(path: &Path) -> bool {
    let mut start = [0; SIGNATURE.len()];
    // The function reads the content of regular files only, because a process can read a pipe only
    // once.
    has_extension(path)
        || path.is_file()
            && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == SIGNATURE
}

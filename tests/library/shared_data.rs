//! Data sets that several tests only read.

use crate::data_sets::write_data_sets;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The folder with one data set for every type of data source.
pub(crate) static DATA: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared-data");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    write_data_sets(&folder, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images"));
    folder
});

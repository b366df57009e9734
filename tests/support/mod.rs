//! Test data for the comparisons with Caffe.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns a folder of test data. Without `CORTADO_TESTDATA`, prints a notice and returns `None`.
pub(crate) fn testdata(folder: &str, what: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("CORTADO_TESTDATA") else {
        eprintln!("SKIPPED: set CORTADO_TESTDATA to run {what}");
        return None;
    };
    let path = Path::new(&root).join(folder);
    assert!(path.is_dir(), "{}: no such folder", path.display());
    Some(path)
}

/// Reads a tab-separated table without its header.
pub(crate) fn table(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().skip(1).map(row).collect()
}

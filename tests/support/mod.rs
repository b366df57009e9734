//! Test data for comparisons with Caffe: the large set that `CORTADO_TESTDATA` names, or the
//! selection in `tests/testdata`.
#![allow(dead_code)] // no test program uses all functions of this file

use flate2::read::GzDecoder;
use std::{
    env,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process,
    sync::{Mutex, PoisonError},
};

/// Returns the path of a file or folder of the test data: from the large set if `CORTADO_TESTDATA`
/// is set, else from the selection. Prints a notice and returns `None` if the selection of test
/// data does not contain the file or folder.
///
/// # Panics
/// Panics if `CORTADO_TESTDATA` is set but does not contain the file or folder.
pub(crate) fn testdata(path: &str, what: &str) -> Option<PathBuf> {
    let found = find(&root().join(path));
    if found.is_none() {
        assert!(!has_large_set(), "{path}: missing in CORTADO_TESTDATA, but required for {what}");
        eprintln!("SKIPPED: set CORTADO_TESTDATA to run {what}");
    }
    found
}

/// Returns the path of the file with the weights of the LeNet that Caffe trained. In the selection
/// in `tests/testdata`, the weights of LeNet are rounded to `bf16`.
pub(crate) fn lenet_weights() -> PathBuf {
    let file = if has_large_set() {
        "lenet_iter_10000.caffemodel"
    } else {
        "lenet_iter_10000_bf16.caffemodel"
    };
    required(&root().join("golden/lenet").join(file))
}

/// Returns the folder with MNIST's test images, whose file names start with `t10k`. The selection
/// in `tests/testdata` contains only the first 300 images.
pub(crate) fn mnist_test_images() -> PathBuf {
    let folder = if has_large_set() { "data/mnist" } else { "data/mnist_first_300" };
    required(&root().join(folder))
}

/// Returns the minimum number of test cases that a test must find: `large` for the large set of
/// test data, `selection` for the selection.
pub(crate) fn minimum(large: usize, selection: usize) -> usize {
    if has_large_set() { large } else { selection }
}

/// Reads the rows of a tab-separated table, without the header. Panics if the table has no rows.
pub(crate) fn table(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let row = |line: &str| line.split('\t').map(str::to_owned).collect();
    let rows: Vec<_> = text.lines().skip(1).map(row).collect();
    assert!(!rows.is_empty(), "{}: the table has no rows", path.display());
    rows
}

fn has_large_set() -> bool {
    env::var_os("CORTADO_TESTDATA").is_some()
}

fn root() -> PathBuf {
    // The tests of the command `cortado` run in a folder below the root of the repository.
    let folders = || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let candidates = || folders().map(|folder| folder.join("tests/testdata"));
    let find_selection = || candidates().find(|folder| folder.is_dir()).unwrap_or_default();
    env::var_os("CORTADO_TESTDATA").map_or_else(find_selection, PathBuf::from)
}

fn required(path: &Path) -> PathBuf {
    find(path).unwrap_or_else(|| panic!("{}: no such file or folder", path.display()))
}

/// Returns `path` if it exists. If only `path.gz` exists, unpacks `path.gz` and returns the path of
/// the unpacked file.
fn find(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return Some(path.to_owned());
    }
    let mut packed_path = path.as_os_str().to_owned();
    packed_path.push(".gz");
    let packed_file = File::open(packed_path).ok()?;

    // Another thread or process may unpack the same file at the same time.
    static UNPACKING: Mutex<()> = Mutex::new(());
    let _lock = UNPACKING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("testdata");
    fs::create_dir_all(&folder).unwrap();
    let unpacked_path = folder.join(path.file_name().unwrap());
    let partial_path = folder.join(process::id().to_string());
    io::copy(&mut GzDecoder::new(packed_file), &mut File::create(&partial_path).unwrap()).unwrap();
    fs::rename(partial_path, &unpacked_path).unwrap();
    Some(unpacked_path)
}

//! NumPy's files and safetensors: what is read and written is read again as the same tensors.
#![no_main]

use cortado::{
    Result,
    interchange::{self, Tensor},
};
use libfuzzer_sys::fuzz_target;
use std::{
    collections::HashSet,
    fmt::Debug,
    fs,
    path::{Path, PathBuf},
    process,
    sync::LazyLock,
};

/// The file that all of it goes through.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("cortado-fuzz-{}", process::id())));

fuzz_target!(|bytes: &[u8]| {
    fs::write(&*FILE, bytes).unwrap();
    survives(
        |path| interchange::read_npy(path),
        |path, tensor| interchange::write_npy(path, tensor),
    );
    survives(
        |path| interchange::read_npz(path).map(distinct),
        |path, tensors| interchange::write_npz(path, tensors),
    );
    survives(
        |path| interchange::read_safetensors(path).map(distinct),
        |path, tensors| interchange::write_safetensors(path, tensors),
    );
});

fn survives<T: PartialEq + Debug>(
    read: impl Fn(&Path) -> Result<T>,
    write: impl Fn(&Path, &T) -> Result<()>,
) {
    let Ok(value) = read(&FILE) else { return };
    write(&FILE, &value).unwrap();
    assert_eq!(read(&FILE).unwrap(), value);
}

/// One tensor of each name, since no file is written with two; in an order that does not depend on
/// the file's.
fn distinct(mut tensors: Vec<(String, Tensor)>) -> Vec<(String, Tensor)> {
    let mut seen = HashSet::new();
    tensors.retain(|(name, _)| seen.insert(name.clone()));
    tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
    tensors
}

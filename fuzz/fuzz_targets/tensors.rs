//! Fuzz target for NumPy and safetensors files. Tensors that are written and read again must stay
//! equal.
#![no_main]

use cortado::{
    Result,
    tensor_io::{self, Tensor},
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

/// Path of the input file, which differs between processes.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("cortado-fuzz-{}", process::id())));

fuzz_target!(|bytes: &[u8]| {
    fs::write(&*FILE, bytes).unwrap();
    check_round_trip(
        |path| tensor_io::read_npy(path),
        |path, tensor| tensor_io::write_npy(path, tensor),
    );
    check_round_trip(
        |path| tensor_io::read_npz(path).map(|tensors| inside_folder(distinct(tensors))),
        |path, tensors| tensor_io::write_npz(path, tensors),
    );
    check_round_trip(
        |path| tensor_io::read_safetensors(path).map(distinct),
        |path, tensors| tensor_io::write_safetensors(path, tensors),
    );
});

fn check_round_trip<T: PartialEq + Debug>(
    read: impl Fn(&Path) -> Result<T>,
    write: impl Fn(&Path, &T) -> Result<()>,
) {
    let Ok(value) = read(&FILE) else { return };
    write(&FILE, &value).unwrap();
    assert_eq!(read(&FILE).unwrap(), value);
}

/// Removes tensors whose names lead out of the folder of an extracted archive, because the writer
/// rejects them.
fn inside_folder(mut tensors: Vec<(String, Tensor)>) -> Vec<(String, Tensor)> {
    tensors.retain(|(name, _)| {
        !name.contains("..") && !name.contains(':') && !name.starts_with(['/', '\\'])
    });
    tensors
}

/// Sorts tensors by name and keeps the first tensor of each name, because writers reject
/// duplicates.
fn distinct(mut tensors: Vec<(String, Tensor)>) -> Vec<(String, Tensor)> {
    let mut seen = HashSet::new();
    tensors.retain(|(name, _)| seen.insert(name.clone()));
    tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
    tensors
}

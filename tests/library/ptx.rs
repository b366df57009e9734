//! Tests that the committed PTX matches the kernel sources. Builds without nvcc use the committed
//! PTX.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

#[path = "../../build/sources.rs"]
mod sources;

#[test]
fn committed_ptx_records_the_hashes_of_the_sources() {
    let sources = sources::read(Path::new("kernels")).unwrap();
    let record = fs::read_to_string("kernels/ptx/SOURCES").unwrap_or_default();
    assert_eq!(record, sources.record(), "kernels/ptx is out of date; run scripts/ptx");
    for path in ptx_paths(&sources, Path::new("kernels/ptx")) {
        assert!(path.is_file(), "{} is missing; run scripts/ptx", path.display());
    }
}

/// Drivers of release 450 and later load PTX 7.0.
#[test]
fn committed_ptx_states_a_version_that_old_drivers_load() {
    let sources = sources::read(Path::new("kernels")).unwrap();
    for path in ptx_paths(&sources, Path::new("kernels/ptx")) {
        let ptx = fs::read_to_string(&path).unwrap();
        let version = ptx.lines().find_map(|line| line.strip_prefix(".version "));
        assert_eq!(version, Some("7.0"), "{}; run scripts/ptx", path.display());
    }
}

/// This test runs only if `CORTADO_NVCC` names an nvcc of the release that compiled the PTX.
#[test]
fn committed_ptx_equals_the_output_of_nvcc() {
    let Some(nvcc) = env::var_os("CORTADO_NVCC") else {
        return println!("SKIPPED: CORTADO_NVCC is not set");
    };
    let version = Command::new(&nvcc).arg("--version").output().unwrap();
    if !String::from_utf8_lossy(&version.stdout).contains("release 13.0") {
        return println!("SKIPPED: CORTADO_NVCC is not the nvcc of CUDA 13.0");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ptx");
    let sources = sources::read(Path::new("kernels")).unwrap();
    let names: Vec<&str> = sources.names().collect();
    sources::compile(Path::new(&nvcc), &names, &folder).unwrap();
    for committed in ptx_paths(&sources, Path::new("kernels/ptx")) {
        let compiled_file = folder.join(committed.strip_prefix("kernels/ptx").unwrap());
        let is_equal =
            fs::read_to_string(compiled_file).unwrap() == fs::read_to_string(&committed).unwrap();
        assert!(
            is_equal,
            "{} differs from the output of nvcc; run scripts/ptx",
            committed.display()
        );
    }
}

/// Returns the paths of all PTX files in `folder`.
fn ptx_paths(sources: &sources::Sources, folder: &Path) -> Vec<PathBuf> {
    let names: Vec<&str> = sources.names().collect();
    let paths = sources::CAPABILITIES.iter().flat_map(|capability| {
        names.iter().map(|name| sources::ptx_path(folder, name, *capability))
    });
    paths.collect()
}

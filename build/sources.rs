//! Sources and compiler flags of the GPU kernels. The build script, `scripts/ptx` and the test of
//! `kernels/ptx` share this file.

use std::{collections::BTreeMap, fs, io, path::Path};

/// Flags of nvcc: PTX for any GPU of compute capability 8.0 or later.
pub(super) const FLAGS: &[&str] = &["-std=c++17", "-arch=compute_80", "--ptx"];

/// PTX version of the kernels. A driver rejects PTX of a newer version than its own. Version 7.0 came
/// with CUDA 11.0 (driver 450) and is the first version for compute capability 8.0.
const PTX_VERSION: &str = "7.0";

/// Contents of the source files, by name.
pub(super) struct Sources(BTreeMap<String, String>);

pub(super) fn read(folder: &Path) -> io::Result<Sources> {
    let mut sources = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".cu") || name.ends_with(".cuh") {
            sources.insert(name, fs::read_to_string(path)?);
        }
    }
    Ok(Sources(sources))
}

impl Sources {
    /// Returns the names of the files to compile, without `.cu`.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(|name| name.strip_suffix(".cu"))
    }

    /// Returns a record of the sources: hash and name of the flags and of each source, one per
    /// line. `kernels/ptx` contains such a record.
    pub(super) fn record(&self) -> String {
        let flags = format!("{} .version {PTX_VERSION}", FLAGS.join(" "));
        let flags = format!("{:016x} {flags}\n", hash(&flags));
        let lines = self.0.iter().map(|(name, text)| format!("{:016x} {name}\n", hash(text)));
        flags + &lines.collect::<String>()
    }
}

/// Replaces the PTX version in a file that nvcc wrote. nvcc always states the newest version that it
/// knows, whatever instructions the file contains. `.ci/cuda` assembles the files with the ptxas of
/// CUDA 11.8, which rejects instructions of later versions.
pub(super) fn lower_version(path: &Path) -> io::Result<()> {
    let ptx = fs::read_to_string(path)?;
    let lower = |line: &str| match line.strip_prefix(".version ") {
        Some(_) => format!(".version {PTX_VERSION}\n"),
        None => line.to_owned(),
    };
    fs::write(path, ptx.split_inclusive('\n').map(lower).collect::<String>())
}

/// Returns the FNV-1a hash of a text without carriage returns, which a checkout may add.
fn hash(text: &str) -> u64 {
    let bytes = text.bytes().filter(|byte| *byte != b'\r');
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

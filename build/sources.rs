//! Which sources kernels are compiled from, and how: the same for the build script, which may
//! have to do with PTX compiled before, and the test that this is up to date.

use std::{collections::BTreeMap, fs, io, path::Path};

/// How nvcc compiles: for any GPU from compute capability 8.0 on.
pub(super) const FLAGS: &[&str] = &["-std=c++17", "-arch=compute_80", "--ptx"];

/// Sources by their file names.
pub(super) struct Sources(BTreeMap<String, String>);

/// The sources in a folder.
pub(super) fn of(folder: &Path) -> io::Result<Sources> {
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
    /// The names of what is compiled by itself, without `.cu`.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter_map(|name| name.strip_suffix(".cu"))
    }

    /// What tells these sources from others: a line for each, of its hash and its name.
    pub(super) fn record(&self) -> String {
        let flags = format!("{:016x} {}\n", hash(&FLAGS.join(" ")), FLAGS.join(" "));
        let lines = self.0.iter().map(|(name, text)| format!("{:016x} {name}\n", hash(text)));
        flags + &lines.collect::<String>()
    }
}

/// FNV-1a. Line ends do not count, which a checkout may change.
fn hash(text: &str) -> u64 {
    let bytes = text.bytes().filter(|byte| *byte != b'\r');
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

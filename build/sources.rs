//! Sources and compiler flags of the GPU kernels. The build script, `scripts/ptx` and the test of
//! `kernels/ptx` share this file.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Flags of nvcc, except the one for the compute capability.
const FLAGS: &[&str] = &["-std=c++17", "--ptx"];

/// Compute capabilities, times 10, for which nvcc compiles each file, in ascending order. A GPU
/// runs the PTX of the highest capability in `CAPABILITIES` that the GPU supports.
pub(super) const CAPABILITIES: [u32; 2] = [75, 80];

/// PTX version of the kernels. A driver rejects PTX of a newer version than its own. Version 7.0
/// came with CUDA 11.0 (driver R450) and is the first version for compute capability 8.0.
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

    /// Returns a record of the sources, in lines of a hash and a text: the flags in the first line,
    /// and the name of a source in each other line. The folder `kernels/ptx` contains the record of
    /// the sources from which its files were compiled.
    pub(super) fn record(&self) -> String {
        let flags = format!("{} {CAPABILITIES:?} .version {PTX_VERSION}", FLAGS.join(" "));
        let flags = format!("{:016x} {flags}\n", hash(&flags));
        let lines = self.0.iter().map(|(name, text)| format!("{:016x} {name}\n", hash(text)));
        flags + &lines.collect::<String>()
    }
}

/// Returns the path of the PTX of the file `name` for a compute capability.
pub(super) fn ptx_path(folder: &Path, name: &str, capability: u32) -> PathBuf {
    folder.join(format!("sm_{capability}")).join(format!("{name}.ptx"))
}

/// Compiles the files of these names in parallel, for one compute capability after the other, and
/// writes the PTX to `folder`. Returns the error of the first file that does not compile.
pub(super) fn compile(nvcc: &Path, names: &[&str], folder: &Path) -> Result<(), String> {
    let error = |reason: String| format!("{}: {reason}", nvcc.display());
    for capability in CAPABILITIES {
        fs::create_dir_all(folder.join(format!("sm_{capability}")))
            .map_err(|reason| format!("{}: {reason}", folder.display()))?;
        let start = |name: &&str| -> Result<(PathBuf, Child), String> {
            let ptx = ptx_path(folder, name, capability);
            let mut command = Command::new(nvcc);
            command.args(FLAGS).arg(format!("-arch=compute_{capability}"));
            command.arg(format!("kernels/{name}.cu")).arg("-o").arg(&ptx);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            Ok((ptx, child.map_err(|reason| error(format!("cannot run: {reason}")))?))
        };
        let builds = names.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        for ((ptx, child), name) in builds.into_iter().zip(names) {
            let output = child.wait_with_output().map_err(|reason| error(reason.to_string()))?;
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                let file = format!("kernels/{name}.cu for compute capability {capability}");
                return Err(error(format!("cannot compile {file}:\n{errors}")));
            }
            lower_version(&ptx).map_err(|reason| format!("{}: {reason}", ptx.display()))?;
        }
    }
    Ok(())
}

/// Replaces the PTX version in a file that nvcc wrote. nvcc always states the newest version that
/// nvcc knows, whatever instructions the file contains. `.ci/cuda` assembles the files with the
/// ptxas of CUDA 11.8, which rejects instructions that are newer than the stated version.
fn lower_version(path: &Path) -> io::Result<()> {
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

//! Writes a table of the GPU kernels and their PTX.
//!
//! The PTX comes from `kernels/ptx`, whose record must match the sources. If the environment variable
//! `NVCC` is set, nvcc compiles every file of `kernels` instead.

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

#[path = "sources.rs"]
mod sources;

/// Writes `cuda_kernels.rs`, which `src/device/cuda/module.rs` includes.
pub(super) fn compile_kernels(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=NVCC");
    let sources = sources::read(Path::new("kernels"))?;
    let names: Vec<&str> = sources.names().collect();
    let ptx = match env::var_os("NVCC").filter(|nvcc| !nvcc.is_empty()) {
        Some(nvcc) => compile(Path::new(&nvcc), &names, out)?,
        None => committed(&sources, &names)?,
    };

    let mut modules = String::new();
    let mut table = BTreeMap::new();
    for (module, path) in ptx.iter().enumerate() {
        let path = fs::canonicalize(path)?;
        writeln!(modules, "    include_str!({path:?}),")?;
        for (name, parameters) in entries(&fs::read_to_string(&path)?) {
            let kernel = format!("module: {module}, parameters: &{parameters:?}");
            if table.insert(name.clone(), kernel).is_some() {
                return Err(format!("kernels: duplicate kernel name {name}").into());
            }
        }
    }
    let mut code = format!("static MODULES: &[&str] = &[\n{modules}];\n");
    code += "static KERNELS: &[PtxKernel] = &[\n";
    for (name, kernel) in table {
        writeln!(code, "    PtxKernel {{ name: {name:?}, {kernel} }},")?;
    }
    Ok(fs::write(out.join("cuda_kernels.rs"), code + "];\n")?)
}

/// Compiles the files of these names in parallel, and returns the paths of their PTX.
fn compile(nvcc: &Path, names: &[&str], out: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let error = |reason: String| format!("{}: {reason}", nvcc.display());
    let start = |name: &&str| -> Result<(PathBuf, Child), Box<dyn Error>> {
        let (source, ptx) = (format!("kernels/{name}.cu"), out.join(format!("{name}.ptx")));
        let mut command = Command::new(nvcc);
        command.args(sources::FLAGS).arg(source).arg("-o").arg(&ptx);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ok((ptx, child.map_err(|reason| error(format!("cannot run: {reason}")))?))
    };
    let builds = names.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let mut paths = Vec::new();
    for ((ptx, child), name) in builds.into_iter().zip(names) {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(error(format!("cannot compile kernels/{name}.cu:\n{errors}")).into());
        }
        sources::lower_version(&ptx)?;
        paths.push(ptx);
    }
    Ok(paths)
}

/// Returns the paths of the PTX in `kernels/ptx`, if its record matches the sources.
fn committed(sources: &sources::Sources, names: &[&str]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = Path::new("kernels/ptx");
    let recorded = fs::read_to_string(folder.join("SOURCES")).unwrap_or_default();
    if recorded != sources.record() {
        return Err(
            "kernels/ptx: does not match the sources in kernels; run scripts/ptx to update \
            kernels/ptx, or set NVCC to the path of nvcc"
                .into(),
        );
    }
    Ok(names.iter().map(|name| folder.join(format!("{name}.ptx"))).collect())
}

/// Returns the kernels of a PTX file, and the size in bytes of each parameter.
fn entries(ptx: &str) -> Vec<(String, Vec<usize>)> {
    let parse = |text: &str| {
        let (name, rest) = text.split_once('(')?;
        let (parameters, _) = rest.split_once(')')?;
        let bytes = parameters.split(',').filter_map(parameter_bytes).collect();
        Some((name.trim().to_owned(), bytes))
    };
    ptx.split(".entry").skip(1).filter_map(parse).collect()
}

/// Returns the size of a parameter: a number, or the array of bytes that PTX declares for a struct.
fn parameter_bytes(text: &str) -> Option<usize> {
    let text = text.trim().strip_prefix(".param")?;
    let kind = text.split_whitespace().rfind(|word| word.starts_with('.'))?;
    let bits: usize = kind.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    let length = text.split_once('[').and_then(|(_, rest)| rest.split(']').next()?.parse().ok());
    Some(bits / 8 * length.unwrap_or(1))
}

//! Writes a table of the GPU kernels and their PTX.
//!
//! The PTX comes from `kernels/ptx`, whose record must match the sources. If the environment
//! variable `NVCC` is set, nvcc compiles `kernels/*.cu` instead.

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

#[path = "sources.rs"]
mod sources;

/// Writes `cuda_kernels.rs`, which `src/device/cuda/module.rs` includes.
pub(super) fn write_kernel_table(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=NVCC");
    let sources = sources::read(Path::new("kernels"))?;
    let names: Vec<&str> = sources.names().collect();
    let folder = match env::var_os("NVCC").filter(|nvcc| !nvcc.is_empty()) {
        Some(nvcc) => {
            sources::compile(Path::new(&nvcc), &names, out)?;
            out.to_owned()
        }
        None => committed_ptx(&sources)?,
    };

    let mut modules = String::new();
    let mut table = BTreeMap::new();
    for (module, name) in names.iter().enumerate() {
        let mut texts = Vec::new();
        for capability in sources::CAPABILITIES {
            let path = fs::canonicalize(sources::ptx_path(&folder, name, capability))?;
            texts.push(format!("include_str!({path:?})"));
            for (kernel, parameters) in entries(&fs::read_to_string(&path)?) {
                // If several capabilities have PTX for a kernel, keep the lowest capability, which
                // comes first.
                let first = table.entry(kernel.clone()).or_insert((module, parameters, capability));
                if first.0 != module {
                    return Err(format!("kernels: duplicate kernel name {kernel}").into());
                }
            }
        }
        writeln!(modules, "    [{}],", texts.join(", "))?;
    }
    let capabilities = sources::CAPABILITIES;
    let count = capabilities.len();
    let mut code = format!(
        "pub(super) const CAPABILITIES: [u32; {count}] = {capabilities:?};\n\
         static MODULES: &[[&str; {count}]] = &[\n{modules}];\n\
         static KERNELS: &[PtxKernel] = &[\n"
    );
    for (name, (module, parameters, capability)) in table {
        let fields = format!("module: {module}, parameters: &{parameters:?}");
        writeln!(code, "    PtxKernel {{ name: {name:?}, capability: {capability}, {fields} }},")?;
    }
    Ok(fs::write(out.join("cuda_kernels.rs"), code + "];\n")?)
}

/// Returns the folder `kernels/ptx`, if its record matches the sources.
fn committed_ptx(sources: &sources::Sources) -> Result<PathBuf, Box<dyn Error>> {
    let folder = Path::new("kernels/ptx");
    let recorded = fs::read_to_string(folder.join("SOURCES")).unwrap_or_default();
    if recorded != sources.record() {
        return Err(
            "kernels/ptx: does not match the sources in kernels; run scripts/ptx to update \
            kernels/ptx, or set NVCC to the path of nvcc"
                .into(),
        );
    }
    Ok(folder.to_owned())
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

/// Returns the size in bytes of a parameter: a number, or the byte array that PTX declares for a
/// struct.
fn parameter_bytes(text: &str) -> Option<usize> {
    let text = text.trim().strip_prefix(".param")?;
    let kind = text.split_whitespace().rfind(|word| word.starts_with('.'))?;
    let bits: usize = kind.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    let length = text.split_once('[').and_then(|(_, rest)| rest.split(']').next()?.parse().ok());
    Some(bits / 8 * length.unwrap_or(1))
}

//! CUDA kernels: PTX of every file in `kernels`, and a table of what is in it.
//!
//! nvcc compiles them where there is one. Where there is none, PTX that was compiled before is
//! taken from `kernels/ptx`, if it is of these sources.

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
pub(super) fn kernels(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=kernels");
    println!("cargo::rerun-if-changed=build");
    for variable in ["NVCC", "CUDA_PATH", "PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let sources = sources::of(Path::new("kernels"))?;
    let names: Vec<&str> = sources.names().collect();
    let ptx = match nvcc() {
        Some(nvcc) => compile(&nvcc, &names, out)?,
        None => compiled_before(&sources, &names)?,
    };

    let mut modules = String::new();
    let mut table = BTreeMap::new();
    for (module, path) in ptx.iter().enumerate() {
        let path = fs::canonicalize(path)?;
        writeln!(modules, "    include_str!({path:?}),")?;
        for (name, parameters) in entries(&fs::read_to_string(&path)?) {
            let kernel = format!("module: {module}, parameters: &{parameters:?}");
            if table.insert(name.clone(), kernel).is_some() {
                return Err(format!("kernels: there are two kernels called {name}").into());
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

/// The compiler, if there is one: `NVCC` names it, else it is where CUDA is installed.
fn nvcc() -> Option<PathBuf> {
    if let Some(named) = env::var_os("NVCC").filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let home = env::var_os("CUDA_PATH").map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = home.into_iter().chain(env::split_paths(&path));
    let mut places = folders.chain(["/usr/local/cuda/bin".into()]).map(|at| at.join("nvcc"));
    places.find(|nvcc| nvcc.is_file())
}

/// Compiles the files of these names, all at once, and tells where their PTX is.
fn compile(nvcc: &Path, names: &[&str], out: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let failed = |why: String| format!("{} {why}", nvcc.display());
    let run = |name: &&str| -> Result<(PathBuf, Child), Box<dyn Error>> {
        let (source, ptx) = (format!("kernels/{name}.cu"), out.join(format!("{name}.ptx")));
        let mut command = Command::new(nvcc);
        command.args(sources::FLAGS).arg(source).arg("-o").arg(&ptx);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ok((ptx, child.map_err(|error| failed(format!("does not run: {error}")))?))
    };
    let running = names.iter().map(run).collect::<Result<Vec<_>, _>>()?;
    let mut done = Vec::new();
    for ((ptx, child), name) in running.into_iter().zip(names) {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(failed(format!("does not compile kernels/{name}.cu:\n{said}")).into());
        }
        done.push(ptx);
    }
    Ok(done)
}

/// PTX that was compiled before, if it is of these sources.
fn compiled_before(
    sources: &sources::Sources,
    names: &[&str],
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = Path::new("kernels/ptx");
    let recorded = fs::read_to_string(folder.join("SOURCES")).unwrap_or_default();
    if recorded != sources.record() {
        return Err(
            "kernels/ptx is not of the sources in kernels: there has to be nvcc (13.0) to \
            compile them, named by $NVCC, or in $CUDA_PATH/bin, $PATH or /usr/local/cuda/bin; \
            scripts/ptx then brings kernels/ptx up to date"
                .into(),
        );
    }
    Ok(names.iter().map(|name| folder.join(format!("{name}.ptx"))).collect())
}

/// The kernels in a file of PTX, and the bytes of each of their parameters.
fn entries(ptx: &str) -> Vec<(String, Vec<usize>)> {
    let of = |text: &str| {
        let (name, rest) = text.split_once('(')?;
        let (parameters, _) = rest.split_once(')')?;
        let bytes = parameters.split(',').filter_map(parameter).collect();
        Some((name.trim().to_owned(), bytes))
    };
    ptx.split(".entry").skip(1).filter_map(of).collect()
}

/// Bytes of a parameter: of its type, or of the array that stands for a structure.
fn parameter(text: &str) -> Option<usize> {
    let text = text.trim().strip_prefix(".param")?;
    let kind = text.split_whitespace().rfind(|word| word.starts_with('.'))?;
    let bits: usize = kind.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    let length = text.split_once('[').and_then(|(_, rest)| rest.split(']').next()?.parse().ok());
    Some(bits / 8 * length.unwrap_or(1))
}

//! Build of the simulated CUDA driver, for tests without a GPU. The simulated driver contains
//! functions of NVIDIA's driver API, and executes either the kernels of `kernels/*.cu`, which g++
//! compiles for the CPU, or the PTX of the loaded modules. The README in this folder describes the
//! simulated driver.

use std::{
    collections::hash_map::DefaultHasher,
    env,
    fs::{self, File},
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

/// Flags for g++ that forbid contraction to FMA and add line numbers for debugging.
const FLAGS: &[&str] =
    &["-std=c++17", "-O1", "-g1", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w"];

/// Returns whether the test driver executes PTX, as `CORTADO_PTX_MACHINE=1` demands.
pub(crate) fn executes_ptx() -> bool {
    env::var_os("CORTADO_PTX_MACHINE").is_some_and(|value| value == "1")
}

/// Returns the path of the test driver, which is built from the current sources if necessary. The
/// driver's folder also contains the test libraries of cuBLAS and cuBLASLt. Returns `None` if g++
/// is missing.
pub(crate) fn library() -> Option<PathBuf> {
    Command::new("g++").arg("--version").output().ok()?;
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda_on_cpu");
    fs::create_dir_all(&out).unwrap();
    // One test process builds the driver while the other processes wait.
    let lock = File::create(out.join("lock")).unwrap();
    lock.lock().unwrap();

    let (folder, sources) = (root().join("tests/cuda_on_cpu"), root().join("kernels"));
    let folder = folder.as_path();
    let execution = folder.join(if executes_ptx() { "ptx" } else { "compiled" });
    let headers = [
        files(folder, "h"),
        files(&execution, "h"),
        files(folder.join("cublas"), "h"),
        files(folder.join("include"), "h"),
        files(&sources, "cuh"),
    ];
    let headers = digest(headers.concat().iter());
    let cublas = object(&folder.join("cublas/cublas.cc"), false, headers, &out);
    let cublas_lt = object(&folder.join("cublas/cublas_lt.cc"), false, headers, &out);
    let mut objects: Vec<PathBuf> = std::thread::scope(|scope| {
        let driver = files(folder, "cc").into_iter().chain(files(execution, "cc"));
        let driver = driver.map(|source| (source, false));
        let kernels = if executes_ptx() { Vec::new() } else { files(&sources, "cu") };
        let kernels = kernels.into_iter().map(|source| (source, true));
        let out = &out;
        let build = |(source, has_kernels): (PathBuf, bool)| {
            scope.spawn(move || object(&source, has_kernels, headers, out))
        };
        let builds: Vec<_> = driver.chain(kernels).map(build).collect();
        builds.into_iter().map(|build| build.join().unwrap()).collect()
    });
    if executes_ptx() {
        objects.push(ptx_machine(&out));
    }
    let folder = out.join(format!("{:016x}", digest(objects.iter().chain([&cublas, &cublas_lt]))));
    fs::create_dir_all(&folder).unwrap();
    let driver = link(&objects, folder.join("libcuda.so.1"));
    link(&[cublas, driver.clone()], folder.join("libcublas.so"));
    link(&[cublas_lt, driver.clone()], folder.join("libcublasLt.so"));
    Some(driver)
}

/// Returns the root of the repository. The tests of the command `cortado` run in a folder below the
/// repository's root.
fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders
        .find(|folder| folder.join("kernels").is_dir())
        .expect("repository root: no folder `kernels`")
}

/// Links object files into a shared library unless the library already exists.
fn link(objects: &[PathBuf], library: PathBuf) -> PathBuf {
    if !library.exists() {
        let temporary_file = library.with_extension("unfinished");
        let mut command = Command::new("g++");
        command.args(sanitizer()).arg("-shared").args(objects).arg("-o").arg(&temporary_file);
        // Do not export Rust functions from the simulated driver, because they could replace
        // functions of the test program.
        command.args(["-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-lpthread", "-ldl", "-lm"]);
        run(command);
        fs::rename(temporary_file, &library).unwrap();
    }
    library
}

/// Compiles the PTX machine for the processor of this computer (`target-cpu=native`), and returns
/// the path of the static library.
fn ptx_machine(out: &Path) -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--offline", "--manifest-path"]);
    command.arg(root().join("tests/ptx_machine/Cargo.toml"));
    command.arg("--target-dir").arg(out.join("ptx_machine"));
    command.env("RUSTFLAGS", "-Ctarget-cpu=native").env_remove("CARGO_ENCODED_RUSTFLAGS");
    run(command);
    out.join("ptx_machine/release/libptx_machine.a")
}

/// Returns the compiler flag of the address sanitizer if `CORTADO_CUDA_ASAN` is set.
fn sanitizer() -> Option<&'static str> {
    env::var_os("CORTADO_CUDA_ASAN").map(|_| "-fsanitize=address")
}

/// Compiles one C++ or kernel source file unless its object file exists. The name of the object
/// file contains a hash of the source, the headers and the flags. `has_kernels` states whether the
/// source contains kernels.
fn object(source: &Path, has_kernels: bool, headers: u64, out: &Path) -> PathBuf {
    let stem = source.file_stem().unwrap().to_string_lossy();
    let mut hasher = DefaultHasher::new();
    (headers, digest([source.to_owned()].iter()), FLAGS, sanitizer()).hash(&mut hasher);
    let base = format!("{stem}-{:016x}", hasher.finish());
    let object = out.join(format!("{base}.o"));
    if object.exists() {
        return object;
    }
    let source = fs::canonicalize(source).unwrap();
    let mut compile = compiler();
    compile.args(FLAGS).args(sanitizer());
    if has_kernels {
        let registration_file = out.join(format!("{base}.cc"));
        fs::write(&registration_file, registrations(&source)).unwrap();
        compile.arg("-include").arg("builtins.h").arg("-c").arg(registration_file);
    } else {
        compile.arg("-c").arg(source);
    }
    // The compiler writes to a temporary name, so that an interrupted build leaves no incomplete
    // object file.
    let temporary_file = out.join(format!("{base}.unfinished"));
    compile.arg("-o").arg(&temporary_file);
    run(compile);
    fs::rename(temporary_file, &object).unwrap();
    object
}

fn compiler() -> Command {
    let mut command = Command::new("g++");
    command.arg("-I").arg(root().join("tests/cuda_on_cpu/include"));
    command.arg("-I").arg(root().join("kernels"));
    command
}

/// Returns C++ code that includes a kernel source and registers each of its kernels.
fn registrations(source: &Path) -> String {
    let mut listing = compiler();
    listing.args(["-std=c++17", "-E", "-P", "-DCUDA_ON_CPU_LISTING", "-x", "c++"]);
    listing.args(["-include", "builtins.h"]).arg(source);
    let text = run(listing);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");

    let mut code = format!("#include {source:?}\n#include \"registry.h\"\n");
    for rest in text.split("extern \"C\" __global__ void ").skip(1) {
        let (name, _) = rest.split_once('(').expect("a kernel must have a parameter list");
        let name = name.trim();
        code +=
            &format!("static cuda_on_cpu::Registration<{name}> {name}_registration(\"{name}\");\n");
    }
    code
}

/// Runs a command and returns the command's standard output. Panics with the command's error output
/// if the command fails.
fn run(mut command: Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the files in a folder with the extension `extension`, sorted by name.
fn files(folder: impl AsRef<Path>, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

fn digest<'a>(files: impl Iterator<Item = &'a PathBuf>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        (file, fs::read(file).unwrap()).hash(&mut hasher);
    }
    hasher.finish()
}

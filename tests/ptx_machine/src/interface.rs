//! C interface for the simulated driver in `tests/cuda_on_cpu`.
//!
//! The driver calls these functions one at a time. The environment variable `PTX_MACHINE_SEED` sets
//! the seed of the random orders, and `PTX_MACHINE_PRECISION=least` selects the least precise
//! results that the ISA allows. `PTX_MACHINE_KERNELS` names a folder of PTX files, such as
//! `sm_80/unary.ptx`, that replace the committed files of the same name. `PTX_MACHINE_LOG` names a
//! file, to which each launch appends a line: the kernel, the numbers of blocks and threads, the
//! number of instructions that warps ran, and the time in microseconds. `PTX_MACHINE_COUNTERS`
//! names a file, to which each launch appends a line: the kernel, the numbers of blocks and
//! threads, and the counters.
#![allow(unsafe_code)]

use crate::{Kernel, Launch, Machine, Module, Precision};
use std::{
    collections::HashMap,
    env,
    ffi::{CStr, c_char, c_int, c_void},
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    ptr, slice,
    sync::{LazyLock, Mutex, MutexGuard},
    time::Instant,
};

/// The state of the interface. Loaded modules and kernels stay in memory until the process ends.
struct State {
    machine: Machine,
    /// Loaded modules, keyed by the text that the driver passed.
    modules: HashMap<String, LoadedModule>,
    /// Names of the committed PTX files, keyed by the text of the file.
    files: HashMap<String, String>,
    log: Option<File>,
    counters: Option<File>,
    precision: Precision,
}

struct LoadedModule {
    module: Result<Module, String>,
    kernels: HashMap<String, Option<&'static Kernel>>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| {
    let seed = env::var("PTX_MACHINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let machine = Machine::new(seed);
    let open = |variable| {
        env::var_os(variable).map(|path| {
            let log = OpenOptions::new().create(true).append(true).open(&path);
            log.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
    };
    let (log, counters) = (open("PTX_MACHINE_LOG"), open("PTX_MACHINE_COUNTERS"));
    let least = env::var_os("PTX_MACHINE_PRECISION").is_some_and(|value| value == "least");
    let precision = if least { Precision::Least } else { Precision::Best };
    let (modules, files) = (HashMap::new(), committed_files());
    Mutex::new(State { machine, modules, files, log, counters, precision })
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the names of the committed PTX files, such as `kernels/ptx/sm_80/unary.ptx`, by text.
fn committed_files() -> HashMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = HashMap::new();
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    for folder in entries(root.join("kernels/ptx")).filter(|entry| entry.path().is_dir()) {
        for file in entries(folder.path()) {
            if let Ok(text) = fs::read_to_string(file.path()) {
                let (folder, file) = (folder.file_name(), file.file_name());
                let name = format!("{}/{}", folder.to_string_lossy(), file.to_string_lossy());
                files.insert(text, name);
            }
        }
    }
    files
}

/// Parses a module that the driver has loaded.
fn load(text: &str, files: &HashMap<String, String>) -> Result<Module, String> {
    let Some(name) = files.get(text) else { return Module::new("PTX of a module", text) };
    let replacement =
        env::var_os("PTX_MACHINE_KERNELS").map(|folder| Path::new(&folder).join(name));
    match replacement.filter(|path| path.exists()) {
        Some(path) => {
            let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
            Module::new(&path.to_string_lossy(), &text)
        }
        None => Module::new(&format!("kernels/ptx/{name}"), text),
    }
}

/// Returns the kernel `name` of the module with the text `ptx`, or null, after a message, if the
/// machine cannot run the kernel.
///
/// # Safety
/// Both arguments must be strings that end in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptx_machine_kernel(
    ptx: *const c_char,
    name: *const c_char,
) -> *const c_void {
    // SAFETY: promised by the caller.
    let (ptx, name) = unsafe { (CStr::from_ptr(ptx), CStr::from_ptr(name)) };
    let (ptx, name) = (ptx.to_string_lossy(), name.to_string_lossy());
    let State { modules, files, precision, .. } = &mut *state();
    if !modules.contains_key(&*ptx) {
        let module = load(&ptx, files);
        modules.insert(ptx.to_string(), LoadedModule { module, kernels: HashMap::new() });
    }
    let loaded = modules.get_mut(&*ptx).expect("inserted above");
    let kernel = *loaded.kernels.entry(name.to_string()).or_insert_with(|| {
        let kernel = loaded.module.as_ref().map_err(Clone::clone);
        match kernel.and_then(|module| module.kernel(&name, *precision)) {
            Ok(kernel) => Some(Box::leak(Box::new(kernel))),
            Err(error) => {
                eprintln!("PTX machine: {error}");
                None
            }
        }
    });
    kernel.map_or(ptr::null(), |kernel| ptr::from_ref(kernel).cast())
}

/// Writes the sizes in bytes of at most `capacity` parameters of a kernel to `bytes`, and returns
/// the number of parameters.
///
/// # Safety
/// The kernel must come from [`ptx_machine_kernel`], and `bytes` must have room for `capacity`
/// values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptx_machine_parameters(
    kernel: *const c_void,
    bytes: *mut usize,
    capacity: usize,
) -> usize {
    // SAFETY: promised by the caller; kernels are never freed.
    let kernel = unsafe { &*kernel.cast::<Kernel>() };
    for (i, size) in kernel.parameter_sizes().enumerate().take(capacity) {
        // SAFETY: `i` is less than `capacity`.
        unsafe { bytes.add(i).write(size) };
    }
    kernel.parameter_sizes().count()
}

/// Appends a line to a log.
fn write(log: &mut File, line: &str) {
    if let Err(error) = log.write_all(line.as_bytes()) {
        eprintln!("PTX machine: {error}");
    }
}

/// Runs a kernel. Returns false, and writes a description that ends in a zero byte to `error`, if a
/// thread has a fault.
///
/// # Safety
/// The kernel must come from [`ptx_machine_kernel`]. `blocks` and `threads` must point to three
/// numbers, `arguments` to the address of each parameter's value, and `error` to `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptx_machine_launch(
    kernel: *const c_void,
    card: c_int,
    blocks: *const [u32; 3],
    threads: *const [u32; 3],
    arguments: *const *const u8,
    error: *mut c_char,
    error_bytes: usize,
) -> bool {
    // SAFETY: promised by the caller.
    let (kernel, grid, threads) = unsafe { (&*kernel.cast::<Kernel>(), *blocks, *threads) };
    let mut values = Vec::new();
    for (i, bytes) in kernel.parameter_sizes().enumerate() {
        // SAFETY: promised by the caller.
        values.push(unsafe { slice::from_raw_parts(*arguments.add(i), bytes) });
    }
    let launch = Launch { card: card as u32, grid, threads, arguments: &values };
    let State { machine, log, counters, .. } = &mut *state();
    let (start, count) = (Instant::now(), machine.instructions);
    let result = match counters {
        Some(file) => machine.launch_counted(kernel, &launch).map(|counters| {
            let [blocks, threads] = [grid, threads].map(|[x, y, z]| format!("{x}x{y}x{z}"));
            write(file, &format!("{}\t{blocks}\t{threads}\t{counters}\n", kernel.name()));
        }),
        None => machine.launch(kernel, &launch),
    };
    if let Some(log) = log {
        let (count, micros) = (machine.instructions - count, start.elapsed().as_micros());
        let name = kernel.name();
        write(log, &format!("{name} {grid:?} {threads:?} {count} {micros}\n"));
    }
    let Err(problem) = result else { return true };
    let bytes = problem.as_bytes();
    let count = bytes.len().min(error_bytes.saturating_sub(1));
    // SAFETY: `error` has room for `count` bytes and the zero byte.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), error.cast(), count);
        error.add(count).write(0);
    }
    false
}

/// Lets the kernels of a GPU access a block of memory, or those of all GPUs if `card` is negative.
///
/// # Safety
/// The memory must be accessible until [`ptx_machine_memory_removed`] is called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptx_machine_memory_added(start: u64, bytes: usize, card: c_int) {
    // SAFETY: promised by the caller. The driver accesses the memory only while no kernel runs.
    unsafe { state().machine.memory.add(start, bytes as u64, u32::try_from(card).ok()) };
}

/// Forbids access to the block of memory at `start`.
#[unsafe(no_mangle)]
pub extern "C" fn ptx_machine_memory_removed(start: u64) {
    state().machine.memory.remove(start);
}

/// Marks bytes as written by the driver.
#[unsafe(no_mangle)]
pub extern "C" fn ptx_machine_memory_written(start: u64, bytes: usize) {
    state().machine.memory.mark_written(start, bytes as u64);
}

/// Marks bytes as copied by the driver.
#[unsafe(no_mangle)]
pub extern "C" fn ptx_machine_memory_copied(to: u64, from: u64, bytes: usize) {
    state().machine.memory.mark_copied(to, from, bytes as u64);
}

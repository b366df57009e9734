//! The CUDA driver's library, opened at run time.

use crate::error::BoxError;
use libloading::Library;
use std::{
    env,
    ffi::OsString,
    os::raw::c_uint,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// The result code `CUDA_ERROR_NO_DEVICE`.
pub(super) const NO_DEVICE: c_uint = 100;

/// Paths of the driver library that are tried if `CORTADO_LIBCUDA` is not set.
const DEFAULT_PATHS: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    &[
        "libcuda.so.1",
        "libcuda.so",
        "/usr/local/nvidia/lib64/libcuda.so.1",
        "/usr/lib/wsl/lib/libcuda.so.1",
    ]
};

/// The driver library, open until the process ends.
struct Driver {
    library: Library,
    /// The path that the caller or `CORTADO_LIBCUDA` requested; `None` for a default path.
    requested_path: Option<PathBuf>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

/// Opens the driver library at `path`, else at the path in `CORTADO_LIBCUDA`, else at a default
/// path. A process opens only one driver library.
///
/// # Errors
/// Fails if no library can be opened, or if a library at a path other than `path` is already open.
pub(crate) fn open(path: Option<&Path>) -> Result<(), BoxError> {
    let path = path.map(Path::to_owned).or_else(|| env::var_os(LIBCUDA_ENV).map(PathBuf::from));
    if DRIVER.get().is_none() {
        let library = match &path {
            Some(path) => load(path.into())?,
            None => open_first(DEFAULT_PATHS)?,
        };
        // If another thread has opened a library in the meantime, this thread uses that library.
        let _ = DRIVER.set(Driver { library, requested_path: path.clone() });
    }
    let open = DRIVER.get().and_then(|driver| driver.requested_path.as_deref());
    match path {
        Some(path) if open != Some(&path) => {
            let open = open.map_or("the default driver".into(), |open| open.display().to_string());
            Err(format!("{}: cannot open a second driver; {open} is in use", path.display()).into())
        }
        _ => Ok(()),
    }
}

/// Environment variable with the path of the driver library.
const LIBCUDA_ENV: &str = "CORTADO_LIBCUDA";

fn load(name: OsString) -> Result<Library, BoxError> {
    // SAFETY: the driver library's initialization has no preconditions.
    Ok(unsafe { Library::new(name) }?)
}

fn open_first(paths: &[&str]) -> Result<Library, BoxError> {
    let mut reason = String::new();
    for path in paths {
        match load(path.into()) {
            Ok(library) => return Ok(library),
            Err(error) if reason.is_empty() => reason = error.to_string(),
            Err(_) => {}
        }
    }
    Err(format!(
        "NVIDIA driver not found: cannot open any of {} ({reason}); set {LIBCUDA_ENV} to its path",
        paths.join(", "),
    )
    .into())
}

/// Returns the driver library, which the first call opens. Fails with [`NO_DEVICE`] if the library
/// cannot be opened.
pub(super) fn library() -> Result<&'static Library, c_uint> {
    if DRIVER.get().is_none() {
        let _ = open(None);
    }
    DRIVER.get().map(|driver| &driver.library).ok_or(NO_DEVICE)
}

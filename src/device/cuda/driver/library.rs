//! Opens the driver's library.

use crate::error::BoxError;
use libloading::Library;
use std::{
    env,
    ffi::OsString,
    os::raw::c_uint,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// `CUDA_ERROR_NO_DEVICE`
pub(super) const NO_DEVICE: c_uint = 100;

/// Where the library is looked for if `CORTADO_LIBCUDA` does not say where it is.
const PLACES: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    &[
        "libcuda.so.1",
        "libcuda.so",
        "/usr/local/nvidia/lib64/libcuda.so.1",
        "/usr/lib/wsl/lib/libcuda.so.1",
    ]
};

/// The driver and where it came from. It stays for as long as the process.
struct Driver {
    library: Library,
    asked: Option<PathBuf>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

/// Opens the driver, from `path` if that is given. A process has one driver.
///
/// # Errors
/// If there is none, or another one than `path` is open.
pub(crate) fn open(path: Option<&Path>) -> Result<(), BoxError> {
    let path = path.map(Path::to_owned).or_else(|| env::var_os(LIBCUDA_ENV).map(PathBuf::from));
    if DRIVER.get().is_none() {
        let library = match &path {
            Some(path) => load(path.into())?,
            None => first_of(PLACES)?,
        };
        // Whoever is second finds the first one's.
        let _ = DRIVER.set(Driver { library, asked: path.clone() });
    }
    let open = DRIVER.get().and_then(|driver| driver.asked.as_deref());
    match path {
        Some(path) if open != Some(&path) => {
            let open = open.map_or("the system's".into(), |open| open.display().to_string());
            Err(format!("{}: the driver in use is {open}", path.display()).into())
        }
        _ => Ok(()),
    }
}

/// Names the driver's library.
const LIBCUDA_ENV: &str = "CORTADO_LIBCUDA";

fn load(name: OsString) -> Result<Library, BoxError> {
    // SAFETY: a driver's initialisation may run at any time.
    Ok(unsafe { Library::new(name) }?)
}

fn first_of(places: &[&str]) -> Result<Library, BoxError> {
    let mut why = String::new();
    for place in places {
        match load(place.into()) {
            Ok(library) => return Ok(library),
            Err(error) if why.is_empty() => why = error.to_string(),
            Err(_) => {}
        }
    }
    Err(format!(
        "no NVIDIA driver: none of {} opens ({why}); {LIBCUDA_ENV} may say where it is",
        places.join(", "),
    )
    .into())
}

/// The open library, or the default one; the code of "no device" without any.
pub(super) fn library() -> Result<&'static Library, c_uint> {
    if DRIVER.get().is_none() {
        let _ = open(None);
    }
    DRIVER.get().map(|driver| &driver.library).ok_or(NO_DEVICE)
}

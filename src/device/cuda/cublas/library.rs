//! The cuBLAS library, loaded at run time, and its status codes.

use crate::error::BoxError;
use std::{
    env,
    ffi::{c_int, c_longlong, c_void},
    mem::{self, ManuallyDrop},
    path::{Path, PathBuf},
};

/// File names of cuBLAS, newest version first.
const FILE_NAMES: &[&str] = if cfg!(windows) {
    &["cublas64_13.dll", "cublas64_12.dll"]
} else {
    &["libcublas.so.13", "libcublas.so.12", "libcublas.so"]
};

/// Folder that is searched for cuBLAS after the loader's search path.
const DEFAULT_FOLDER: &str = "/usr/local/cuda/lib64";

/// Environment variable with the path of the cuBLAS library or of the library's folder.
const CUBLAS_ENV: &str = "CORTADO_CUBLAS";

/// First major version of cuBLAS whose functions have the signatures that this file declares.
const MIN_VERSION: c_int = 11;

/// The cuBLAS handle type `cublasHandle_t`.
pub(super) type RawHandle = *mut c_void;

/// Declares the cuBLAS functions that the crate calls; each function returns a status.
macro_rules! functions {
    ($(fn $name:ident = $symbol:literal($($kind:ty),* $(,)?);)*) => {
        /// The functions of the cuBLAS library, which stays loaded until the process ends.
        pub(crate) struct Library {
            $(pub(super) $name: unsafe extern "C" fn($($kind),*) -> c_int,)*
        }

        impl Library {
            fn of(library: libloading::Library) -> Result<Self, libloading::Error> {
                // The library is never unloaded, because cuBLAS leaves threads and handlers in the
                // process.
                let library = ManuallyDrop::new(library);
                // SAFETY: cuBLAS has exported functions with the declared names and signatures
                // since `MIN_VERSION`.
                Ok(unsafe { Self { $($name: *library.get($symbol)?,)* } })
            }
        }
    };
}

functions! {
    fn property = b"cublasGetProperty\0"(c_int, *mut c_int);
    fn create = b"cublasCreate_v2\0"(*mut RawHandle);
    fn destroy = b"cublasDestroy_v2\0"(RawHandle);
    fn set_stream = b"cublasSetStream_v2\0"(RawHandle, *mut c_void);
    fn set_workspace = b"cublasSetWorkspace_v2\0"(RawHandle, *mut c_void, usize);
    fn set_math_mode = b"cublasSetMathMode\0"(RawHandle, c_int);
    fn gemm = b"cublasGemmEx\0"(
        RawHandle, c_int, c_int, c_int, c_int, c_int, *const c_void,
        *const c_void, c_int, c_int, *const c_void, c_int, c_int, *const c_void,
        *mut c_void, c_int, c_int, c_int, c_int,
    );
    fn gemm_batched = b"cublasGemmStridedBatchedEx\0"(
        RawHandle, c_int, c_int, c_int, c_int, c_int, *const c_void,
        *const c_void, c_int, c_int, c_longlong, *const c_void, c_int, c_int, c_longlong,
        *const c_void, *mut c_void, c_int, c_int, c_longlong, c_int, c_int, c_int,
    );
}

impl Library {
    /// Opens the cuBLAS library at `path`, which names a file or a folder. Without `path`, uses the
    /// path in `CORTADO_CUBLAS`. If neither `path` nor `CORTADO_CUBLAS` is given, searches the
    /// loader's search path and then `DEFAULT_FOLDER`.
    ///
    /// # Errors
    /// Fails if no library can be opened (the error lists the paths tried), or if the library is
    /// too old.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, BoxError> {
        let path = path.map(Path::to_owned).or_else(|| env::var_os(CUBLAS_ENV).map(PathBuf::from));
        let paths_in = |folder: &Path| FILE_NAMES.iter().map(|name| folder.join(name)).collect();
        let paths: Vec<PathBuf> = match path {
            Some(folder) if folder.is_dir() => paths_in(&folder),
            Some(file) => vec![file],
            None => [paths_in(Path::new("")), paths_in(Path::new(DEFAULT_FOLDER))].concat(),
        };
        let mut reason = String::new();
        for path in &paths {
            match load(path) {
                Ok(library) => {
                    let checked_library =
                        Self::of(library).map_err(BoxError::from).and_then(Self::check_version);
                    return checked_library
                        .map_err(|reason| format!("{}: {reason}", path.display()).into());
                }
                Err(error) if reason.is_empty() => reason = error.to_string(),
                Err(_) => {}
            }
        }
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let paths = paths.join(", ");
        Err(format!(
            "cuBLAS not found: cannot open any of {paths} ({reason}); set {CUBLAS_ENV} to its path"
        )
        .into())
    }

    fn check_version(self) -> Result<Self, BoxError> {
        match self.version()? {
            [major, ..] if major < MIN_VERSION => {
                Err(format!("cuBLAS {major} is too old; {MIN_VERSION} or later is needed").into())
            }
            _ => Ok(self),
        }
    }

    pub(super) fn version(&self) -> Result<[c_int; 3], String> {
        let mut version = [0; 3];
        for (which, part) in (0..).zip(&mut version) {
            // SAFETY: `part` is valid for writing a `c_int`.
            check_status("cublasGetProperty", unsafe { (self.property)(which, part) })?;
        }
        Ok(version)
    }
}

/// Opens cuBLAS at `path`. First opens cuBLASLt, on which cuBLAS depends, if the folder of `path`
/// contains cuBLASLt.
fn load(path: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the initialization of cuBLAS has no preconditions.
    let open = |path: &Path| unsafe { libloading::Library::new(path) };
    if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
        let dependency = name.to_string_lossy().replacen("cublas", "cublasLt", 1);
        if folder != Path::new("") && folder.join(&dependency).exists() {
            mem::forget(open(&folder.join(dependency))?);
        }
    }
    open(path)
}

/// Converts the status of the cuBLAS function `call` to a `Result`.
pub(super) fn check_status(call: &str, status: c_int) -> Result<(), String> {
    let name = match status {
        0 => return Ok(()),
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        16 => "CUBLAS_STATUS_LICENSE_ERROR",
        _ => "unknown status",
    };
    Err(format!("{call}: {name} ({status})"))
}

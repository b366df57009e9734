//! The library, found at run time: its functions, and what they answer.

use crate::error::BoxError;
use std::{
    env,
    ffi::{c_int, c_longlong, c_void},
    mem::{self, ManuallyDrop},
    path::{Path, PathBuf},
};

/// Its file, the newest first.
const NAMES: &[&str] = if cfg!(windows) {
    &["cublas64_13.dll", "cublas64_12.dll"]
} else {
    &["libcublas.so.13", "libcublas.so.12", "libcublas.so"]
};

/// Where else than in the loader's places it is looked for.
const FOLDER: &str = "/usr/local/cuda/lib64";

/// Names the library, or the folder that it is in.
const CUBLAS_ENV: &str = "CORTADO_CUBLAS";

/// The oldest whose functions are as they are declared here: CUDA 11's.
const OLDEST: c_int = 11;

/// `cublasHandle_t`
pub(super) type RawHandle = *mut c_void;

/// Declares the functions that are called; each answers with a status.
macro_rules! functions {
    ($(fn $name:ident = $symbol:literal($($kind:ty),* $(,)?);)*) => {
        /// cuBLAS. It stays for as long as the process.
        pub(crate) struct Library {
            $(pub(super) $name: unsafe extern "C" fn($($kind),*) -> c_int,)*
        }

        impl Library {
            /// Those of a library that is open.
            fn of(library: libloading::Library) -> Result<Self, libloading::Error> {
                // What it leaves behind in a process does not outlive it.
                let library = ManuallyDrop::new(library);
                // SAFETY: the library's functions of these names have these types.
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
    /// Opens the library at `path`, or in it; without one, where `CORTADO_CUBLAS` says; else where
    /// libraries are.
    ///
    /// # Errors
    /// If there is none, with the places; or if it is too old.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, BoxError> {
        let path = path.map(Path::to_owned).or_else(|| env::var_os(CUBLAS_ENV).map(PathBuf::from));
        let inside = |folder: &Path| NAMES.iter().map(|name| folder.join(name)).collect();
        let places: Vec<PathBuf> = match path {
            Some(folder) if folder.is_dir() => inside(&folder),
            Some(file) => vec![file],
            None => [inside(Path::new("")), inside(Path::new(FOLDER))].concat(),
        };
        let mut why = String::new();
        for place in &places {
            match load(place) {
                Ok(library) => {
                    let opened = Self::of(library).map_err(BoxError::from).and_then(Self::checked);
                    return opened.map_err(|why| format!("{}: {why}", place.display()).into());
                }
                Err(error) if why.is_empty() => why = error.to_string(),
                Err(_) => {}
            }
        }
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        let places = places.join(", ");
        Err(format!("no cuBLAS: none of {places} opens ({why}); {CUBLAS_ENV} may say where it is")
            .into())
    }

    fn checked(self) -> Result<Self, BoxError> {
        match self.version()? {
            [major, ..] if major < OLDEST => {
                Err(format!("cuBLAS {major} is too old: it has to be {OLDEST} or later").into())
            }
            _ => Ok(self),
        }
    }

    /// Its major and minor version, and the patch.
    pub(super) fn version(&self) -> Result<[c_int; 3], String> {
        let mut version = [0; 3];
        for (which, part) in (0..).zip(&mut version) {
            // SAFETY: there is room for the number.
            check_status("cublasGetProperty", unsafe { (self.property)(which, part) })?;
        }
        Ok(version)
    }
}

/// Opens a file; what it needs is opened before it if that is beside it.
fn load(place: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: a library's initialisation may run at any time.
    let open = |place: &Path| unsafe { libloading::Library::new(place) };
    if let (Some(folder), Some(name)) = (place.parent(), place.file_name()) {
        let lower = name.to_string_lossy().replacen("cublas", "cublasLt", 1);
        if folder != Path::new("") && folder.join(&lower).exists() {
            mem::forget(open(&folder.join(lower))?);
        }
    }
    open(place)
}

/// What the function `call` answered.
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
        _ => "a status that is not known",
    };
    Err(format!("{call}: {name} ({status})"))
}

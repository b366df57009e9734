//! Functions, status codes and constants that NVIDIA's cuBLAS and cuBLASLt have in common.

use crate::{element::DType, op::Transpose};
use std::ffi::c_int;

/// Declares the library functions that the crate calls; each of them returns a status.
macro_rules! library {
    (
        $files:expr, $min_version:expr;
        $(fn $name:ident = $symbol:literal($($kind:ty),* $(,)?);)*
    ) => {
        /// The functions of the library, which stays loaded until the process ends.
        pub(in crate::device::cuda) struct Library {
            $(pub(super) $name: unsafe extern "C" fn($($kind),*) -> c_int,)*
        }

        impl Library {
            /// Opens the library at `path` or at a default path, as
            /// [`LibraryFiles::open`](super::super::files::LibraryFiles::open) describes.
            ///
            /// # Errors
            /// Fails if no library can be opened, or if the library is too old.
            pub(in crate::device::cuda) fn open(path: Option<&Path>) -> Result<Self, BoxError> {
                let (library, path) = $files.open(path)?;
                // The library is never unloaded, because NVIDIA's libraries leave threads and
                // handlers in the process.
                let library = ManuallyDrop::new(library);
                let load = || -> Result<Self, BoxError> {
                    // SAFETY: the library has exported functions with the declared names and
                    // signatures since the version `$min_version`.
                    let library = unsafe { Self { $($name: *library.get($symbol)?,)* } };
                    match library.version()? {
                        [major, ..] if major < $min_version => Err(format!(
                            "{} {major} is too old; {} or later is needed",
                            $files.name, $min_version
                        )
                        .into()),
                        _ => Ok(library),
                    }
                };
                load().map_err(|reason| format!("{}: {reason}", path.display()).into())
            }

            /// Returns the version: major, minor and patch.
            pub(super) fn version(&self) -> Result<[c_int; 3], String> {
                let mut version = [0; 3];
                for (which, part) in (0..).zip(&mut version) {
                    // SAFETY: `part` is valid for writing a `c_int`.
                    check_status("cublasGetProperty", unsafe { (self.property)(which, part) })?;
                }
                Ok(version)
            }
        }
    };
}
pub(super) use library;

/// Size in bytes of the workspace of a queue: enough for the fastest algorithms on the newest GPUs.
pub(super) const WORKSPACE: usize = 32 << 20;

/// The status `CUBLAS_STATUS_NOT_SUPPORTED`.
pub(super) const NOT_SUPPORTED: c_int = 15;

/// Converts the status of the library function `call` to a `Result`.
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
        NOT_SUPPORTED => "CUBLAS_STATUS_NOT_SUPPORTED",
        16 => "CUBLAS_STATUS_LICENSE_ERROR",
        _ => "unknown status",
    };
    Err(format!("{call}: {name} ({status})"))
}

/// Returns the `cublasOperation_t` of an operand.
pub(super) fn operation(trans: Transpose) -> c_int {
    match trans {
        Transpose::No => 0,
        Transpose::Yes => 1,
    }
}

/// The compute type `CUBLAS_COMPUTE_32F`: products and sums in `f32`.
pub(super) const COMPUTE_32F: c_int = 68;

/// Returns the `cudaDataType` of an element type and the `cublasComputeType_t` of sums of such
/// elements.
pub(super) fn cuda_types(element: DType) -> (c_int, c_int) {
    const COMPUTE_64F: c_int = 70;
    match element {
        DType::F32 => (0, COMPUTE_32F),
        DType::F64 => (1, COMPUTE_64F),
        DType::F16 => (2, COMPUTE_32F),
        DType::Bf16 => (14, COMPUTE_32F),
    }
}

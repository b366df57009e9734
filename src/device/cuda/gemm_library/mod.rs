//! The library that computes the GEMMs of a queue: cuBLAS, cuBLASLt, or none.

mod cublas;
mod cublas_lt;
mod epilogue;
mod files;
mod functions;

pub(super) use epilogue::Epilogue;

use super::{buffer::CudaBuffer, requirements::Version, stream::Stream};
use crate::{
    device::options::GemmBackend,
    element::{Element, bf16, f16},
    error::{Error, Result},
    op::{Gemm, GemmBatch},
};
use cublas::Cublas;
use cublas_lt::{CublasLt, Problem};
use num_traits::Zero;
use std::{env, ffi::c_int, path::Path, sync::Arc};

/// Environment variable that replaces the default `GemmBackend::Auto` with another value.
const BACKEND_VARIABLE: &str = "CORTADO_GEMM_BACKEND";

/// Lowest compute capability at which `GemmBackend::Auto` uses cuBLASLt. The built-in kernels are
/// written for capability 8.0, and lack the instructions for matrix products that came with 9.0.
const MIN_CUBLAS_LT: Version = (9, 0);

/// The library that computes GEMMs.
#[derive(Clone)]
pub(super) enum GemmLibrary {
    /// The built-in kernels compute GEMMs. `note` states why cuBLASLt does not compute them, on a
    /// GPU where cuBLASLt is the default.
    Builtin {
        note: Option<Arc<str>>,
    },
    Cublas(Arc<Cublas>),
    CublasLt(Arc<CublasLt>),
}

/// A GEMM that a library can compute.
pub(super) enum LibraryGemm<'a> {
    Cublas(&'a Cublas),
    CublasLt(&'a CublasLt, Problem),
}

/// An operand: a buffer and an offset in bytes.
type Operand<'a> = (&'a CudaBuffer, usize);

impl GemmLibrary {
    /// Opens the library that `backend` selects for a GPU of compute capability `capability`. `path`
    /// is the path of the library or of its folder.
    ///
    /// # Errors
    /// [`Error::Device`] if a library that the caller or `CORTADO_GEMM_BACKEND` requests is
    /// missing, is too old or does not support the GPU, or if `CORTADO_GEMM_BACKEND` has an unknown
    /// value.
    pub(super) fn open(
        backend: GemmBackend,
        path: Option<&Path>,
        (stream, tf32): (&Arc<Stream>, bool),
        capability: Version,
    ) -> Result<Self> {
        let name = &*stream.context.name;
        let on = |reason| Error::device(name, reason);
        let backend = match backend {
            GemmBackend::Auto => requested_backend().map_err(|reason| on(reason.into()))?,
            backend => backend,
        };
        let open_cublas_lt = || {
            let library = cublas_lt::Library::open(path).map_err(on)?;
            Ok(Self::CublasLt(Arc::new(CublasLt::new(library, stream, tf32)?)))
        };
        match backend {
            GemmBackend::Cublas => {
                let library = Arc::new(cublas::Library::open(path).map_err(on)?);
                Ok(Self::Cublas(Arc::new(Cublas::new(&library, stream, tf32))))
            }
            GemmBackend::CublasLt => open_cublas_lt(),
            GemmBackend::Auto if capability >= MIN_CUBLAS_LT => Ok(open_cublas_lt()
                .unwrap_or_else(|error: Error| {
                    let note = match error.root() {
                        Error::Device { source, .. } => source.to_string(),
                        error => error.to_string(),
                    };
                    Self::Builtin { note: Some(note.into()) }
                })),
            GemmBackend::Auto | GemmBackend::Builtin => Ok(Self::Builtin { note: None }),
        }
    }

    /// Returns the library for another queue of the same device.
    pub(super) fn fork(&self, stream: &Arc<Stream>) -> Self {
        match self {
            Self::Builtin { note } => Self::Builtin { note: note.clone() },
            Self::Cublas(cublas) => Self::Cublas(Arc::new(cublas.fork(stream))),
            Self::CublasLt(cublas_lt) => Self::CublasLt(Arc::new(cublas_lt.fork(stream))),
        }
    }

    /// Returns the names and values of device properties: the library's version, and why built-in
    /// kernels compute some GEMMs.
    pub(super) fn properties(&self) -> Vec<(&'static str, String)> {
        const BUILTIN: &str = "GEMM by built-in kernels";
        match self {
            Self::Builtin { note } => {
                note.iter().map(|note| (BUILTIN, format!("yes, because {note}"))).collect()
            }
            Self::Cublas(cublas) => {
                cublas.version().map(|version| ("cuBLAS", version)).into_iter().collect()
            }
            Self::CublasLt(cublas_lt) => {
                let version = cublas_lt.version().map(|version| ("cuBLASLt", version));
                try_typical_problems(cublas_lt);
                let missing = cublas_lt.missing_algorithms();
                let missing = (!missing.is_empty()).then(|| (BUILTIN, missing.join(", ")));
                version.into_iter().chain(missing).collect()
            }
        }
    }

    /// Returns the library's implementation of the GEMM with `epilogue`. Returns `None` if a
    /// built-in kernel must compute the GEMM. `offsets` are the offsets in bytes of `a`, `b`, `c`
    /// and the bias in their buffers.
    ///
    /// # Errors
    /// Returns the driver's errors.
    pub(super) fn find<T: Element>(
        &self,
        op: &Gemm<T>,
        batch: &GemmBatch,
        epilogue: Epilogue,
        offsets: [usize; 4],
    ) -> Result<Option<LibraryGemm<'_>>> {
        match self {
            Self::Cublas(cublas) if supports(op, batch) && epilogue == Epilogue::default() => {
                Ok(Some(LibraryGemm::Cublas(cublas)))
            }
            Self::CublasLt(cublas_lt) if supports(op, batch) => {
                let problem = Problem::new(op, batch, epilogue, offsets);
                let found = cublas_lt.has_algorithm(&problem)?;
                Ok(found.then_some(LibraryGemm::CublasLt(cublas_lt, problem)))
            }
            _ => Ok(None),
        }
    }
}

impl LibraryGemm<'_> {
    /// Computes the GEMM. The caller has checked the operand lengths; the ledger records the call as
    /// `kernel_name`. `bias` must be given if the epilogue has a bias.
    #[track_caller]
    pub(super) fn run<T: Element>(
        &self,
        kernel_name: &'static str,
        (op, batch): (&Gemm<T>, &GemmBatch),
        (a, b): (Operand<'_>, Operand<'_>),
        bias: Option<Operand<'_>>,
        c: Operand<'_>,
    ) -> Result<()> {
        match self {
            Self::Cublas(cublas) => cublas.multiply(kernel_name, op, batch, a, b, c),
            Self::CublasLt(cublas_lt, problem) => {
                cublas_lt.multiply((kernel_name, problem), op, a, b, bias, c)
            }
        }
    }
}

/// Returns the backend that the environment variable `CORTADO_GEMM_BACKEND` names, or the default.
fn requested_backend() -> Result<GemmBackend, String> {
    let Some(value) = env::var_os(BACKEND_VARIABLE) else { return Ok(GemmBackend::Auto) };
    let value = value.to_string_lossy();
    value.parse().map_err(|reason| format!("{BACKEND_VARIABLE}: {reason}"))
}

/// Returns whether NVIDIA's libraries can compute the GEMM: α is not 0, and all extents are positive
/// and fit in `c_int`.
fn supports<T: Element>(op: &Gemm<T>, batch: &GemmBatch) -> bool {
    let extents = [op.m, op.n, op.k, op.lda, op.ldb, op.ldc, batch.count];
    let is_product = !op.alpha.is_zero() && ![op.m, op.n, op.k, batch.count].contains(&0);
    is_product && extents.iter().all(|&extent| c_int::try_from(extent).is_ok())
}

/// Asks cuBLASLt for algorithms for a GEMM of each element type and each epilogue, so that
/// [`CublasLt::missing_algorithms`] is complete for such GEMMs.
fn try_typical_problems(cublas_lt: &CublasLt) {
    fn try_epilogues<T: Element>(cublas_lt: &CublasLt) {
        let (op, batch) = (Gemm::<T>::new(128, 128, 128), GemmBatch::SINGLE);
        for (bias, relu) in [(false, false), (true, false), (true, true)] {
            let problem = Problem::new(&op, &batch, Epilogue { bias, relu }, [0; 4]);
            // An error of the driver is ignored here, because later calls return it.
            let _ = cublas_lt.has_algorithm(&problem);
        }
    }
    try_epilogues::<f16>(cublas_lt);
    try_epilogues::<bf16>(cublas_lt);
    try_epilogues::<f32>(cublas_lt);
    try_epilogues::<f64>(cublas_lt);
}

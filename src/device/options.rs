//! Options for opening a device.

use crate::error::{Error, Result};
use std::str::FromStr;

/// GEMM implementation on an NVIDIA GPU.
///
/// ```
/// use cortado::device::{self, DeviceOptions, GemmBackend};
///
/// let options = DeviceOptions { gemm_backend: GemmBackend::Cublas, ..DeviceOptions::default() };
/// let error = device::open("cpu", options).unwrap_err();
/// assert_eq!(error.to_string(), "device `cpu`: cuBLAS is available on NVIDIA GPUs only");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GemmBackend {
    /// cuBLASLt if the GPU has compute capability 9.0 or later and cuBLASLt is found, and otherwise
    /// the built-in kernels. The environment variable `CORTADO_GEMM_BACKEND` replaces this choice
    /// with the backend that it names: `builtin`, `cublas` or `cublaslt`.
    #[default]
    Auto,
    /// The built-in GEMM kernels of this crate.
    Builtin,
    /// NVIDIA's cuBLAS, loaded at run time from the library or folder that `CORTADO_CUBLAS` names,
    /// else from the loader's search path or `/usr/local/cuda/lib64`. cuBLAS computes `gemm` and
    /// `gemm_batched`; `gemv` and convolutions use the built-in kernels.
    Cublas,
    /// NVIDIA's cuBLASLt, loaded like cuBLAS. cuBLASLt computes the same kernels as cuBLAS, and
    /// `gemm_with_bias`. The built-in kernels compute GEMMs for which cuBLASLt has no algorithm.
    CublasLt,
}

/// Parses a name: `auto`, `builtin`, `cublas` or `cublaslt`.
///
/// ```
/// use cortado::device::GemmBackend;
///
/// assert_eq!("cublaslt".parse(), Ok(GemmBackend::CublasLt));
/// let error = "cutlass".parse::<GemmBackend>().unwrap_err();
/// assert!(error.starts_with("found `cutlass`, expected auto, builtin"));
/// ```
impl FromStr for GemmBackend {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "builtin" => Ok(Self::Builtin),
            "cublas" => Ok(Self::Cublas),
            "cublaslt" => Ok(Self::CublasLt),
            _ => Err(format!("found `{name}`, expected auto, builtin, cublas or cublaslt")),
        }
    }
}

/// Options of [`open`](super::open).
///
/// ```
/// use cortado::{Memory, device::{self, DeviceOptions}};
///
/// let device = device::open("cpu", DeviceOptions::with_threads(2))?;
/// assert_eq!((device.name(), device.host_workers().count()), ("cpu".into(), 2));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Number of host threads; 0 means one per core that the process may use
    /// ([`default_threads`](crate::host::default_threads)).
    pub threads: usize,
    /// GEMM implementation; only NVIDIA GPUs offer a choice.
    pub gemm_backend: GemmBackend,
    /// Whether NVIDIA GPUs may round the operands of an `f32` GEMM or convolution to TF32.
    pub tf32: bool,
    /// Whether NVIDIA GPUs launch kernels by CUDA graphs, as `CudaBuilder::graphs` describes.
    pub cuda_graphs: bool,
    /// Limit in bytes on the memory of the device and the host together, as set by
    /// [`AnyDevice::with_memory_limit`](super::AnyDevice::with_memory_limit); `None` sets no limit.
    pub memory_limit: Option<usize>,
}

impl DeviceOptions {
    /// Returns the default options with `threads` host threads.
    #[must_use]
    pub fn with_threads(threads: usize) -> Self {
        Self { threads, ..Self::default() }
    }

    /// Fails if an option for NVIDIA GPUs is set. `device` is the name of the device, which is not
    /// an NVIDIA GPU.
    pub(super) fn refuse_gpu_only(self, device: &str) -> Result<()> {
        let option = match self {
            Self { gemm_backend: GemmBackend::Cublas, .. } => "cuBLAS",
            Self { gemm_backend: GemmBackend::CublasLt, .. } => "cuBLASLt",
            Self { tf32: true, .. } => "TF32",
            Self { cuda_graphs: true, .. } => "the launch of kernels by CUDA graphs",
            _ => return Ok(()),
        };
        let reason = format!("device `{device}`: {option} is available on NVIDIA GPUs only");
        Err(Error::InvalidData(reason))
    }
}

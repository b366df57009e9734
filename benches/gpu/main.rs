//! Benchmarks of an NVIDIA GPU: host transfers, kernels relative to the bandwidth of a copy, GEMM
//! compared with cuBLAS, and training steps. The GPU benchmarks print their results as Markdown
//! tables, and fail if a copy, a kernel, a GEMM or a net computes a wrong value.
//!
//! ```sh
//! cargo bench --features cuda --bench gpu              # on a GPU; takes minutes
//! cargo bench --features cuda --bench gpu -- --test    # one run on small operands; needs no GPU
//! ```
//!
//! On a machine without cargo, `scripts/gpu.sh` runs this benchmark and trains the same nets in
//! PyTorch.

mod check;
mod clock;
#[path = "../../tests/cuda_on_cpu/mod.rs"]
mod cuda_on_cpu;
mod gemm;
mod kernels;
mod nets;
mod transfers;

use cortado::{
    Memory, Result,
    device::{
        CudaDevice,
        cuda::{CudaBuilder, GemmBackend},
    },
};
use std::{env, path::PathBuf};

struct Bench {
    /// Builder that opened `device`; benchmarks use it to open the same GPU with other options.
    builder: CudaBuilder,
    device: CudaDevice,
    /// Whether to run each benchmark only once, on small operands.
    brief: bool,
}

impl Bench {
    /// Opens the GPU with the built-in kernels as its GEMM backend.
    fn builtin(&self, tf32: bool) -> Result<CudaDevice> {
        self.builder.clone().gemm_backend(GemmBackend::Builtin).tf32(tf32).open(0)
    }

    /// Opens the GPU with cuBLAS as its GEMM backend.
    ///
    /// # Errors
    /// Fails if the cuBLAS library cannot be loaded.
    fn cublas(&self, tf32: bool) -> Result<CudaDevice> {
        self.builder.clone().gemm_backend(GemmBackend::Cublas).tf32(tf32).open(0)
    }
}

fn main() -> Result<()> {
    let brief = env::args().any(|arg| arg == "--test");
    let cuda_required = env::var_os("CORTADO_REQUIRE_CUDA").is_some_and(|value| value == "1");
    let mut builder = CudaDevice::builder();
    if brief && !cuda_required {
        let Some(driver) = cuda_on_cpu::library() else {
            println!("SKIPPED: g++ not found; needed to compile the GPU kernels for the CPU");
            return Ok(());
        };
        let folder = driver.parent().map_or_else(PathBuf::new, PathBuf::from);
        builder = builder.driver_path(&driver).cublas_path(&folder);
    }
    let device = match builder.clone().open(0) {
        Err(error) if !cuda_required => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
        device => device?,
    };
    for (name, value) in device.properties() {
        println!("- {name}: {value}");
    }
    let bench = Bench { builder, device, brief };
    transfers::table(&bench)?;
    kernels::tables(&bench)?;
    gemm::table(&bench, cuda_required)?;
    nets::table(&bench)
}

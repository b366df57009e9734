//! An NVIDIA GPU against what it can do: copies, kernels as shares of the bandwidth of a copy,
//! matrix products beside cuBLAS', and steps of training. Prints tables in Markdown.
//!
//! ```sh
//! cargo bench --features cuda --bench gpu              # on a GPU; some minutes
//! cargo bench --features cuda --bench gpu -- --test    # everything once and small, without one
//! ```
//!
//! `scripts/gpu.sh` runs it on a machine without cargo, beside PyTorch.

mod clock;
#[path = "../../tests/cuda_on_cpu/mod.rs"]
mod cuda_on_cpu;
mod kernels;
mod nets;
mod products;
mod transfers;

use cortado::{
    Memory, Result,
    device::{
        CudaDevice,
        cuda::{CudaBuilder, GemmBackend},
    },
};
use std::{env, path::PathBuf};

/// What is measured, and how.
struct Bench {
    /// To open the device with, in other ways than the usual.
    builder: CudaBuilder,
    device: CudaDevice,
    /// Everything once, on small operands.
    brief: bool,
}

impl Bench {
    /// A device that has its products from cuBLAS, if there is one.
    fn cublas(&self, tf32: bool) -> Result<CudaDevice> {
        self.builder.clone().gemm_backend(GemmBackend::Cublas).tf32(tf32).open(0)
    }
}

fn main() -> Result<()> {
    let brief = env::args().any(|arg| arg == "--test");
    let required = env::var_os("CORTADO_REQUIRE_CUDA").is_some_and(|value| value == "1");
    let mut builder = CudaDevice::builder();
    if brief && !required {
        let Some(driver) = cuda_on_cpu::library() else {
            println!("SKIPPED: there is no g++, which compiles kernels for the processor");
            return Ok(());
        };
        let folder = driver.parent().map_or_else(PathBuf::new, PathBuf::from);
        builder = builder.driver_path(&driver).cublas_path(&folder);
    }
    let device = match builder.clone().open(0) {
        Err(error) if !required => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
        opened => opened?,
    };
    for (name, value) in device.properties() {
        println!("- {name}: {value}");
    }
    let bench = Bench { builder, device, brief };
    transfers::table(&bench)?;
    kernels::tables(&bench)?;
    products::table(&bench, required)?;
    nets::table(&bench)
}

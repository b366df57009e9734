//! Build script, which generates a table of the GPU kernels if the feature `cuda` is enabled.

use std::{env, error::Error, path::PathBuf};

#[path = "build/cuda.rs"]
mod cuda;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_CUDA").is_some() {
        cuda::write_kernel_table(&PathBuf::from(env::var("OUT_DIR")?))?;
    }
    Ok(())
}

//! Compiles `kernels/*.cu` to `kernels/ptx`. The script `scripts/ptx` runs this program.

use std::{env, fs, path::Path};

#[path = "../build/sources.rs"]
mod sources;

fn main() {
    let nvcc = env::var_os("NVCC").expect("NVCC is not set; run scripts/ptx");
    let sources = sources::read(Path::new("kernels")).expect("cannot read kernels");
    let names: Vec<&str> = sources.names().collect();
    if let Err(reason) = sources::compile(Path::new(&nvcc), &names, Path::new("kernels/ptx")) {
        panic!("{reason}");
    }
    fs::write("kernels/ptx/SOURCES", sources.record()).expect("cannot write kernels/ptx/SOURCES");
}

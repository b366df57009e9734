//! Compiles `kernels/*.cu` to `kernels/ptx`: see `scripts/ptx`.

use std::{env, fs, path::Path, process::Command};

#[path = "../build/sources.rs"]
mod sources;

fn main() {
    let nvcc = env::var_os("NVCC").expect("NVCC names the compiler");
    let sources = sources::of(Path::new("kernels")).expect("kernels");
    fs::create_dir_all("kernels/ptx").expect("kernels/ptx");
    let compile = |name: &str| {
        let mut command = Command::new(&nvcc);
        command.args(sources::FLAGS).arg(format!("kernels/{name}.cu"));
        (name.to_owned(), command.arg("-o").arg(format!("kernels/ptx/{name}.ptx")).spawn())
    };
    let running: Vec<_> = sources.names().map(compile).collect();
    for (name, child) in running {
        let done = child.and_then(|mut child| child.wait()).expect("nvcc runs");
        assert!(done.success(), "kernels/{name}.cu does not compile");
    }
    fs::write("kernels/ptx/SOURCES", sources.record()).expect("kernels/ptx/SOURCES");
}

//! Compiles `kernels/*.cu` to `kernels/ptx`. The script `scripts/ptx` runs this program.

use std::{env, fs, path::Path, process::Command};

#[path = "../build/sources.rs"]
mod sources;

fn main() {
    let nvcc = env::var_os("NVCC").expect("NVCC is not set; run scripts/ptx");
    let sources = sources::read(Path::new("kernels")).expect("cannot read kernels");
    fs::create_dir_all("kernels/ptx").expect("cannot create kernels/ptx");
    let compile = |name: &str| {
        let mut command = Command::new(&nvcc);
        command.args(sources::FLAGS).arg(format!("kernels/{name}.cu"));
        (name.to_owned(), command.arg("-o").arg(format!("kernels/ptx/{name}.ptx")).spawn())
    };
    let builds: Vec<_> = sources.names().map(compile).collect();
    for (name, child) in builds {
        let status = child.and_then(|mut child| child.wait()).expect("cannot run nvcc");
        assert!(status.success(), "kernels/{name}.cu does not compile");
        let ptx = format!("kernels/ptx/{name}.ptx");
        sources::lower_version(Path::new(&ptx)).expect("cannot write kernels/ptx");
    }
    fs::write("kernels/ptx/SOURCES", sources.record()).expect("cannot write kernels/ptx/SOURCES");
}

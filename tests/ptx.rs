//! Committed PTX, which is built in where there is no nvcc, is of the committed sources.

use std::{env, fs, path::Path, process::Command};

#[path = "../build/sources.rs"]
mod sources;

#[test]
fn committed_ptx_is_of_the_committed_sources() {
    let sources = sources::of(Path::new("kernels")).unwrap();
    let recorded = fs::read_to_string("kernels/ptx/SOURCES").unwrap_or_default();
    assert_eq!(recorded, sources.record(), "run scripts/ptx");
    assert!(sources.names().all(|name| Path::new(&committed(name)).is_file()), "run scripts/ptx");
}

/// Where `CORTADO_NVCC` names the compiler that made it.
#[test]
fn committed_ptx_is_what_the_compiler_gives() {
    let Some(nvcc) = env::var_os("CORTADO_NVCC") else {
        return println!("skipped: CORTADO_NVCC names no compiler");
    };
    let told = Command::new(&nvcc).arg("--version").output().unwrap();
    if !String::from_utf8_lossy(&told.stdout).contains("release 13.0") {
        return println!("skipped: kernels/ptx is of CUDA 13.0, and CORTADO_NVCC is not");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let sources = sources::of(Path::new("kernels")).unwrap();
    let compile = |name| {
        let ptx = folder.join(format!("{name}.ptx"));
        let mut command = Command::new(&nvcc);
        command.args(sources::FLAGS).arg(format!("kernels/{name}.cu")).arg("-o").arg(&ptx);
        (name, ptx, command.spawn().unwrap())
    };
    let running: Vec<_> = sources.names().map(compile).collect();
    for (name, ptx, mut child) in running {
        assert!(child.wait().unwrap().success(), "{name}");
        let same = fs::read_to_string(ptx).unwrap() == fs::read_to_string(committed(name)).unwrap();
        assert!(same, "{} is not what nvcc gives: run scripts/ptx", committed(name));
    }
}

fn committed(name: &str) -> String {
    format!("kernels/ptx/{name}.ptx")
}

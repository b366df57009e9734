//! Tests that the committed PTX matches the kernel sources. Builds without nvcc use the committed
//! PTX.

use std::{env, fs, path::Path, process::Command};

#[path = "../../build/sources.rs"]
mod sources;

#[test]
fn committed_ptx_records_the_hashes_of_the_sources() {
    let sources = sources::read(Path::new("kernels")).unwrap();
    let record = fs::read_to_string("kernels/ptx/SOURCES").unwrap_or_default();
    assert_eq!(record, sources.record(), "kernels/ptx is out of date; run scripts/ptx");
    for name in sources.names() {
        assert!(
            Path::new(&ptx_path(name)).is_file(),
            "{} is missing; run scripts/ptx",
            ptx_path(name)
        );
    }
}

/// Drivers from release 450 on load PTX 7.0.
#[test]
fn committed_ptx_states_a_version_that_old_drivers_load() {
    for name in sources::read(Path::new("kernels")).unwrap().names() {
        let ptx = fs::read_to_string(ptx_path(name)).unwrap();
        let version = ptx.lines().find_map(|line| line.strip_prefix(".version "));
        assert_eq!(version, Some("7.0"), "{}; run scripts/ptx", ptx_path(name));
    }
}

/// This test runs only if `CORTADO_NVCC` names an nvcc of the release that compiled the PTX.
#[test]
fn committed_ptx_equals_the_output_of_nvcc() {
    let Some(nvcc) = env::var_os("CORTADO_NVCC") else {
        return println!("SKIPPED: CORTADO_NVCC is not set");
    };
    let version = Command::new(&nvcc).arg("--version").output().unwrap();
    if !String::from_utf8_lossy(&version.stdout).contains("release 13.0") {
        return println!("SKIPPED: CORTADO_NVCC is not the nvcc of CUDA 13.0");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let sources = sources::read(Path::new("kernels")).unwrap();
    let compile = |name| {
        let ptx = folder.join(format!("{name}.ptx"));
        let mut command = Command::new(&nvcc);
        command.args(sources::FLAGS).arg(format!("kernels/{name}.cu")).arg("-o").arg(&ptx);
        (name, ptx, command.spawn().unwrap())
    };
    let builds: Vec<_> = sources.names().map(compile).collect();
    for (name, ptx, mut child) in builds {
        assert!(child.wait().unwrap().success(), "kernels/{name}.cu does not compile");
        sources::lower_version(&ptx).unwrap();
        let is_equal =
            fs::read_to_string(ptx).unwrap() == fs::read_to_string(ptx_path(name)).unwrap();
        assert!(is_equal, "{} differs from the output of nvcc; run scripts/ptx", ptx_path(name));
    }
}

fn ptx_path(name: &str) -> String {
    format!("kernels/ptx/{name}.ptx")
}

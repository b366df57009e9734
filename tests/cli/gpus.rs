//! GPUs by name and number, on the driver that stands in for NVIDIA's.

use crate::{
    command::{Folder, Ran},
    cuda_on_cpu,
};

#[test]
fn a_gpu_is_a_device_like_another() {
    let Some(driver) = cuda_on_cpu::library() else {
        return println!("SKIPPED: there is no g++, which compiles kernels for the processor");
    };
    let folder = Folder::new("gpus");
    let run = |args: &str| {
        let output = folder.command(args).env("CORTADO_LIBCUDA", &driver).output();
        Ran::new(args, output.unwrap())
    };
    let told = run("device-query --gpu all").succeeded().out;
    for part in ["cuda:0", "cuda:1", "compute capability", "8.0", "CUDA 13.0"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(run("device-query").succeeded().out.contains("cuda:0"));
    assert!(!run("device-query --device cuda:1").succeeded().out.contains("cuda:0"));
    run("device-query --gpu 9").failed_with(&["there is no cuda:9", "cpu, cuda:0, cuda:1"]);
    run("time --model net.prototxt --device cuda:9").failed_with(&["`cuda:9`", "only 4"]);
    let log = run("train --solver solver.prototxt --gpu 1").succeeded().log;
    assert!(log.iter().any(|line| line.starts_with("Use cuda:1, ")), "{log:#?}");
}

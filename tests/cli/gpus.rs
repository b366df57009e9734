//! GPUs by name and number, on the driver that stands in for NVIDIA's.

use crate::{
    command::{Folder, Ran},
    cuda_on_cpu,
};
use std::path::Path;

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

#[test]
fn products_are_chosen_on_a_gpu() {
    let Some(driver) = cuda_on_cpu::library() else {
        return println!("SKIPPED: there is no g++, which compiles kernels for the processor");
    };
    let folder = Folder::new("gpu-products");
    let run = |flags: &str, cublas: &Path| {
        let args = format!("train --solver solver.prototxt --gpu 0 {flags}");
        let mut command = folder.command(&args);
        command.env("CORTADO_LIBCUDA", &driver).env("CORTADO_CUBLAS", cublas);
        Ran::new(&args, command.output().unwrap())
    };
    // Weights after some steps, and how the device was said to multiply.
    let trained = |flags: &str| {
        let log = run(flags, driver.parent().unwrap()).succeeded().log;
        let used = log.iter().find_map(|line| line.strip_prefix("Use cuda:0, ")).unwrap();
        let how = used.split_once(" host threads").unwrap().1.to_owned();
        (folder.read("lenet_iter_8.caffemodel"), how)
    };
    let (plain, how) = trained("");
    assert_eq!(how, ".");
    assert_eq!(trained("--products own"), (plain.clone(), how));
    let (rounded, how) = trained("--products=own --tf32");
    assert_eq!(how, ", products in TF32.");
    assert!(rounded != plain, "--tf32 is of no effect");
    for (flags, end) in [("", "."), ("--tf32", " in TF32.")] {
        let (_, how) = trained(&format!("--products cublas {flags}"));
        assert!(how.starts_with(", products by cuBLAS ") && how.ends_with(end), "{how}");
    }
    let nowhere = Path::new("/nowhere");
    run("--products cublas", nowhere).failed_with(&["cuBLAS", "/nowhere"]);
    run("--products own", nowhere).succeeded();
}

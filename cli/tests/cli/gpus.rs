//! Tests of the flags that select a GPU by name or number, with a test driver that runs GPU kernels
//! on the CPU.

use crate::{
    command::{Folder, RunResult},
    cuda_on_cpu,
};
use std::path::Path;

#[test]
fn gpus_are_listed_and_used_by_name_and_number() {
    let Some(driver) = cuda_on_cpu::library() else {
        return println!("SKIPPED: g++ not found; needed to compile the GPU kernels for the CPU");
    };
    let folder = Folder::new("gpus");
    let run = |args: &str| {
        let output = folder.command(args).env("CORTADO_LIBCUDA", &driver).output();
        RunResult::new(args, output.unwrap())
    };
    let device_list = run("device-query --gpu all").succeeded().out;
    for part in ["cuda:0", "cuda:1", "compute capability", "8.0", "CUDA 13.0", "memory pools"] {
        assert!(device_list.contains(part), "{device_list}");
    }
    for row in ["free memory", "2048.0 MiB\n", "pool memory in use", "pool memory reserved"] {
        assert!(device_list.contains(row), "{row}: {device_list}");
    }
    let times = run("time --model net.prototxt --iterations 1 --gpu 0").succeeded().out;
    let peak = times.lines().find_map(|line| line.strip_prefix("Peak memory of the device: "));
    let used: f64 = peak.and_then(|peak| peak.split(' ').next()?.parse().ok()).expect(&times);
    assert!(used > 0.0, "{times}");
    for part in ["forward ms  device ms", "gemm_", "(download)"] {
        assert!(times.contains(part), "{part}: {times}");
    }
    assert!(run("device-query").succeeded().out.contains("cuda:0"));
    assert!(!run("device-query --device cuda:1").succeeded().out.contains("cuda:0"));
    run("device-query --gpu 9").failed_with(&["device cuda:9 not found", "cpu, cuda:0, cuda:1"]);
    run("time --model net.prototxt --device cuda:9").failed_with(&["`cuda:9`", "5 found"]);
    let run_on_old_gpu = |args: &str| {
        let mut command = folder.command(args);
        command.env("CORTADO_LIBCUDA", &driver).env("CUDA_ON_CPU_CAPABILITY", "70");
        RunResult::new(args, command.output().unwrap())
    };
    let device_list = run_on_old_gpu("device-query").succeeded().out;
    for part in ["cpu\n", "cuda:0\n", "not usable", "found 7.0, expected 7.5"] {
        assert!(device_list.contains(part), "{device_list}");
    }
    run_on_old_gpu("device-query --gpu 0").failed_with(&["found 7.0, expected 7.5"]);
    let log = run("train --solver solver.prototxt --gpu 1").succeeded().log;
    assert!(log.iter().any(|line| line.starts_with("Use cuda:1, ")), "{log:#?}");
}

/// GPUs of compute capability 9.0 use cuBLASLt if it is found.
#[test]
fn device_query_names_cublas_lt_or_says_why_it_is_not_used() {
    let Some(driver) = cuda_on_cpu::library() else {
        return println!("SKIPPED: g++ not found; needed to compile the GPU kernels for the CPU");
    };
    let folder = Folder::new("gpu-cublaslt");
    let query = |cublas: &Path| {
        let args = "device-query --gpu 0";
        let mut command = folder.command(args);
        command.env("CORTADO_LIBCUDA", &driver).env("CORTADO_CUBLAS", cublas);
        let output = command.env("CUDA_ON_CPU_CAPABILITY", "90").output().unwrap();
        RunResult::new(args, output).succeeded().out
    };
    let found = query(driver.parent().unwrap());
    assert!(found.contains("cuBLASLt") && found.contains("13.0.2"), "{found}");
    assert!(!found.contains("GEMM by built-in kernels"), "{found}");
    let missing = query(Path::new("/nowhere"));
    assert!(missing.contains("GEMM by built-in kernels"), "{missing}");
    assert!(missing.contains("cuBLASLt not found: cannot open any of /nowhere"), "{missing}");
}

#[test]
fn the_gemm_backend_of_a_gpu_is_chosen_by_flags() {
    let Some(driver) = cuda_on_cpu::library() else {
        return println!("SKIPPED: g++ not found; needed to compile the GPU kernels for the CPU");
    };
    let folder = Folder::new("gpu-gemm");
    let run = |flags: &str, cublas: &Path| {
        let args = format!("train --solver solver.prototxt --gpu 0 {flags}");
        let mut command = folder.command(&args);
        command.env("CORTADO_LIBCUDA", &driver).env("CORTADO_CUBLAS", cublas);
        RunResult::new(&args, command.output().unwrap())
    };
    // Trains with `flags`. Returns the weights, and the part of a log message that names the GEMM
    // backend.
    let train = |flags: &str| {
        let log = run(flags, driver.parent().unwrap()).succeeded().log;
        let device_text = log.iter().find_map(|line| line.strip_prefix("Use cuda:0, ")).unwrap();
        let note = device_text.split_once(" host threads").unwrap().1.to_owned();
        (folder.read("lenet_iter_8.caffemodel"), note)
    };
    let (f32_weights, note) = train("");
    assert_eq!(note, ".");
    assert_eq!(train("--gemm-backend builtin"), (f32_weights.clone(), note));
    // CUDA graphs change no result.
    assert_eq!(train("--cuda-graphs"), (f32_weights.clone(), ".".into()));
    let (tf32_weights, note) = train("--gemm-backend=builtin --allow-tf32");
    assert_eq!(note, ", GEMM in TF32.");
    assert!(tf32_weights != f32_weights, "--allow-tf32 has no effect");
    for (flags, end) in [("", "."), ("--allow-tf32", " in TF32.")] {
        let (_, note) = train(&format!("--gemm-backend cublas {flags}"));
        assert!(note.starts_with(", GEMM by cuBLAS ") && note.ends_with(end), "{note}");
    }
    let (_, note) = train("--gemm-backend cublaslt");
    assert_eq!(note, ", GEMM by cuBLASLt 13.0.2.");
    let missing_path = Path::new("/nowhere");
    run("--gemm-backend cublaslt", missing_path).failed_with(&["cuBLASLt", "/nowhere"]);
    run("--gemm-backend cublas", missing_path).failed_with(&["cuBLAS", "/nowhere"]);
    run("--gemm-backend builtin", missing_path).succeeded();
}

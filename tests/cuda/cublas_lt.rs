//! Tests of GEMM with cuBLASLt. On a GPU, the tests use NVIDIA's cuBLASLt; on a simulated GPU, the
//! test library in `tests/cuda_on_cpu`.

use super::{driver, gpu_with, is_child_with, property};
use cortado::{
    Blob, Memory,
    conformance::Kit,
    device::{
        CudaDevice,
        cuda::{CudaBuilder, GemmBackend},
    },
    kernel::{Blas, Elementwise},
    memory::DeviceWork,
    op::{Gemm, Unary},
};
use std::path::Path;

/// Name of the property that says which GEMMs the built-in kernels compute.
const BUILTIN: &str = "GEMM by built-in kernels";

/// Adds the folder of the test library, if the tests use it.
fn with_library(builder: CudaBuilder) -> CudaBuilder {
    let folder = driver().and_then(|driver| driver.parent());
    folder.into_iter().fold(builder, |builder, folder| builder.cublas_path(folder))
}

/// Opens a device that uses cuBLASLt. Returns `None` if the test library cannot be built because g++
/// is missing.
fn gpu(configure: impl FnOnce(CudaBuilder) -> CudaBuilder) -> Option<CudaDevice> {
    gpu_with(0, |builder| configure(with_library(builder).gemm_backend(GemmBackend::CublasLt)))
}

/// Returns the names of the GPU functions that compute `C ← function(A·B + bias)` with 8 × 8
/// matrices.
fn functions<T: cortado::Element>(
    device: &CudaDevice,
    function: Option<Unary<T::Acc>>,
) -> Vec<&'static str> {
    let [a, c] = [(); 2].map(|()| Blob::<T, _>::new(device, &[8, 8]).unwrap());
    let bias = Blob::<T, _>::new(device, &[8]).unwrap();
    for blob in [&a, &c, &bias] {
        device.fill(T::from_f64(1.0), blob.data_mut().unwrap().view_mut()).unwrap();
    }
    device.record_spans(true).unwrap();
    {
        let (a, bias, mut c) = (a.data().unwrap(), bias.data().unwrap(), c.data_mut().unwrap());
        let op = Gemm::new(8, 8, 8);
        device
            .gemm_with_bias(&op, a.view(), a.view(), bias.view(), function, c.view_mut())
            .unwrap();
    }
    let spans = device.take_spans().unwrap();
    device.record_spans(false).unwrap();
    assert!(function.is_some() || c.to_vec().unwrap().iter().all(|c| c.to_f64() == 9.0));
    let function = |work| match work {
        DeviceWork::Kernel { function, .. } => Some(function),
        _ => None,
    };
    spans.into_iter().filter_map(|span| function(span.work)).collect()
}

#[test]
fn gemm_by_cublas_lt_passes_the_conformance_kit() {
    let device = or_skip!(gpu(|builder| builder));
    for check in ["gemm", "gemm_batched", "gemm_with_bias"] {
        Kit::new().check(&device, check).unwrap();
    }
}

#[test]
fn one_call_of_cublas_lt_adds_the_bias_and_applies_relu() {
    let device = or_skip!(gpu(|builder| builder));
    let relu = |slope| Some(Unary::Relu { slope });
    assert_eq!(functions::<f32>(&device, None), ["cublasLtMatmul"]);
    assert_eq!(functions::<f32>(&device, relu(0.0)), ["cublasLtMatmul"]);
    let separate = ["cublasLtMatmul", "broadcast_add_f32", "relu_f32"];
    let found = functions::<f32>(&device, relu(0.5));
    assert_eq!((found.len(), found[0], found[2]), (3, separate[0], separate[2]), "{found:?}");
}

#[test]
fn cublas_lt_rounds_f32_operands_only_if_tf32_is_allowed() {
    let value = 1.0 + 1.0 / 4096.0;
    for (tf32, rounded) in [(false, value), (true, 1.0)] {
        let device = or_skip!(gpu(|builder| builder.tf32(tf32)));
        let c = super::cublas::multiply_by_ones(&device, 256, value);
        assert_eq!(c.data().unwrap().host().unwrap(), [256.0 * rounded; 256 * 256]);
    }
}

#[test]
fn forked_queues_share_cublas_lt_but_no_workspace() {
    let device = or_skip!(gpu(|builder| builder));
    let fork = device.fork_queue().unwrap();
    assert!(property(&fork, "cuBLASLt").is_some());
    let multiply = super::cublas::multiply_by_ones;
    let (x, y) = (multiply(&device, 32, 2.0), multiply(&fork, 32, 3.0));
    drop(fork);
    assert_eq!(x.data().unwrap().host().unwrap(), [64.0; 1024]);
    assert_eq!(y.data().unwrap().host().unwrap(), [96.0; 1024]);
}

#[test]
fn cublas_lt_computes_without_a_workspace_that_does_not_fit_in_memory() {
    let device = or_skip!(gpu(|builder| builder.memory_limit(1 << 20)));
    let c = super::cublas::multiply_by_ones(&device, 32, 2.0);
    assert_eq!(c.data().unwrap().host().unwrap(), [64.0; 1024]);
    assert_eq!(functions::<f32>(&device, None), ["cublasLtMatmul"]);
}

#[test]
fn cublas_lt_is_the_default_from_compute_capability_9_0() {
    let name = "cublas_lt::cublas_lt_is_the_default_from_compute_capability_9_0";
    or_skip!(driver());
    if !is_child_with(name, &[("CUDA_ON_CPU_CAPABILITY", "90")]) {
        // By default, GPUs of compute capability 8.0 use the built-in kernels.
        let device = gpu_with(0, with_library).unwrap();
        assert_eq!([property(&device, "cuBLASLt"), property(&device, BUILTIN)], [None, None]);
        return;
    }
    let default = gpu_with(0, with_library).unwrap();
    assert_eq!(property(&default, "cuBLASLt").unwrap(), "13.0.2");
    assert_eq!(property(&default, BUILTIN), None);
    assert_eq!(functions::<cortado::bf16>(&default, None), ["cublasLtMatmul"]);
    let builtin =
        gpu_with(0, |builder| with_library(builder).gemm_backend(GemmBackend::Builtin)).unwrap();
    assert_eq!([property(&builtin, "cuBLASLt"), property(&builtin, BUILTIN)], [None, None]);
    assert!(!functions::<f32>(&builtin, None).contains(&"cublasLtMatmul"));
    // The results of a net are within the kit's error bounds.
    Kit::new().check(&default, "lenet").unwrap();
}

#[test]
fn an_environment_variable_replaces_the_default_gemm_backend() {
    let capability = ("CUDA_ON_CPU_CAPABILITY", "90");
    or_skip!(driver());
    let name = "cublas_lt::an_environment_variable_replaces_the_default_gemm_backend";
    if !is_child_with(name, &[capability, ("CORTADO_GEMM_BACKEND", "builtin")]) {
        return;
    }
    let device = gpu_with(0, with_library).unwrap();
    assert_eq!([property(&device, "cuBLASLt"), property(&device, BUILTIN)], [None, None]);
    // An explicit choice takes precedence over the environment variable.
    assert!(property(&gpu(|builder| builder).unwrap(), "cuBLASLt").is_some());
}

#[test]
fn an_unknown_gemm_backend_in_the_environment_is_an_error() {
    or_skip!(driver());
    let name = "cublas_lt::an_unknown_gemm_backend_in_the_environment_is_an_error";
    if is_child_with(name, &[("CORTADO_GEMM_BACKEND", "cutlass")]) {
        let builder = CudaDevice::builder().driver_path(driver().unwrap());
        let expected = "device `cuda:0`: CORTADO_GEMM_BACKEND: found `cutlass`, expected auto, \
                        builtin, cublas or cublaslt";
        assert_eq!(builder.open(0).unwrap_err().to_string(), expected);
    }
}

/// Opens a device that requires cuBLASLt, which must fail, and returns the error message.
fn error_of_required(path: &Path) -> String {
    let builder = CudaDevice::builder().driver_path(driver().unwrap()).cublas_path(path);
    builder.gemm_backend(GemmBackend::CublasLt).open(0).unwrap_err().to_string()
}

#[test]
fn without_cublas_lt_the_built_in_kernels_compute_and_a_property_says_why() {
    or_skip!(driver());
    let name = "cublas_lt::without_cublas_lt_the_built_in_kernels_compute_and_a_property_says_why";
    if !is_child_with(name, &[("CUDA_ON_CPU_CAPABILITY", "90")]) {
        return;
    }
    let device = gpu_with(0, |builder| builder.cublas_path("/nowhere")).unwrap();
    let reason = property(&device, BUILTIN).unwrap();
    let start = "yes, because cuBLASLt not found: cannot open any of /nowhere (";
    assert!(reason.starts_with(start), "{reason}");
    assert!(functions::<f32>(&device, None)[0].starts_with("gemm_"));
    let message = error_of_required(Path::new("/nowhere"));
    let start = "device `cuda:0`: cuBLASLt not found: cannot open any of /nowhere (";
    assert!(message.starts_with(start), "{message}");
    // The path of cuBLAS selects cuBLASLt in the same folder.
    let cublas = driver().unwrap().with_file_name("libcublas.so");
    let device = gpu_with(0, |builder| builder.cublas_path(cublas)).unwrap();
    assert!(property(&device, "cuBLASLt").is_some());
}

#[test]
fn a_cublas_lt_that_cannot_use_the_gpu_is_an_error_only_if_required() {
    or_skip!(driver());
    let name = "cublas_lt::a_cublas_lt_that_cannot_use_the_gpu_is_an_error_only_if_required";
    let variables = [("CUDA_ON_CPU_CAPABILITY", "90"), ("CUDA_ON_CPU_WITHOUT_CUBLASLT", "1")];
    if is_child_with(name, &variables) {
        let reason = "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (1)";
        let device = gpu_with(0, with_library).unwrap();
        assert_eq!(property(&device, BUILTIN).unwrap(), format!("yes, because {reason}"));
        assert!(functions::<f32>(&device, None)[0].starts_with("gemm_"));
        let message = error_of_required(driver().unwrap().parent().unwrap());
        assert_eq!(message, format!("device `cuda:0`: {reason}"));
    }
}

#[test]
fn built_in_kernels_compute_gemms_without_an_algorithm() {
    or_skip!(driver());
    let name = "cublas_lt::built_in_kernels_compute_gemms_without_an_algorithm";
    if is_child_with(name, &[("CUDA_ON_CPU_WITHOUT_ALGORITHMS", "f64")]) {
        let device = gpu(|builder| builder).unwrap();
        let status = "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED (15)";
        let kinds = ["f64", "f64 with bias", "f64 with bias and ReLU"];
        let expected = kinds.map(|kind| format!("{kind} ({status})")).join(", ");
        assert_eq!(property(&device, BUILTIN).unwrap(), expected);
        assert_eq!(functions::<f32>(&device, None), ["cublasLtMatmul"]);
        let found = functions::<f64>(&device, None);
        assert!(found[0].starts_with("gemm_") && found.len() == 2, "{found:?}");
        Kit::new().cases(8).check(&device, "gemm_with_bias").unwrap();
    }
}

#[test]
fn a_gemm_without_an_algorithm_for_its_epilogue_uses_the_algorithm_without_epilogue() {
    or_skip!(driver());
    let name = "cublas_lt::\
                a_gemm_without_an_algorithm_for_its_epilogue_uses_the_algorithm_without_epilogue";
    if is_child_with(name, &[("CUDA_ON_CPU_WITHOUT_ALGORITHMS", "bias")]) {
        let device = gpu(|builder| builder).unwrap();
        let found = functions::<f32>(&device, Some(Unary::Relu { slope: 0.0 }));
        assert_eq!((found[0], found.len()), ("cublasLtMatmul", 3), "{found:?}");
        assert!(property(&device, BUILTIN).unwrap().starts_with("bf16 with bias ("));
    }
}

//! Tests of GEMM by cuBLAS. On a GPU, the tests use NVIDIA's cuBLAS; on a simulated GPU, the test
//! library in `tests/cuda_on_cpu`.

use super::{driver, gpu_required, gpu_with};
use cortado::{
    Blob, Error, Memory,
    conformance::Kit,
    device::{CudaDevice, cuda::GemmBackend},
    kernel::{Blas, Elementwise},
    op::Gemm,
};
use std::{env, fs};

/// Opens a device that uses cuBLAS. Returns `None` if the test library cannot be built because g++
/// is missing.
fn gpu(ordinal: u32, tf32: bool) -> Option<CudaDevice> {
    let folder = driver().and_then(|driver| driver.parent());
    gpu_with(ordinal, |builder| {
        let builder = builder.gemm_backend(GemmBackend::Cublas).tf32(tf32);
        folder.into_iter().fold(builder, |builder, folder| builder.cublas_path(folder))
    })
}

#[test]
fn gemm_by_cublas_passes_the_conformance_kit() {
    let device = or_skip!(gpu(0, false));
    for check in ["gemm", "gemm_batched"] {
        Kit::new().check(&device, check).unwrap();
    }
}

#[test]
fn properties_name_cublas_only_if_it_is_used() {
    let device = or_skip!(gpu(0, false));
    let names_cublas =
        |device: &CudaDevice| device.properties().iter().any(|(name, _)| *name == "cuBLAS");
    assert!(names_cublas(&device) && names_cublas(&device.fork_queue().unwrap()));
    assert!(!names_cublas(&or_skip!(super::gpu(0))));
}

/// Multiplies an `n` × `n` matrix whose elements are `value` by a matrix of ones, on the queue
/// `queue`.
pub(crate) fn multiply_by_ones(queue: &CudaDevice, n: usize, value: f32) -> Blob<f32, CudaDevice> {
    let [a, b, c] = [value, 1.0, f32::NAN].map(|value| {
        let blob = Blob::new(queue, &[n, n]).unwrap();
        queue.fill(value, blob.data_mut().unwrap().view_mut()).unwrap();
        blob
    });
    {
        let (a, b, mut c) = (a.data().unwrap(), b.data().unwrap(), c.data_mut().unwrap());
        queue.gemm(&Gemm::new(n, n, n), a.view(), b.view(), c.view_mut()).unwrap();
    }
    c
}

#[test]
fn f32_operands_are_rounded_only_if_tf32_is_allowed() {
    let value = 1.0 + 1.0 / 4096.0;
    for (tf32, rounded) in [(false, value), (true, 1.0)] {
        let builtin_gpu = or_skip!(gpu_with(0, |builder| builder.tf32(tf32)));
        for device in [builtin_gpu, or_skip!(gpu(0, tf32))] {
            let c = multiply_by_ones(&device, 256, value);
            assert_eq!(c.data().unwrap().host().unwrap(), [256.0 * rounded; 256 * 256]);
        }
    }
}

/// Each queue has its own cuBLAS handle, and the queued GEMMs of a dropped queue must still run.
#[test]
fn forked_queues_compute_independent_matrix_products() {
    let device = or_skip!(gpu(0, false));
    let fork = device.fork_queue().unwrap();
    let (x, y) = (multiply_by_ones(&device, 32, 2.0), multiply_by_ones(&fork, 32, 3.0));
    drop(fork);
    assert_eq!(x.data().unwrap().host().unwrap(), [64.0; 1024]);
    assert_eq!(y.data().unwrap().host().unwrap(), [96.0; 1024]);
}

#[test]
fn too_little_memory_for_the_cublas_workspace_is_an_error() {
    if gpu_required() {
        return;
    }
    let small_gpu = or_skip!(gpu(3, false));
    let [a, c] = [(); 2].map(|()| Blob::<f32, _>::new(&small_gpu, &[4, 4]).unwrap());
    let (a, mut c) = (a.data().unwrap(), c.data_mut().unwrap());
    let error = small_gpu.gemm(&Gemm::new(4, 4, 4), a.view(), a.view(), c.view_mut()).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
}

#[test]
fn without_cublas_the_error_lists_the_paths_tried() {
    let mut builder = CudaDevice::builder().gemm_backend(GemmBackend::Cublas);
    if !gpu_required() {
        builder = builder.driver_path(or_skip!(driver()));
    }
    let error = |path: &str| builder.clone().cublas_path(path).open(0).unwrap_err().to_string();
    let message = error("/nowhere");
    let message_start = "device `cuda:0`: cuBLAS not found: cannot open any of /nowhere (";
    assert!(message.starts_with(message_start), "{message}");
    assert!(message.ends_with("; set CORTADO_CUBLAS to its path"), "{message}");

    let empty_folder = env::temp_dir().join("no_cublas");
    fs::create_dir_all(&empty_folder).unwrap();
    let message = error(empty_folder.to_str().unwrap());
    assert!(message.contains("libcublas.so.13, "), "{message}");
    assert!(message.contains("no_cublas/libcublas.so ("), "{message}");

    // Loading a library that lacks cuBLAS's functions must fail with an error that names the
    // library.
    let Some(driver) = driver() else { return };
    let message = error(driver.to_str().unwrap());
    assert!(message.contains(&format!("{}: ", driver.display())), "{message}");
    assert!(message.contains("cublas"), "{message}");
}

//! Products by cuBLAS: on a GPU the real one, else a stand-in on the driver's stand-in.

use super::{driver, gpu_with, required};
use cortado::{
    Blob, Error, Memory,
    conformance::Kit,
    device::{CudaDevice, cuda::GemmBackend},
    kernel::{Blas, Elementwise},
    op::Gemm,
};
use std::{env, fs};

/// A device that is to use cuBLAS; `None` where there is no compiler for the stand-ins.
fn gpu(ordinal: u32, tf32: bool) -> Option<CudaDevice> {
    let beside = driver().and_then(|driver| driver.parent());
    gpu_with(ordinal, |builder| {
        let builder = builder.gemm_backend(GemmBackend::Cublas).tf32(tf32);
        beside.into_iter().fold(builder, |builder, folder| builder.cublas_path(folder))
    })
}

#[test]
fn products_pass_the_kit() {
    let device = or_skip!(gpu(0, false));
    for check in ["gemm", "gemm_batched"] {
        Kit::new().check(&device, check).unwrap();
    }
}

#[test]
fn a_device_tells_which_it_uses() {
    let device = or_skip!(gpu(0, false));
    let told = |device: &CudaDevice| device.properties().iter().any(|(name, _)| *name == "cuBLAS");
    assert!(told(&device) && told(&device.fork_queue().unwrap()));
    assert!(!told(&or_skip!(super::gpu(0))));
}

/// What `n` × `n` elements of `value` give, multiplied by ones on a queue.
fn product(queue: &CudaDevice, n: usize, value: f32) -> Blob<f32, CudaDevice> {
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

/// Operands of `f32` keep all their bits, unless somebody says that they need not.
#[test]
fn bits_are_given_up_on_request_only() {
    let odd = 1.0 + 1.0 / 4096.0;
    for (tf32, each) in [(false, odd), (true, 1.0)] {
        let own = or_skip!(gpu_with(0, |builder| builder.tf32(tf32)));
        for device in [own, or_skip!(gpu(0, tf32))] {
            let c = product(&device, 256, odd);
            assert_eq!(c.data().unwrap().host().unwrap(), [256.0 * each; 256 * 256]);
        }
    }
}

/// Each queue has a handle; one that is gone has left its work queued.
#[test]
fn queues_multiply_on_their_own() {
    let device = or_skip!(gpu(0, false));
    let fork = device.fork_queue().unwrap();
    let (x, y) = (product(&device, 32, 2.0), product(&fork, 32, 3.0));
    drop(fork);
    assert_eq!(x.data().unwrap().host().unwrap(), [64.0; 1024]);
    assert_eq!(y.data().unwrap().host().unwrap(), [96.0; 1024]);
}

#[test]
fn memory_to_work_in_may_be_missing() {
    if required() {
        return;
    }
    let small = or_skip!(gpu(3, false));
    let blob = Blob::<f32, _>::new(&small, &[4, 4]).unwrap();
    let (a, c) = (blob.data().unwrap(), Blob::<f32, _>::new(&small, &[4, 4]).unwrap());
    let mut c = c.data_mut().unwrap();
    let failed = small.gemm(&Gemm::new(4, 4, 4), a.view(), a.view(), c.view_mut()).unwrap_err();
    assert!(matches!(failed, Error::OutOfMemory { .. }), "{failed}");
}

#[test]
fn without_cublas_there_is_one_clear_error() {
    let mut builder = CudaDevice::builder().gemm_backend(GemmBackend::Cublas);
    if !required() {
        builder = builder.driver_path(or_skip!(driver()));
    }
    let refused = |path: &str| builder.clone().cublas_path(path.as_ref()).open(0).unwrap_err();
    let said = refused("/nowhere").to_string();
    assert!(said.starts_with("device `cuda:0`: no cuBLAS: none of /nowhere opens ("), "{said}");
    assert!(said.ends_with("; CORTADO_CUBLAS may say where it is"), "{said}");

    let empty = env::temp_dir().join("no_cublas");
    fs::create_dir_all(&empty).unwrap();
    let said = refused(empty.to_str().unwrap()).to_string();
    assert!(said.contains("libcublas.so.13, ") && said.contains("no_cublas/libcublas.so opens"));

    // What is there but is no cuBLAS is told of as well.
    let Some(driver) = driver() else { return };
    let said = refused(driver.to_str().unwrap()).to_string();
    assert!(said.contains(&format!("{}: ", driver.display())) && said.contains("cublas"), "{said}");
}

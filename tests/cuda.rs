//! The CUDA backend, unmodified, on a driver that runs its kernels on this machine's processor;
//! with `CORTADO_REQUIRE_CUDA=1`, on a GPU.

mod cuda_on_cpu;

use cortado::{Blob, Memory, device::CudaDevice};
use std::{env, sync::OnceLock};

/// The GPU of this number: of the driver that stands in, if a GPU is not required.
fn gpu(ordinal: u32) -> CudaDevice {
    static DRIVER: OnceLock<Option<std::path::PathBuf>> = OnceLock::new();
    let required = env::var_os("CORTADO_REQUIRE_CUDA").is_some_and(|value| value == "1");
    let driver = DRIVER.get_or_init(|| if required { None } else { cuda_on_cpu::library() });
    let builder = CudaDevice::builder().threads(1);
    match driver {
        Some(path) => builder.driver(path),
        None => builder,
    }
    .open(ordinal)
    .unwrap()
}

cortado::conformance!(cuda, gpu(0));

#[test]
fn values_come_back() {
    let device = gpu(0);
    let x = Blob::from_vec(&device, &[3], vec![1.0f32, -2.0, 3.0]).unwrap();
    x.scale_data(2.0).unwrap();
    assert_eq!(x.data().unwrap().host().unwrap(), [2.0, -4.0, 6.0]);
    assert_eq!(device.name(), "cuda:0");
}

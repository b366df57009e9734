//! The CUDA backend, unmodified, on a driver that runs its kernels on this machine's processor;
//! with `CORTADO_REQUIRE_CUDA=1`, on a GPU.

#[macro_use]
mod skip {
    macro_rules! or_skip {
        ($device:expr) => {
            match $device {
                Some(device) => device,
                None => return,
            }
        };
    }
}
#[path = "cuda/cublas.rs"]
mod cublas;
mod cuda_on_cpu;
#[path = "cuda/products.rs"]
mod products;
#[path = "cuda/steps.rs"]
mod steps;

use cortado::{
    Blob, Device, Error, Memory, Result, Src, SyncedMemory,
    device::{
        CudaDevice,
        cuda::{CudaBuilder, CudaFailure},
    },
    kernel::{Blas, Elementwise},
    ledger::{self, Policy, PolicyGuard},
    op::{Axis, Binary, Unary},
};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    thread,
};

/// Whether tests are to run on a GPU, and to fail where there is none.
fn required() -> bool {
    env::var_os("CORTADO_REQUIRE_CUDA").is_some_and(|value| value == "1")
}

/// The driver's stand-in; `None` where there is no compiler for it, or a GPU is required.
fn driver() -> Option<&'static Path> {
    static DRIVER: OnceLock<Option<PathBuf>> = OnceLock::new();
    if required() {
        return None;
    }
    let library = DRIVER.get_or_init(cuda_on_cpu::library).as_deref();
    if library.is_none() {
        println!("SKIPPED: there is no g++, which compiles kernels for the processor");
    }
    library
}

/// The GPU of this number; `None` where neither it nor a compiler for its stand-in is there.
fn gpu(ordinal: u32) -> Option<CudaDevice> {
    gpu_with(ordinal, |builder| builder)
}

/// As [`gpu`], opened in another way.
fn gpu_with(ordinal: u32, how: impl Fn(CudaBuilder) -> CudaBuilder) -> Option<CudaDevice> {
    let builder = how(CudaDevice::builder().threads(1));
    if required() {
        return Some(builder.open(ordinal).unwrap());
    }
    Some(builder.driver_path(driver()?).open(ordinal).unwrap())
}

/// The GPU of this number, in tests that a real one would not pass: it is sound.
fn stand_in(ordinal: u32) -> Option<CudaDevice> {
    if required() { None } else { gpu(ordinal) }
}

/// A GPU of which, as long as the second is kept, nothing may be left to the host.
fn strict(ordinal: u32) -> Option<(CudaDevice, PolicyGuard)> {
    Some((gpu(ordinal)?, ledger::set_fallback_policy(Policy::Deny)))
}

cortado::conformance!(cuda, or_skip!(strict(0)).0);

#[test]
fn the_readme_shows_the_coverage() {
    let table =
        include_str!("../README.md").split_once("| kernel | CPU | simulated | CUDA | wgpu |\n");
    let (_, rows) = table.unwrap();
    for row in rows.lines().skip(1).take_while(|row| row.starts_with('|')) {
        assert_eq!(row.split('|').nth(4), Some(" all "), "{row}");
    }
}

fn values<D: Device>(device: &D, n: usize) -> Blob<f32, D> {
    Blob::from_vec(device, &[n], (0..n).map(|i| i as f32 - 7.5).collect()).unwrap()
}

#[test]
fn a_device_tells_what_it_is() {
    let device = or_skip!(gpu(0));
    assert_eq!(device.name(), "cuda:0");
    let told = device.properties();
    for name in ["processor", "compute capability", "multiprocessors", "memory", "driver"] {
        assert!(told.iter().any(|(known, value)| *known == name && !value.is_empty()), "{name}");
    }
}

/// In a process of its own: one that has opened a driver keeps it.
#[test]
fn without_a_driver_there_is_one_clear_error() {
    if env::var_os("CORTADO_LIBCUDA").is_none_or(|path| path != "/nowhere/libcuda.so.1") {
        let name = "without_a_driver_there_is_one_clear_error";
        let mut alone = Command::new(env::current_exe().unwrap());
        alone.args(["--exact", name]).env("CORTADO_LIBCUDA", "/nowhere/libcuda.so.1");
        let done = alone.output().unwrap();
        return assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    }
    for _ in 0..2 {
        let said = CudaDevice::new(0).unwrap_err().to_string();
        assert!(said.starts_with("device `cuda`: ") && said.contains("/nowhere/libcuda"), "{said}");
    }
    assert_eq!(cortado::device::device_names(), ["cpu"]);
}

#[test]
fn a_number_too_high_and_another_driver_are_refused() {
    let device = or_skip!(gpu(0));
    let said = CudaDevice::new(99).unwrap_err().to_string();
    assert!(required() || said.contains("cuda:99") || said.contains("driver in use"), "{said}");
    let other = CudaDevice::builder().driver_path("/nowhere/libcuda.so.1".as_ref());
    let said = other.open(0).unwrap_err().to_string();
    assert!(said.contains("/nowhere/libcuda.so.1: the driver in use is"), "{said}");
    drop(device);
}

#[test]
fn devices_are_apart() {
    let (a, b) = (or_skip!(stand_in(0)), or_skip!(stand_in(1)));
    let (x, y) = (values(&a, 40), values(&b, 40));
    x.scale_data(2.0).unwrap();
    y.scale_data(3.0).unwrap();
    b.order_after(&a).unwrap();
    assert_eq!(x.data().unwrap().host().unwrap()[0], -15.0);
    assert_eq!(y.data().unwrap().host().unwrap()[0], -22.5);
}

#[test]
fn any_thread_may_use_and_drop() {
    let device = or_skip!(gpu(0));
    let x = values(&device, 1000);
    x.scale_data(2.0).unwrap();
    let worker = thread::spawn(move || {
        x.scale_data(0.5).unwrap();
        let first = x.data().unwrap().host().unwrap()[0];
        x.data_mut().unwrap().view_mut().device_mut().unwrap();
        first
    });
    assert_eq!(worker.join().unwrap(), -7.5);
    assert_eq!(values(&device, 3).sumsq_data().unwrap(), 7.5 * 7.5 + 6.5 * 6.5 + 5.5 * 5.5);
}

/// A buffer that another queue still uses is given back after that.
#[test]
fn memory_in_use_elsewhere_stays() {
    let device = or_skip!(gpu(0));
    let queue = device.fork_queue().unwrap();
    for _ in 0..20 {
        let (x, y) = (values(&device, 100_000), Blob::<f32, _>::new(&device, &[100_000]).unwrap());
        x.data().unwrap().view().device().unwrap();
        {
            let (x, mut y) = (x.data().unwrap(), y.data_mut().unwrap());
            queue.unary(Unary::Neg, x.view().into(), y.view_mut()).unwrap();
        }
        drop(x);
        let other = Blob::<f32, _>::new(&device, &[100_000]).unwrap();
        device.fill(9.0, other.data_mut().unwrap().view_mut()).unwrap();
        device.synchronize().unwrap();
        device.order_after(&queue).unwrap();
        assert_eq!(y.data().unwrap().host().unwrap()[..2], [7.5, 6.5]);
    }
}

#[test]
fn out_of_memory_is_an_error_that_passes() {
    let small = or_skip!(stand_in(3));
    let first = small.alloc(600 << 10).unwrap();
    let full = small.alloc(600 << 10);
    assert!(matches!(full, Err(Error::OutOfMemory { bytes: 0x96000, .. })), "{full:?}");
    drop(first);
    drop(small.alloc(600 << 10).unwrap());
    small.trim_pools().unwrap();
}

#[test]
fn no_more_than_the_limit_is_used() {
    let device = or_skip!(gpu(0));
    drop(device);
    let limited = CudaDevice::builder().memory_limit(1 << 20);
    let limited = driver().into_iter().fold(limited, |builder, path| builder.driver_path(path));
    let limited = limited.open(0).unwrap();
    let half = limited.alloc(1 << 19).unwrap();
    assert!(matches!(limited.alloc(1 << 20), Err(Error::OutOfMemory { .. })));
    drop(half);
    assert_eq!(limited.alloc(1 << 20).unwrap().len(), 1 << 20);
}

/// Card 2 fails in `exp_f64`: what waits is told of it, and by which kernel.
#[test]
fn a_failure_names_its_launch() {
    let broken = or_skip!(stand_in(2));
    let y = Blob::from_vec(&broken, &[3], vec![1.0f64, 2.0, 3.0]).unwrap();
    let apply = |op| {
        let mut y = y.data_mut().unwrap();
        broken.unary(op, Src::InPlace, y.view_mut())
    };
    apply(Unary::Sqr).unwrap();
    broken.synchronize().unwrap();
    let line = line!() - 4;
    apply(Unary::Exp).unwrap();
    let failed = broken.synchronize().unwrap_err();
    let said = failed.to_string();
    assert!(said.contains("`cuda:2`: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    assert!(said.ends_with(&format!("in exp_f64 called at tests/cuda.rs:{line}:16")), "{said}");
    let Error::Device { source, .. } = failed else { panic!("{failed:?}") };
    assert_eq!(source.downcast_ref::<CudaFailure>().unwrap().code, 700);
    // From then on the card does nothing; others do.
    assert!(broken.alloc(4).is_err() && y.data().unwrap().host().is_err());
    assert_eq!(values(&or_skip!(gpu(0)), 1).data().unwrap().host().unwrap(), [-7.5]);
}

/// Of what has kernels nothing is left to the host, and nothing is copied for it.
#[test]
fn kernels_are_the_devices_own() {
    fn run<T: cortado::Element>(device: &CudaDevice) -> Result<()> {
        let blobs: [Blob<T, _>; 3] = [(); 3].map(|()| Blob::new(device, &[6]).unwrap());
        let [x, y, z] = &blobs;
        let along = Blob::<T, _>::new(device, &[3])?;
        let axis = Axis { outer: 1, extent: 3, inner: 2 };
        for blob in [x, y, z, &along] {
            device.fill(T::from_f64(2.0), blob.data_mut()?.view_mut())?;
        }
        let c = T::acc(0.5);
        device.copy(x.data()?.view(), y.data_mut()?.view_mut())?;
        device.scal(c, y.data_mut()?.view_mut())?;
        device.axpy(c, x.data()?.view(), y.data_mut()?.view_mut())?;
        device.axpby(c, x.data()?.view(), c, y.data_mut()?.view_mut())?;
        device.unary(Unary::Tanh, x.data()?.view().into(), y.data_mut()?.view_mut())?;
        let (x, y, mut z) = (x.data()?, y.data()?, z.data_mut()?);
        let along = along.data()?;
        device.binary(Binary::Mul, x.view().into(), y.view(), z.view_mut())?;
        device.broadcast(Binary::Add, &axis, x.view().into(), along.view(), z.view_mut())?;
        device.affine(&axis, Src::InPlace, along.view(), along.view(), z.view_mut())?;
        device.convert(x.view(), z.view_mut())?;
        let whole = SyncedMemory::new(device, 24);
        device.convert_integers(cortado::View::<u32, _>::new(&whole, 6)?, z.view_mut())
    }
    let device = or_skip!(gpu(0));
    let (_fallbacks, _copies) =
        (ledger::set_fallback_policy(Policy::Deny), ledger::set_transfer_policy(Policy::Deny));
    run::<cortado::f16>(&device).unwrap();
    run::<cortado::bf16>(&device).unwrap();
    run::<f32>(&device).unwrap();
    run::<f64>(&device).unwrap();
}

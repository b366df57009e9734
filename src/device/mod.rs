//! Compute devices, which can be opened by name.

mod any;
mod cpu;
#[cfg(feature = "cuda")]
#[allow(unsafe_code)] // Calls to the driver and to cuBLAS are `unsafe`.
pub mod cuda;
mod options;
pub mod simulated;

#[cfg(feature = "cuda")]
pub use cuda::CudaDevice;
pub use {
    any::AnyDevice,
    cpu::{CpuDevice, host_memory_bytes},
    options::{DeviceOptions, GemmBackend},
    simulated::SimulatedDevice,
};

use crate::{
    error::{Error, Result},
    kernel::{
        Blas, Conv, Elementwise, Indexing, Losses, Normalize, Pooling, Random, Reductions, Update,
    },
    memory::Memory,
};

/// A compute device: the only trait bound that generic code needs. [`AnyDevice`] is a device type
/// for code that is not generic over the device.
///
/// Every type that implements [`Memory`] and all kernel families implements `Device`. The macro
/// [`families!`](crate::families) implements kernel families without overriding a kernel.
///
/// ```
/// use cortado::prelude::*;
///
/// fn squared_distance<D: Device>(device: &D) -> Result<f32> {
///     let a = Blob::from_slice(device, &[2], &[1.0, 2.0])?;
///     let b = Blob::from_slice(device, &[2], &[4.0, 6.0])?;
///     a.sub(&b)?.apply(Unary::Sqr)?.sum_all()
/// }
///
/// assert_eq!(squared_distance(&CpuDevice::new())?, 25.0);
/// assert_eq!(squared_distance(&SimulatedDevice::new())?, 25.0);
/// # Ok::<(), cortado::Error>(())
/// ```
pub trait Device:
    Memory
    + Blas
    + Elementwise
    + Reductions
    + Random
    + Conv
    + Pooling
    + Normalize
    + Losses
    + Indexing
    + Update
{
}

impl<D> Device for D where
    D: Memory
        + Blas
        + Elementwise
        + Reductions
        + Random
        + Conv
        + Pooling
        + Normalize
        + Losses
        + Indexing
        + Update
{
}

/// Implements the named kernel families for a device type, with the default implementation of every
/// kernel. If a call names no family, the macro implements all families.
///
/// ```
/// # use cortado::{Device, Memory, Result};
/// # #[derive(Clone, Debug)]
/// struct Remote;
/// # impl Memory for Remote {
/// #     type Buffer = Vec<u8>;
/// #     fn name(&self) -> String { "remote".into() }
/// #     fn alloc(&self, bytes: usize) -> Result<Vec<u8>> { Ok(vec![0; bytes]) }
/// #     fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
/// #         dst[at..at + src.len()].copy_from_slice(src);
/// #         Ok(())
/// #     }
/// #     fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
/// #         dst.copy_from_slice(&src[at..at + dst.len()]);
/// #         Ok(())
/// #     }
/// # }
/// cortado::families!(Remote);
/// fn complete<D: Device>() {}
/// complete::<Remote>();
/// ```
#[macro_export]
macro_rules! families {
    ($device:ty) => {
        $crate::families!(
            $device: Blas, Elementwise, Reductions, Random, Conv, Pooling, Normalize, Losses,
            Indexing, Update
        );
    };
    ($device:ty: $($family:ident),+ $(,)?) => {
        $(impl $crate::kernel::$family for $device {})+
    };
}

/// Opens the device called `name`: `cpu`, `cuda:0` for the first GPU, or `simulated` for a
/// [`SimulatedDevice`]. The name `cuda` stands for `cuda:0`, and `mirror` is the old name of
/// `simulated`.
///
/// ```
/// use cortado::{Net, device, proto::NetParameter};
///
/// let device = device::open("cpu", device::DeviceOptions::with_threads(1))?;
/// let net = Net::<f32>::builder(&device).build(&NetParameter::default())?;
/// let simulated = device::open("simulated", device::DeviceOptions::with_threads(1))?;
/// assert!(cortado::Memory::host_mapping(&simulated).is_none(), "the memory is separate");
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// [`Error::UnknownDevice`], which lists the devices of this build, for an unknown `name`;
/// [`Error::InvalidData`] if the device does not support an option; [`Error::Device`] if the device
/// cannot be opened.
pub fn open(name: &str, options: DeviceOptions) -> Result<AnyDevice> {
    let device = open_unlimited(name, options)?;
    Ok(match options.memory_limit {
        Some(bytes) => device.with_memory_limit(bytes),
        None => device,
    })
}

fn open_unlimited(name: &str, options: DeviceOptions) -> Result<AnyDevice> {
    match (name, gpu_ordinal(name)) {
        ("cpu", _) => {
            options.refuse_gpu_only(name)?;
            Ok(AnyDevice::new(&CpuDevice::with_threads(options.threads)?))
        }
        (SIMULATED | "mirror", _) => {
            options.refuse_gpu_only(name)?;
            Ok(AnyDevice::new(&SimulatedDevice::with_threads(options.threads)?))
        }
        #[cfg(feature = "cuda")]
        (_, Some(ordinal)) => {
            let DeviceOptions { threads, gemm_backend, tf32, cuda_graphs, .. } = options;
            let builder = CudaDevice::builder().threads(threads).gemm_backend(gemm_backend);
            let builder = builder.tf32(tf32).graphs(cuda_graphs);
            Ok(AnyDevice::new(&builder.open(ordinal)?))
        }
        #[cfg(not(feature = "cuda"))]
        (_, Some(_)) => Err(Error::InvalidData(format!("device `{name}`: {CUDA_DISABLED}"))),
        _ => {
            let known = [&device_names()[..], &[SIMULATED.into()]].concat().join(", ");
            Err(Error::UnknownDevice { name: name.into(), known })
        }
    }
}

/// The name of the simulated device.
const SIMULATED: &str = "simulated";

#[cfg(not(feature = "cuda"))]
const CUDA_DISABLED: &str = "this build lacks the feature `cuda`";

/// Returns the ordinal of the GPU called `name`, or `None` if `name` is not the name of a GPU.
fn gpu_ordinal(name: &str) -> Option<u32> {
    match name.strip_prefix("cuda")? {
        "" => Some(0),
        number => number.strip_prefix(':')?.parse().ok(),
    }
}

/// Returns the names of this machine's devices, which [`open`] accepts: the CPU and the GPUs.
///
/// ```
/// assert_eq!(cortado::device::device_names()[0], "cpu");
/// ```
pub fn device_names() -> Vec<String> {
    let gpus = (0..cuda_device_count().unwrap_or(0)).map(|gpu| format!("cuda:{gpu}"));
    [String::from("cpu")].into_iter().chain(gpus).collect()
}

/// Returns the number of NVIDIA GPUs.
///
/// # Errors
/// [`Error::Device`] if the machine has no NVIDIA driver; [`Error::InvalidData`] if this build
/// lacks the feature `cuda`.
pub fn cuda_device_count() -> Result<u32> {
    #[cfg(feature = "cuda")]
    return CudaDevice::count();
    #[cfg(not(feature = "cuda"))]
    Err(Error::InvalidData(CUDA_DISABLED.into()))
}

//! Complete devices, and choosing one at run time.

mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod simulated;
mod options;

#[cfg(feature = "cuda")]
pub use cuda::CudaDevice;
pub use {
    cpu::CpuDevice,
    simulated::SimulatedDevice,
    options::{DeviceOptions, GemmBackend},
};

use crate::{
    error::{Error, Result},
    kernel::{
        Blas, Conv, Elementwise, Indexing, Losses, Normalize, Pooling, Random, Reductions, Update,
    },
    memory::Memory,
};

/// A compute device: the only bound that generic code needs.
///
/// Implemented by every type that implements [`Memory`] and all kernel families, by
/// [`families!`](crate::families) or one by one; there is nothing else to write.
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

/// Implements the kernel families named for a type, with all their defaults; without names, all
/// of them.
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

/// Work that is generic over the device, as the verbs of the command line are.
pub trait DeviceJob {
    /// What the work yields.
    type Output;
    /// Does the work.
    fn run<D: Device>(self, device: D) -> Result<Self::Output>;
}

/// Runs `job` on the device called `name`, with `threads` host threads (0: as many as the
/// machine runs at once): the one place where a run-time choice becomes a type. `cuda` is
/// `cuda:0`.
///
/// # Errors
/// [`Error::UnknownDevice`] names those that this build knows; [`Error::Device`] if it cannot be
/// opened; else what the job returns.
pub fn with_device<J: DeviceJob>(name: &str, threads: usize, job: J) -> Result<J::Output> {
    with_device_options(name, DeviceOptions::with_threads(threads), job)
}

/// As [`on_device`], on a device that is opened so.
///
/// # Errors
/// As [`on_device`]; [`Error::InvalidData`] if the device has no choice of what is asked for.
pub fn with_device_options<J: DeviceJob>(
    name: &str,
    opening: DeviceOptions,
    job: J,
) -> Result<J::Output> {
    let unknown =
        || Err(Error::UnknownDevice { name: name.into(), known: device_names().join(", ") });
    match (name, gpu(name)) {
        ("cpu", _) => match opening.of_gpus() {
            None => job.run(CpuDevice::with_threads(opening.threads)?),
            Some(what) => {
                Err(Error::InvalidData(format!("device `cpu`: {what} is for NVIDIA GPUs")))
            }
        },
        #[cfg(feature = "cuda")]
        (_, Some(ordinal)) => {
            let DeviceOptions { threads, products, tf32 } = opening;
            let builder = CudaDevice::builder().threads(threads).gemm_backend(products).tf32(tf32);
            job.run(builder.open(ordinal)?)
        }
        #[cfg(not(feature = "cuda"))]
        (_, Some(_)) => Err(Error::InvalidData(format!(
            "device `{name}`: this build is without the feature `cuda`"
        ))),
        _ => unknown(),
    }
}

/// The number of the GPU called `name`, if it is the name of one.
fn gpu(name: &str) -> Option<u32> {
    match name.strip_prefix("cuda")? {
        "" => Some(0),
        number => number.strip_prefix(':')?.parse().ok(),
    }
}

/// The names that [`on_device`] takes on this machine.
pub fn device_names() -> Vec<String> {
    let gpus = (0..cuda_device_count().unwrap_or(0)).map(|gpu| format!("cuda:{gpu}"));
    [String::from("cpu")].into_iter().chain(gpus).collect()
}

/// How many NVIDIA GPUs there are.
///
/// # Errors
/// Why this cannot be known: there is no driver, or this build is without the feature `cuda`.
pub fn cuda_device_count() -> Result<u32> {
    #[cfg(feature = "cuda")]
    return CudaDevice::count();
    #[cfg(not(feature = "cuda"))]
    Err(Error::InvalidData("this build is without the feature `cuda`".into()))
}

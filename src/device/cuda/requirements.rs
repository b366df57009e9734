//! Requirements on the driver and the GPU, checked when a GPU is opened.

use super::{
    error::{CudaFailure, from_cust},
    module::CAPABILITIES,
};
use crate::error::{Error, Result};
use cust::{
    CudaApiVersion,
    device::{Device, DeviceAttribute},
    sys::{
        CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, CUresult,
        cuDeviceGetAttribute,
    },
};

/// Major and minor number of a version.
pub(super) type Version = (i32, i32);

/// CUDA version of the oldest driver that loads the PTX version in `build/sources.rs`.
const MIN_DRIVER: Version = (11, 0);
/// First driver release with the CUDA version `MIN_DRIVER`.
const MIN_DRIVER_RELEASE: &str = "R450";

/// Lowest compute capability for which the kernels are compiled.
const MIN_CAPABILITY: Version = (CAPABILITIES[0] as i32 / 10, CAPABILITIES[0] as i32 % 10);

/// Checks that the driver and the GPU can run the kernels, and returns the GPU's compute
/// capability.
///
/// # Errors
/// [`Error::Device`] with the found and the required version, if the driver or the GPU is too old.
pub(super) fn check(device: &Device, name: &str) -> Result<Version> {
    let on = |failure: CudaFailure| failure.on(name);
    let driver = CudaApiVersion::get().map_err(from_cust("cuDriverGetVersion")).map_err(on)?;
    let driver = (driver.major(), driver.minor());
    if driver < MIN_DRIVER {
        let ((major, minor), (min_major, min_minor)) = (driver, MIN_DRIVER);
        let reason = format!(
            "the driver is too old: found CUDA {major}.{minor}, expected {min_major}.{min_minor} \
             or later; install driver {MIN_DRIVER_RELEASE} or later"
        );
        return Err(Error::device(name, reason));
    }
    let capability = capability(device).map_err(on)?;
    if capability < MIN_CAPABILITY {
        let ((major, minor), (min_major, min_minor)) = (capability, MIN_CAPABILITY);
        let gpu = device.name().unwrap_or_else(|_| "the GPU".into());
        let reason = format!(
            "{gpu}: the compute capability is too low: found {major}.{minor}, expected \
             {min_major}.{min_minor} or later; use another GPU or the device `cpu`"
        );
        return Err(Error::device(name, reason));
    }
    Ok(capability)
}

/// Returns the compute capability of a GPU.
fn capability(device: &Device) -> Result<Version, CudaFailure> {
    let number = |which| device.get_attribute(which).map_err(from_cust("cuDeviceGetAttribute"));
    let major = number(DeviceAttribute::ComputeCapabilityMajor)?;
    Ok((major, number(DeviceAttribute::ComputeCapabilityMinor)?))
}

/// CUDA version of the oldest driver that creates CUDA graphs by the functions that `graph` calls.
const MIN_GRAPH_DRIVER: Version = (11, 4);

/// Returns whether the driver can launch the kernels of a queue as CUDA graphs. Logs a warning for
/// the device called `name` if the driver is too old.
pub(super) fn has_graphs(name: &str) -> bool {
    let driver = CudaApiVersion::get().map(|version| (version.major(), version.minor()));
    let has_graphs = driver.is_ok_and(|driver| driver >= MIN_GRAPH_DRIVER);
    if !has_graphs {
        log::warn!(
            "{name}: the driver is too old for CUDA graphs, so kernels are launched one by one; \
             install driver R470 or later"
        );
    }
    has_graphs
}

/// Returns whether the driver and the GPU have memory pools. Drivers before CUDA 11.2 have no
/// memory pools, and return an error for the attribute that states the support of memory pools.
pub(super) fn has_memory_pools(device: &Device) -> bool {
    let mut supported = 0;
    // SAFETY: `supported` is valid for writes of an integer.
    let result = unsafe {
        cuDeviceGetAttribute(
            &mut supported,
            CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
            device.as_raw(),
        )
    };
    result == CUresult::CUDA_SUCCESS && supported != 0
}

//! A shared library that contains cortado's CUDA backend and exports one function. `.ci/cuda`
//! checks that the library exports no function of the CUDA driver.

/// Returns whether the first GPU can be opened.
#[unsafe(no_mangle)]
pub extern "C" fn has_gpu() -> bool {
    cortado::device::CudaDevice::new(0).is_ok()
}

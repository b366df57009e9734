//! The backend against cortado's own checks: one device, whose pipelines are compiled once, and for
//! each test a stream of its own, since some of them make the device complain.

use cortado::Memory;
use cortado_wgpu::WgpuDevice;
use std::sync::OnceLock;

fn stream() -> WgpuDevice {
    static DEVICE: OnceLock<WgpuDevice> = OnceLock::new();
    DEVICE.get_or_init(|| WgpuDevice::new().unwrap()).fork().unwrap()
}

cortado::conformance!(wgpu, stream());

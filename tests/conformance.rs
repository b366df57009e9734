//! Runs the conformance kit with all its random cases on the CPU, the simulated device and a device
//! with four methods.

#[path = "library/remote.rs"]
mod remote;

use cortado::{CpuDevice, device::SimulatedDevice};
use remote::Remote;

cortado::conformance!(cpu, CpuDevice::new());
cortado::conformance!(simulated, SimulatedDevice::new());
cortado::conformance!(four_methods, Remote);

//! Runs the conformance kit with all its random cases on the CPU, the simulated device and a device
//! with four methods.

#[allow(dead_code)] // this device has no bug
#[path = "library/remote.rs"]
mod remote;

use cortado::{CpuDevice, device::SimulatedDevice};
use remote::Observed;

cortado::conformance!(cpu, CpuDevice::new());
cortado::conformance!(simulated, SimulatedDevice::new());
cortado::conformance!(four_methods, Observed::default());

//! Runs the conformance kit with all random cases on the CPU, the simulated device and a device
//! without native kernels.

#[allow(dead_code)] // this program uses only one of the bugs of `axpy`
#[path = "library/remote.rs"]
mod remote;

use cortado::{CpuDevice, conformance::Kit, device::SimulatedDevice};
use remote::{Axpy, Observed};
use std::process::Command;

cortado::conformance!(cpu, CpuDevice::new());
cortado::conformance!(simulated, SimulatedDevice::new());
cortado::conformance!(four_methods, Observed::default());

#[test]
fn a_skipped_check_prints_its_reason_although_its_test_passes() {
    let program = std::env::current_exe().unwrap();
    let output =
        Command::new(program).args(["--exact", "four_methods::injected_failures"]).output();
    let output = output.unwrap();
    let error_output = String::from_utf8_lossy(&output.stderr);
    let line = "skipped in `injected_failures` on `remote`: the device does not implement \
                `inject_failure`\n";
    assert!(output.status.success() && error_output.contains(line), "{output:?}");
}

#[test]
fn a_panic_in_one_kernel_fails_its_check_and_other_checks_still_run() {
    let device = Observed { axpy: Axpy::Panics, ..Observed::default() };
    let report = Kit::new().cases(0).run(&device);
    assert_eq!(report.failures().filter(|failure| failure.check == "axpy").count(), 4);
    let table = report.coverage().to_string();
    assert!(table.contains("| axpy | failed | failed | failed | failed |\n"), "{table}");
    assert!(table.contains("| dot | fallback | fallback | fallback | fallback |\n"), "{table}");
}

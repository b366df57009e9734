//! Runs the conformance kit with all random cases on the CPU, the simulated device and a device
//! without native kernels.

#[allow(dead_code)] // this program uses only one of the bugs of `axpy`
#[path = "library/remote.rs"]
mod remote;
#[path = "library/coverage.rs"]
mod coverage;

use cortado::{
    CpuDevice, Device,
    conformance::{Kit, Outcome, Report},
    device::SimulatedDevice,
};
use coverage::assert_readme_shows;
use remote::{Axpy, Observed};
use std::process::Command;

cortado::conformance!(cpu, CpuDevice::new());
cortado::conformance!(simulated, SimulatedDevice::new());
cortado::conformance!(four_methods, Observed::default());

/// Returns the report of a run without random cases.
fn report(device: &impl Device) -> Report {
    Kit::new().cases(0).run(device)
}

fn outcome(report: &Report, check: &str) -> Outcome {
    let mut results = report.results.iter();
    results.find(|result| result.check == check).unwrap().outcome.clone()
}

#[test]
fn the_coverage_of_the_simulated_device_is_in_the_readme_and_skips_nothing() {
    let report = report(&SimulatedDevice::new());
    assert!(report.passed());
    assert_readme_shows(&report, 3);
    assert_eq!(outcome(&report, "injected_failures"), Outcome::Native);
    assert!(!report.coverage().to_string().contains("Skipped"));
}

#[test]
fn the_coverage_of_a_device_with_four_methods_shows_fallbacks_and_skipped_checks() {
    let report = report(&Observed::default());
    assert!(report.passed());
    let coverage = report.coverage();
    assert_eq!(coverage.native_cells().0, 0, "{coverage}");
    let reason = "the device does not implement `inject_failure`";
    assert_eq!(outcome(&report, "injected_failures"), Outcome::Skipped(reason.into()));
    let table = coverage.to_string();
    assert!(table.contains("| axpy | fallback | fallback | fallback | fallback |\n"), "{table}");
    let line = format!("\nSkipped in `injected_failures`, `queue_failures`: {reason}.\n");
    assert!(table.contains(&line), "{table}");
    let line =
        "\nSkipped in `failed_outputs`: the device has no native kernel with several outputs.\n";
    assert!(table.contains(line), "{table}");
    let line = "\nSkipped in `spans`: the device does not implement `record_spans`.\n";
    assert!(table.ends_with(line), "{table}");
}

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
    let report = report(&device);
    assert_eq!(report.failures().filter(|failure| failure.check == "axpy").count(), 4);
    let table = report.coverage().to_string();
    assert!(table.contains("| axpy | failed | failed | failed | failed |\n"), "{table}");
    assert!(table.contains("| dot | fallback | fallback | fallback | fallback |\n"), "{table}");
}

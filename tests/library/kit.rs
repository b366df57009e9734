//! Tests of the conformance kit with few random cases: all checks on the CPU, and some checks on
//! other devices. The test program `tests/conformance.rs` runs all checks with all random cases on
//! all devices.

use crate::{
    coverage::assert_readme_shows,
    remote::{Axpy, Observed},
};
use cortado::{
    CpuDevice, DType,
    conformance::{Kit, NAMES, Outcome},
    device::SimulatedDevice,
    kernel,
};
use std::{collections::BTreeSet, time::Duration};

/// Checks of memory and queues, which differ between devices that have the same kernels.
const MEMORY_CHECKS: [&str; 9] = [
    "raw_copies",
    "coherence",
    "sharing",
    "queues",
    "queue_order",
    "freed_in_flight",
    "reused_memory",
    "out_of_memory",
    "alive_after_errors",
];

/// Checks several properties of one report, because a run of the conformance kit takes 20 seconds
/// of processor time in a debug build.
#[test]
fn the_cpu_passes_the_conformance_kit_with_native_kernels() {
    let report = Kit::new().cases(2).run(&CpuDevice::new());
    assert!(report.passed(), "{:?}", report.failures().collect::<Vec<_>>());

    let mut checks: Vec<_> = report.results.iter().map(|finding| finding.check).collect();
    checks.dedup();
    let first_difference = NAMES.iter().zip(&checks).find(|(name, check)| name != check);
    assert!(
        NAMES == checks,
        "src/conformance/mod.rs: the list in `conformance!` differs from the {} checks of the kit; \
         first difference (listed, found): {first_difference:?}",
        checks.len()
    );

    let kernels_and_checks =
        report.results.iter().filter_map(|finding| Some((finding.kernel?, finding.check)));
    assert_eq!(
        kernels_and_checks.clone().map(|(kernel, _)| kernel).collect::<BTreeSet<_>>(),
        kernel::names().collect::<BTreeSet<_>>(),
        "each kernel has a check, and each check has a declared kernel"
    );

    let coverage = report.coverage();
    let (native, cells) = coverage.native_cells();
    assert_eq!(native, cells, "{coverage}");
    let json = coverage.to_json();
    assert!(json.starts_with("{\n  \"device\": \"cpu\",\n"), "{json}");
    assert!(json.contains("\"bernoulli\": {\"u32\": \"native\"}"), "{json}");
    let table = coverage.to_string();
    for (kernel, check) in kernels_and_checks {
        assert!(table.contains(&format!("\n| {check} |")), "{kernel}: no row `{check}`\n{table}");
    }
    assert_readme_shows(&report, 2);
}

#[test]
fn other_devices_pass_the_checks_of_memory() {
    let kit = Kit::new().cases(2);
    for name in MEMORY_CHECKS {
        assert_eq!(kit.check(&SimulatedDevice::new(), name), Ok(()));
        assert_eq!(kit.check(&Observed::default(), name), Ok(()));
    }
    for name in ["injected_failures", "queue_failures", "failed_outputs"] {
        assert_eq!(kit.check(&SimulatedDevice::new(), name), Ok(()));
    }
}

#[test]
fn a_check_with_an_unknown_name_fails() {
    let failure = Kit::new().check(&CpuDevice::new(), "nonsense").unwrap_err();
    assert!(failure.message.contains("nonsense"), "{failure}");
}

#[test]
fn a_failed_check_reports_the_smallest_case_and_is_reproducible() {
    let device = Observed { axpy: Axpy::SkipsSomeLengths, ..Observed::default() };
    let kit = Kit::new().seed(3).cases(500);
    let failure = kit.check(&device, "axpy").unwrap_err();
    assert_eq!((failure.check, failure.element), ("axpy", Some(DType::F32)));
    assert!(failure.message.contains("len: 100,"), "{failure}");
    assert!(failure.to_string().contains("CORTADO_SEED=3 CORTADO_CASES=500"), "{failure}");
    assert_eq!(kit.first_failure(&device), Some(failure));
}

#[test]
fn a_check_that_hangs_fails_with_its_step_and_the_kit_skips_the_checks_after_it() {
    let device = Observed { axpy: Axpy::Hangs, ..Observed::default() };
    let report = Kit::new().cases(0).timeout(Duration::from_secs(3)).run(&device);
    let [failure] = &report.failures().collect::<Vec<_>>()[..] else { panic!("{report:?}") };
    assert_eq!(failure.check, "sharing");
    let step = "hangs: the check has waited for more than 3s in the step: reads of 0 elements that \
                two blobs share";
    assert!(failure.message.starts_with(step), "{failure}");
    let rest = report.results.iter().skip_while(|result| result.check != "sharing").skip(1);
    let skipped = Outcome::Skipped("the check `sharing` hangs".into());
    assert!(rest.clone().count() > 100 && rest.clone().all(|result| result.outcome == skipped));
    let table = report.coverage().to_string();
    assert!(table.contains("\nSkipped in `queues`, `queue_order`,"), "{table}");
}

#[test]
fn a_panic_in_a_kernel_fails_only_the_check_of_the_kernel() {
    let device = Observed { axpy: Axpy::Panics, ..Observed::default() };
    let kit = Kit::new().cases(0);
    let failure = kit.check(&device, "axpy").unwrap_err();
    assert_eq!(failure.message, "panicked: injected panic");
    assert_eq!(kit.check(&device, "scal"), Ok(()));
}

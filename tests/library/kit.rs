//! Tests of the conformance kit, with few random cases. The test program `tests/conformance.rs`
//! runs the conformance kit with all random cases.

use crate::remote::{Axpy, Observed};
use cortado::{
    CpuDevice, DType, Device,
    conformance::{Kit, NAMES, Outcome, Report},
    device::SimulatedDevice,
    kernel,
};
use std::{collections::BTreeSet, sync::LazyLock, time::Duration};

// Reports of the conformance kit with all checks, on three devices.
static CPU: LazyLock<Report> = LazyLock::new(|| run(&CpuDevice::new()));
static SIMULATED: LazyLock<Report> = LazyLock::new(|| run(&SimulatedDevice::new()));
static REMOTE: LazyLock<Report> = LazyLock::new(|| run(&Observed::default()));

fn run(device: &impl Device) -> Report {
    Kit::new().cases(2).run(device)
}

fn assert_passed(report: &Report) {
    assert!(report.passed(), "{:?}", report.failures().collect::<Vec<_>>());
}

#[test]
fn the_cpu_passes_the_conformance_kit() {
    assert_passed(&CPU);
}

#[test]
fn the_simulated_device_passes_the_conformance_kit() {
    assert_passed(&SIMULATED);
}

#[test]
fn a_device_with_four_methods_passes_the_conformance_kit() {
    assert_passed(&REMOTE);
}

#[test]
fn conformance_names_lists_the_checks_in_order() {
    let mut checks: Vec<_> = CPU.results.iter().map(|finding| finding.check).collect();
    checks.dedup();
    let first_difference = NAMES.iter().zip(&checks).find(|(name, check)| name != check);
    assert!(
        NAMES == checks,
        "src/conformance/mod.rs: the list in `conformance!` differs from the {} checks of the kit; \
         first difference (listed, found): {first_difference:?}",
        checks.len()
    );
}

#[test]
fn a_check_with_an_unknown_name_fails() {
    let failure = Kit::new().check(&CpuDevice::new(), "nonsense").unwrap_err();
    assert!(failure.message.contains("nonsense"), "{failure}");
}

#[test]
fn coverage_distinguishes_native_kernels_from_fallbacks() {
    let (native, cells) = CPU.coverage().native_cells();
    assert_eq!(native, cells, "{}", CPU.coverage());
    assert_eq!(REMOTE.coverage().native_cells(), (0, cells), "{}", REMOTE.coverage());
    let table = REMOTE.coverage().to_string();
    assert!(table.contains("| axpy | fallback | fallback | fallback | fallback |\n"), "{table}");
    let json = CPU.coverage().to_json();
    assert!(json.starts_with("{\n  \"device\": \"cpu\",\n"), "{json}");
    assert!(json.contains("\"bernoulli\": {\"u32\": \"native\"}"), "{json}");
}

#[test]
fn a_device_that_injects_no_failures_skips_their_check_and_the_table_says_so() {
    let outcome = |report: &Report| -> Outcome {
        let mut results = report.results.iter();
        results.find(|result| result.check == "injected_failures").unwrap().outcome.clone()
    };
    let reason = "the device does not implement `inject_failure`";
    assert_eq!(outcome(&REMOTE), Outcome::Skipped(reason.into()));
    let table = REMOTE.coverage().to_string();
    let line = format!("\nSkipped in `injected_failures`, `queue_failures`: {reason}.\n");
    assert!(table.contains(&line), "{table}");
    let line =
        "\nSkipped in `failed_outputs`: the device has no native kernel with several outputs.\n";
    assert!(table.contains(line), "{table}");
    let line = "\nSkipped in `spans`: the device does not implement `record_spans`.\n";
    assert!(table.ends_with(line), "{table}");
    assert_eq!(outcome(&SIMULATED), Outcome::Native);
    assert!(!SIMULATED.coverage().to_string().contains("Skipped"));
}

#[test]
fn every_kernel_has_a_check_and_every_check_has_a_declared_kernel() {
    let declared_kernels: BTreeSet<_> = kernel::names().collect();
    let kernels_and_checks =
        CPU.results.iter().filter_map(|finding| Some((finding.kernel?, finding.check)));
    assert_eq!(
        kernels_and_checks.clone().map(|(kernel, _)| kernel).collect::<BTreeSet<_>>(),
        declared_kernels
    );
    let table = CPU.coverage().to_string();
    for (kernel, check) in kernels_and_checks {
        assert!(table.contains(&format!("\n| {check} |")), "{kernel}: no row `{check}`\n{table}");
    }
}

#[test]
fn the_readme_shows_the_coverage_table_of_each_device() {
    let readme = include_str!("../../README.md");
    for (column, report) in [(2, &*CPU), (3, &*SIMULATED)] {
        let table = report.coverage().to_string();
        for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
            let kernel = row.split_inclusive('|').take(2).collect::<String>();
            let line = readme.lines().find(|line| line.starts_with(&kernel)).unwrap_or(&kernel);
            let is_native = row.matches("| native ").count() == 4;
            let cell = line.split('|').nth(column).map(str::trim);
            assert_eq!(
                cell == Some("all"),
                is_native,
                "README.md: correct the row {line} to {row}"
            );
        }
    }
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
    let report = Kit::new().cases(0).timeout(Duration::from_secs(5)).run(&device);
    let [failure] = &report.failures().collect::<Vec<_>>()[..] else { panic!("{report:?}") };
    assert_eq!(failure.check, "sharing");
    let step = "hangs: the check has waited for more than 5s in the step: reads of 0 elements that \
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

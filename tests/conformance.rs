//! The kit, run on the devices at hand.

use cortado::{
    CpuDevice, DType, Element, Error, Memory, Result, View, ViewMut,
    conformance::{Kit, NAMES, Report},
    device::SimulatedDevice,
    kernel::{Blas, fallback},
};
use std::sync::LazyLock;

/// Memory that is reached only by copies, and every kernel by default on the host side.
#[derive(Clone, Debug, Default)]
struct Remote {
    axpy: Axpy,
}

/// How one of its kernels does.
#[derive(Clone, Copy, Debug, Default)]
enum Axpy {
    #[default]
    Right,
    /// Does nothing with lengths that no fixed case has.
    SkipsSome,
    Panics,
}

impl Memory for Remote {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        let full = |_| Error::OutOfMemory { device: self.name(), bytes };
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(bytes).map_err(full)?;
        buffer.resize(bytes, 0);
        Ok(buffer)
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        let range = dst.get_mut(at..at + src.len());
        range.ok_or_else(|| Error::device("remote", "out of range"))?.copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        let range = src.get(at..at + dst.len());
        dst.copy_from_slice(range.ok_or_else(|| Error::device("remote", "out of range"))?);
        Ok(())
    }
}

impl Blas for Remote {
    fn axpy<T: Element>(
        &self,
        alpha: T::Acc,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        match self.axpy {
            Axpy::SkipsSome if (100..250).contains(&y.len()) => Ok(()),
            Axpy::Panics => panic!("not today"),
            Axpy::Right | Axpy::SkipsSome => fallback::axpy(self, alpha, x, y),
        }
    }
}

cortado::families!(
    Remote: Elementwise, Reductions, Random, Conv, Pooling, Normalize, Losses, Indexing, Update
);

cortado::conformance!(cpu, CpuDevice::new());
cortado::conformance!(mirror, SimulatedDevice::new());
cortado::conformance!(remote, Remote::default());

/// The whole kit on the CPU, without random cases.
static CPU: LazyLock<Report> = LazyLock::new(|| Kit::new().cases(0).run(&CpuDevice::new()));

#[test]
fn names_are_those_of_the_checks() {
    let mut checks: Vec<_> = CPU.findings.iter().map(|finding| finding.check).collect();
    checks.dedup();
    assert_eq!(NAMES, checks);
}

#[test]
fn a_name_that_is_no_check_is_a_failure() {
    let failure = Kit::new().check(&CpuDevice::new(), "nonsense").unwrap_err();
    assert!(failure.message.contains("nonsense"), "{failure}");
}

#[test]
fn coverage_tells_native_kernels_from_fallbacks() {
    let (native, cells) = CPU.coverage().native_cells();
    assert_eq!(native, cells, "{}", CPU.coverage());
    let remote = Kit::new().cases(0).run(&Remote::default());
    assert!(remote.passed(), "{:?}", remote.failures().collect::<Vec<_>>());
    assert_eq!(remote.coverage().native_cells(), (0, cells), "{}", remote.coverage());
    let table = remote.coverage().to_string();
    assert!(table.contains("| axpy | fallback | fallback | fallback | fallback |\n"), "{table}");
    let json = CPU.coverage().to_json();
    assert!(json.starts_with("{\n  \"device\": \"cpu\",\n"), "{json}");
    assert!(json.contains("\"bernoulli\": {\"u32\": \"native\"}"), "{json}");
}

#[test]
fn the_readme_shows_the_coverage() {
    let readme = include_str!("../README.md");
    let mirror = Kit::new().cases(0).run(&SimulatedDevice::new());
    for (column, report) in [(2, &*CPU), (3, &mirror)] {
        for row in report.coverage().to_string().lines().skip(2) {
            let kernel = row.split_inclusive('|').take(2).collect::<String>();
            let shown = readme.lines().find(|line| line.starts_with(&kernel)).unwrap_or(&kernel);
            let all = row.matches("| native ").count() == 4;
            let says = shown.split('|').nth(column).map(str::trim);
            assert_eq!(says == Some("all"), all, "{row}{shown}");
        }
    }
}

#[test]
fn a_failure_names_the_smallest_case_and_repeats() {
    let (device, kit) = (Remote { axpy: Axpy::SkipsSome }, Kit::new().seed(3).cases(500));
    let failure = kit.check(&device, "axpy").unwrap_err();
    assert_eq!((failure.check, failure.element), ("axpy", Some(DType::F32)));
    assert!(failure.message.contains("len: 100,"), "{failure}");
    assert!(failure.to_string().contains("CORTADO_SEED=3 CORTADO_CASES=500"), "{failure}");
    assert_eq!(kit.first_failure(&device), Some(failure));
    assert_eq!(kit.check(&device, "scal"), Ok(()));
}

#[test]
fn a_panic_is_a_failure_and_the_others_go_on() {
    let report = Kit::new().cases(0).run(&Remote { axpy: Axpy::Panics });
    let of_axpy: Vec<_> = report.failures().filter(|failure| failure.check == "axpy").collect();
    assert_eq!(of_axpy.len(), 4);
    assert_eq!(of_axpy[0].message, "panicked: not today");
    let table = report.coverage().to_string();
    assert!(table.contains("| axpy | failed | failed | failed | failed |\n"), "{table}");
    assert!(table.contains("| dot | fallback | fallback | fallback | fallback |\n"), "{table}");
}

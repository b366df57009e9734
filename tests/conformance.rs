//! The kit, run on the devices at hand.

use cortado::{
    CpuDevice, Error, Memory, Result,
    conformance::{Kit, NAMES},
};

/// Memory that is reached only by copies, and every kernel by default on the host side.
#[derive(Clone, Debug)]
struct Remote;

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

cortado::families!(Remote);

cortado::conformance!(cpu, CpuDevice::new());
cortado::conformance!(remote, Remote);

#[test]
fn names_are_those_of_the_checks() {
    let report = Kit::new().cases(0).run(&CpuDevice::new());
    let mut checks: Vec<_> = report.findings.iter().map(|finding| finding.check).collect();
    checks.dedup();
    assert_eq!(NAMES, checks);
}

#[test]
fn a_name_that_is_no_check_is_a_failure() {
    let failure = Kit::new().check(&CpuDevice::new(), "nonsense").unwrap_err();
    assert!(failure.message.contains("nonsense"), "{failure}");
}

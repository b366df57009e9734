//! Benchmarks of coherent memory: transfers between host and device, and accesses without a
//! transfer. criterion takes the samples.
//!
//! The throughput counts the bytes that a ledger records, so a case that copies nothing has none.
//!
//! ```sh
//! cargo bench --bench transfer
//! cargo bench --bench transfer -- device_to_host --quick
//! ```

mod criterion_bench;

use cortado::{
    CpuDevice, Memory, Result, SyncedMemory,
    bench_kit::Work,
    ledger::{EventKind, Ledger},
};
use criterion_bench::CriterionBench;
use std::hint::black_box;

/// Mock device with separate memory, which lies in host RAM but is accessible only by transfers. A
/// transfer to or from the mock device copies each byte once.
#[derive(Clone, Debug)]
struct Discrete;

impl Memory for Discrete {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "discrete".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        dst[at..at + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        dst.copy_from_slice(&src[at..at + dst.len()]);
        Ok(())
    }
}

/// Sizes of buffers in bytes: 4 KiB fits in L1, 1 MiB in L2, and 64 MiB only in main memory.
const SIZES: [usize; 3] = [1 << 12, 1 << 20, 1 << 26];

/// Returns a `SyncedMemory` of which only the host side is valid.
fn host_valid<D: Memory>(device: &D, bytes: usize) -> SyncedMemory<D> {
    let mut memory = SyncedMemory::new(device, bytes);
    memory.host_mut().unwrap().fill(1);
    memory
}

/// Times one run of `run`, whose bytes are those that a ledger records during a run.
fn time(
    bench: &mut CriterionBench,
    [case, device, size]: [&str; 3],
    mut run: impl FnMut() -> Result<()>,
) -> Result<()> {
    let ledger = Ledger::new();
    let guard = ledger.open();
    let first_run = run();
    drop(guard);
    first_run?;
    let bytes = [EventKind::Upload, EventKind::Download].map(|kind| ledger.total(kind).bytes);
    let work = Work { bytes: bytes.iter().sum(), flops: 0 };
    bench.time([case, "", device, size], work, run)
}

fn transfers<D: Memory>(bench: &mut CriterionBench, device: &D) -> Result<()> {
    let memory = if device.host_mapping().is_some() { "shared memory" } else { "separate memory" };
    let name = &format!("{}, {memory}", device.name());
    for bytes in SIZES {
        let size = &bytes.to_string();
        let mut memory = host_valid(device, bytes);
        memory.device()?;
        time(bench, ["host_to_device", name, size], || {
            memory.host_mut()?[0] = 2;
            memory.device().map(|side| {
                black_box(side);
            })
        })?;
        time(bench, ["device_to_host", name, size], || {
            black_box(memory.device_mut()?);
            memory.host().map(|side| {
                black_box(side);
            })
        })?;
        time(bench, ["write_only_each_side", name, size], || {
            black_box(memory.device_write_only()?);
            memory.host_write_only().map(|side| {
                black_box(side);
            })
        })?;
        memory.device()?;
        time(bench, ["both_valid", name, size], || {
            black_box(memory.host()?);
            memory.device().map(|side| {
                black_box(side);
            })
        })?;
        time(bench, ["first_touch", name, size], || {
            let mut memory = SyncedMemory::new(device, bytes);
            memory.host_mut()?.fill(1);
            memory.device().map(|side| {
                black_box(side);
            })
        })?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut bench = CriterionBench::from_args("transfer")?;
    for _ in bench.report.passes() {
        transfers(&mut bench, &CpuDevice::new())?;
        transfers(&mut bench, &Discrete)?;
    }
    bench.report.finish()
}

//! Benchmarks of coherent memory: transfers between host and device, and accesses without a
//! transfer.
//!
//! The reported throughput is the size of the memory in bytes divided by the time, even for an
//! access that copies nothing.

use cortado::{CpuDevice, Memory, Result, SyncedMemory};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::{hint::black_box, time::Duration};

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

fn bench_transfers<D: Memory>(c: &mut Criterion, device: &D) {
    let mut group = c.benchmark_group(format!("transfer/{}", device.name()));
    for bytes in SIZES {
        group.throughput(Throughput::Bytes(bytes as u64));
        let id = |case: &str| BenchmarkId::new(case.to_owned(), bytes);

        let mut memory = host_valid(device, bytes);
        memory.device().unwrap();
        group.bench_function(id("host_to_device"), |b| {
            b.iter(|| {
                memory.host_mut().unwrap()[0] = 2;
                black_box(memory.device().unwrap());
            });
        });
        group.bench_function(id("device_to_host"), |b| {
            b.iter(|| {
                black_box(memory.device_mut().unwrap());
                black_box(memory.host().unwrap());
            });
        });
        group.bench_function(id("write_only_each_side"), |b| {
            b.iter(|| {
                black_box(memory.device_write_only().unwrap());
                black_box(memory.host_write_only().unwrap());
            });
        });
        memory.device().unwrap();
        group.bench_function(id("both_valid"), |b| {
            b.iter(|| {
                black_box(memory.host().unwrap());
                black_box(memory.device().unwrap());
            });
        });
        group.bench_function(id("first_touch"), |b| {
            b.iter(|| {
                let mut memory = SyncedMemory::new(device, bytes);
                memory.host_mut().unwrap().fill(1);
                black_box(memory.device().unwrap());
            });
        });
    }
    group.finish();
}

fn transfer(c: &mut Criterion) {
    bench_transfers(c, &CpuDevice::new());
    bench_transfers(c, &Discrete);
}

/// Returns a Criterion configuration with a short measurement time per case, because there are many
/// cases.
fn config() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = config();
    targets = transfer
}
criterion_main!(benches);

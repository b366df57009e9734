//! Benchmarks of CPU devices and of the simulated device, with `cortado::bench_kit`. Criterion
//! times each benchmark case. The benchmark then prints tables: each kernel's rates relative to the
//! device's copy bandwidth and GEMM rate, and the sizes from which the device is faster than one
//! CPU thread.
//!
//! ```sh
//! cargo bench --bench devices                # all kernels
//! cargo bench --bench devices -- gemm        # cases of one kernel, and all tables
//! ```

use cortado::{
    CpuDevice, Device, Result,
    bench_kit::{BreakEven, SizeRange, Survey, cases},
    device::SimulatedDevice,
};
use criterion::{BenchmarkId, Criterion, Throughput};
use std::time::Duration;

fn main() -> Result<()> {
    let one_thread = CpuDevice::with_threads(1)?;
    let all_threads = CpuDevice::new();
    // The simulated device runs kernels on one thread, so it differs from the CPU device
    // `one_thread` only in its queue and its transfers.
    let simulated_device = SimulatedDevice::with_threads(1)?;
    // `cargo bench` passes the argument `--bench` to this program. Without `--bench`, or with
    // `--test`, every case runs once and is not timed.
    let args: Vec<_> = std::env::args().collect();
    let is_timed =
        args.iter().any(|arg| arg == "--bench") && !args.iter().any(|arg| arg == "--test");
    let sizes = if is_timed { SizeRange::Full } else { SizeRange::Smoke };

    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(200))
        .sample_size(20)
        .configure_from_args();
    time(&mut criterion, &one_thread, sizes)?;
    time(&mut criterion, &all_threads, sizes)?;
    time(&mut criterion, &simulated_device, sizes)?;
    criterion.final_summary();

    let host = Survey::measure::<f32>(&one_thread, sizes)?;
    println!("\n{host}");
    for survey in [
        Survey::measure::<f32>(&all_threads, sizes)?,
        Survey::measure::<f32>(&simulated_device, sizes)?,
    ] {
        println!("{survey}\n{}", BreakEven::between(&survey, &host));
    }
    Ok(())
}

fn time<D: Device>(criterion: &mut Criterion, device: &D, sizes: SizeRange) -> Result<()> {
    let mut group =
        criterion.benchmark_group(format!("{}-{}", device.name(), device.host_workers().count()));
    for case in cases::<f32>(device, sizes)? {
        let work = case.work();
        group.throughput(match work.flops > work.bytes {
            true => Throughput::Elements(work.flops),
            false => Throughput::Bytes(work.bytes),
        });
        let id = BenchmarkId::new(case.kernel(), case.size());
        group.bench_function(id, |bencher| bencher.iter(|| case.run().unwrap()));
    }
    group.finish();
    Ok(())
}

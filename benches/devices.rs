//! Benchmarks of the CPU and simulated devices, with the benchmark kit. Criterion times each
//! benchmark case. The benchmark then prints tables: each device's rates relative to the device's
//! peak rates, and the sizes from which the device is faster than one CPU thread.
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
    let one = CpuDevice::with_threads(1)?;
    let all = CpuDevice::new();
    // The simulated device runs kernels on one thread, so it differs from the CPU device `one` only
    // in its queue and its transfers.
    let simulated = SimulatedDevice::with_threads(1)?;
    // `cargo bench` passes the argument `--bench` to this program. Without `--bench`, or with
    // `--test`, every case runs once and is not timed.
    let args: Vec<_> = std::env::args().collect();
    let timed = args.iter().any(|arg| arg == "--bench") && !args.iter().any(|arg| arg == "--test");
    let sizes = if timed { SizeRange::Full } else { SizeRange::Smoke };

    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(200))
        .sample_size(20)
        .configure_from_args();
    time(&mut criterion, &one, sizes)?;
    time(&mut criterion, &all, sizes)?;
    time(&mut criterion, &simulated, sizes)?;
    criterion.final_summary();

    let host = Survey::measure::<f32>(&one, sizes)?;
    println!("\n{host}");
    for survey in [Survey::measure::<f32>(&all, sizes)?, Survey::measure::<f32>(&simulated, sizes)?]
    {
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

//! The bench kit on every device of the crate: each case by criterion; then each device's shares of
//! its own peaks, and the sizes from which it pays against one thread of the CPU.
//!
//! ```sh
//! cargo bench --bench devices                # everything
//! cargo bench --bench devices -- gemm        # criterion's cases of one kernel, and the tables
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
    // One thread beside one thread: what its queue and its copies cost.
    let mirror = SimulatedDevice::with_threads(1)?;
    // `cargo bench` gives `--bench`; without it, or with `--test`, everything runs once.
    let args: Vec<_> = std::env::args().collect();
    let timed = args.iter().any(|arg| arg == "--bench") && !args.iter().any(|arg| arg == "--test");
    let extent = if timed { SizeRange::Full } else { SizeRange::Smoke };

    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(200))
        .sample_size(20)
        .configure_from_args();
    time(&mut criterion, &one, extent)?;
    time(&mut criterion, &all, extent)?;
    time(&mut criterion, &mirror, extent)?;
    criterion.final_summary();

    let host = Survey::measure::<f32, _>(&one, extent)?;
    println!("\n{host}");
    for survey in
        [Survey::measure::<f32, _>(&all, extent)?, Survey::measure::<f32, _>(&mirror, extent)?]
    {
        println!("{survey}\n{}", BreakEven::between(&survey, &host));
    }
    Ok(())
}

/// Hands the kit's cases to criterion.
fn time<D: Device>(criterion: &mut Criterion, device: &D, extent: SizeRange) -> Result<()> {
    let mut group =
        criterion.benchmark_group(format!("{}-{}", device.name(), device.host_workers().count()));
    for case in cases::<f32, D>(device, extent)? {
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

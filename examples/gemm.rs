//! Example that measures the throughput of GEMM in every element type.
//!
//! `cargo run --release --example gemm`

use cortado::{Blob, CpuDevice, Device, Element, Filler, Memory, Result, bf16, f16, op};
use std::time::Instant;

/// Returns the GFLOP/s of the matrix product `C ← A·B` of n × n matrices, in the fastest of five
/// calls.
fn gflops<T: Element, D: Device>(device: &D, n: usize) -> Result<f64> {
    let matrix = || Blob::<T, D>::new(device, &[n, n]);
    let (a, b, c) = (matrix()?, matrix()?, matrix()?);
    let filler = Filler::Uniform { min: -1.0, max: 1.0 };
    filler.fill(&a, op::RngKey::new(1))?;
    filler.fill(&b, op::RngKey::new(2))?;
    let gemm = op::Gemm::new(n, n, n);
    let mut best_seconds = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        let (a, b, mut c) = (a.data()?, b.data()?, c.data_mut()?);
        device.gemm(&gemm, a.view(), b.view(), c.view_mut())?;
        device.synchronize()?;
        best_seconds = best_seconds.min(start.elapsed().as_secs_f64());
    }
    Ok(gemm.flops() as f64 / best_seconds / 1e9)
}

fn main() -> Result<()> {
    let one_thread = CpuDevice::with_threads(1)?;
    let all_threads = CpuDevice::new();
    println!(
        "GFLOP/s of C(n×n) = A·B, on 1 thread / {} threads",
        all_threads.host_workers().count()
    );
    println!("{:>6} {:>15} {:>15} {:>15} {:>15}", "n", "f32", "f64", "f16", "bf16");
    for n in [64, 256, 512, 1024] {
        let cell = |one: f64, all: f64| format!("{one:.0} / {all:.0}");
        println!(
            "{n:>6} {:>15} {:>15} {:>15} {:>15}",
            cell(gflops::<f32, _>(&one_thread, n)?, gflops::<f32, _>(&all_threads, n)?),
            cell(gflops::<f64, _>(&one_thread, n)?, gflops::<f64, _>(&all_threads, n)?),
            cell(gflops::<f16, _>(&one_thread, n)?, gflops::<f16, _>(&all_threads, n)?),
            cell(gflops::<bf16, _>(&one_thread, n)?, gflops::<bf16, _>(&all_threads, n)?),
        );
    }
    Ok(())
}

//! Matrix products in every element type, timed.
//!
//! `cargo run --release --example gemm`

use cortado::{Blob, CpuDevice, Device, Element, Filler, Memory, Result, bf16, f16, op};
use std::time::Instant;

/// GFLOP/s of the best of a few products `C(n×n) ← A·B`.
fn rate<T: Element, D: Device>(device: &D, n: usize) -> Result<f64> {
    let square = || Blob::<T, D>::new(device, &[n, n]);
    let (a, b, c) = (square()?, square()?, square()?);
    let filler = Filler::Uniform { min: -1.0, max: 1.0 };
    filler.fill(&a, op::RngKey::new(1))?;
    filler.fill(&b, op::RngKey::new(2))?;
    let gemm = op::Gemm::new(n, n, n);
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        let (a, b, mut c) = (a.data()?, b.data()?, c.data_mut()?);
        device.gemm(&gemm, a.view(), b.view(), c.view_mut())?;
        device.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(gemm.flops() as f64 / best / 1e9)
}

fn main() -> Result<()> {
    let one = CpuDevice::with_threads(1)?;
    let all = CpuDevice::new();
    println!("GFLOP/s of C(n×n) = A·B, one thread / {}", all.host_workers().count());
    println!("{:>6} {:>15} {:>15} {:>15} {:>15}", "n", "f32", "f64", "f16", "bf16");
    for n in [64, 256, 512, 1024] {
        let pair = |one: f64, all: f64| format!("{one:.0} / {all:.0}");
        println!(
            "{n:>6} {:>15} {:>15} {:>15} {:>15}",
            pair(rate::<f32, _>(&one, n)?, rate::<f32, _>(&all, n)?),
            pair(rate::<f64, _>(&one, n)?, rate::<f64, _>(&all, n)?),
            pair(rate::<f16, _>(&one, n)?, rate::<f16, _>(&all, n)?),
            pair(rate::<bf16, _>(&one, n)?, rate::<bf16, _>(&all, n)?),
        );
    }
    Ok(())
}

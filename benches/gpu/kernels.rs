//! GPU benchmarks of the kernels in the bench kit: module load times, and bandwidths relative to a
//! copy. The kernels' results are compared with those of the CPU.

use crate::{Bench, check, clock};
use cortado::{
    CpuDevice, Element, Result,
    bench_kit::{SizeRange, cases},
    bf16,
    element::DType,
};
use std::time::Instant;

pub(crate) fn tables(bench: &Bench) -> Result<()> {
    load_times(bench)?;
    check_values::<f32>(bench)?;
    check_values::<bf16>(bench)?;
    bandwidths::<f32>(bench)?;
    bandwidths::<bf16>(bench)
}

/// Times the first run of each kernel, which includes the driver's compilation of the kernel's PTX
/// module.
fn load_times(bench: &Bench) -> Result<()> {
    let total_start = Instant::now();
    let mut slowest_run = (0.0, "");
    for case in cases::<f32>(&bench.device, SizeRange::Smoke)? {
        let start = Instant::now();
        case.run()?;
        let seconds = start.elapsed().as_secs_f64();
        if seconds > slowest_run.0 {
            slowest_run = (seconds, case.kernel());
        }
    }
    let (total, (seconds, kernel)) = (total_start.elapsed().as_secs_f64(), slowest_run);
    println!(
        "\n### Loading\n\nThe first runs of all kernels take {total:.2} s, of which {kernel} (the \
         slowest) takes {seconds:.2} s. The driver caches compiled kernels between processes."
    );
    Ok(())
}

/// Compares the results of every kernel with those of the CPU, for operands of up to 2²² elements.
fn check_values<T: Element>(bench: &Bench) -> Result<()> {
    let sizes = if bench.brief { SizeRange::Smoke } else { SizeRange::Full };
    let tolerance = if T::DTYPE == DType::F32 { 1e-4 } else { 0.02 };
    let host = cases::<T>(&CpuDevice::new(), sizes)?;
    for (own, host) in cases::<T>(&bench.device, sizes)?.into_iter().zip(host) {
        let bound = |expected: f64| tolerance * (1.0 + expected.abs());
        check::values(&own.name(), &own.values()?, &host.values()?, bound)?;
    }
    Ok(())
}

/// Prints the memory bandwidth of each kernel on operands of 2²⁶ elements.
fn bandwidths<T: Element>(bench: &Bench) -> Result<()> {
    let sizes = if bench.brief { SizeRange::Smoke } else { SizeRange::Large };
    let mut rows = Vec::new();
    for case in cases::<T>(&bench.device, sizes)? {
        // Skip kernels that compute matrix products, because the GEMM table covers these kernels.
        if ["gemm", "convolve", "im2col"].contains(&case.kernel()) {
            continue;
        }
        let seconds = clock::seconds(&bench.device, bench.brief, || case.enqueue())?;
        let bytes = case.work().bytes as f64;
        rows.push((case.kernel(), case.size(), seconds, bytes / seconds));
    }
    let copy_rate = rows.iter().find(|row| row.0 == "copy").map_or(f64::NAN, |row| row.3);
    println!("\n### Kernels of {}\n", T::DTYPE.name());
    println!("| kernel | size | ms | GB/s | share of copy rate |\n|---|--:|--:|--:|--:|");
    for (kernel, size, seconds, rate) in rows {
        let (ms, share, rate) = (seconds * 1e3, 100.0 * rate / copy_rate, rate / 1e9);
        println!("| {kernel} | {size} | {ms:.3} | {rate:.0} | {share:.0} % |");
    }
    Ok(())
}

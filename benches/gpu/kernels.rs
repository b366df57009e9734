//! Kernels of the bench kit: how long they take to load, and what they reach of a copy's bandwidth.

use crate::{Bench, clock};
use cortado::{
    Element, Result,
    bench_kit::{SizeRange, cases},
    bf16,
};
use std::time::Instant;

/// The first run of each kernel, then the shares.
pub(crate) fn tables(bench: &Bench) -> Result<()> {
    loading(bench)?;
    shares::<f32>(bench)?;
    shares::<bf16>(bench)
}

/// The first run of each kernel, for which the driver compiles the file that it is in.
fn loading(bench: &Bench) -> Result<()> {
    let start = Instant::now();
    let mut slowest = (0.0, "");
    for case in cases::<f32, _>(&bench.device, SizeRange::Smoke)? {
        let first = Instant::now();
        case.run()?;
        let seconds = first.elapsed().as_secs_f64();
        if seconds > slowest.0 {
            slowest = (seconds, case.kernel());
        }
    }
    let (all, (seconds, kernel)) = (start.elapsed().as_secs_f64(), slowest);
    println!(
        "\n### Loading\n\nThe first runs of the kit's kernels take {all:.2} s; the slowest is \
         {kernel}, {seconds:.2} s. What the driver has compiled before, it keeps."
    );
    Ok(())
}

/// Bandwidths with operands of 2²⁶ elements.
fn shares<T: Element>(bench: &Bench) -> Result<()> {
    let extent = if bench.brief { SizeRange::Smoke } else { SizeRange::Large };
    let mut rows = Vec::new();
    for case in cases::<T, _>(&bench.device, extent)? {
        // Products are for another table.
        if ["gemm", "convolve", "im2col"].contains(&case.kernel()) {
            continue;
        }
        let seconds = clock::seconds(&bench.device, bench.brief, || case.enqueue())?;
        let bytes = case.work().bytes as f64;
        rows.push((case.kernel(), case.size(), seconds, bytes / seconds));
    }
    let copy = rows.iter().find(|row| row.0 == "copy").map_or(f64::NAN, |row| row.3);
    println!("\n### Kernels of {}\n", T::DTYPE.name());
    println!("| kernel | size | ms | GB/s | of copy |\n|---|--:|--:|--:|--:|");
    for (kernel, size, seconds, rate) in rows {
        let (ms, share, rate) = (seconds * 1e3, 100.0 * rate / copy, rate / 1e9);
        println!("| {kernel} | {size} | {ms:.3} | {rate:.0} | {share:.0} % |");
    }
    Ok(())
}

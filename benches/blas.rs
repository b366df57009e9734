//! Benchmarks of GEMM, GEMV and BLAS level 1 on the CPU device, by size, element type and number of
//! threads. criterion takes the samples.
//!
//! ```sh
//! cargo bench --bench blas                     # all cases
//! cargo bench --bench blas -- gemm/f32         # only the cases whose names contain gemm/f32
//! cargo bench --bench blas -- --quick          # shorter samples
//! ```

mod criterion_bench;

use cortado::{
    Blob, CpuDevice, Element, Filler, Result, bench_kit::Work, bf16, f16, kernel::Blas, op,
};
use criterion_bench::CriterionBench;
use op::{Gemm, Gemv, RngKey, Transpose};
use std::hint::black_box;

/// `[m, n, k]` of each GEMM: square matrices, followed by the GEMMs of LeNet's layers.
const SHAPES: [[usize; 3]; 9] = [
    [64, 64, 64],
    [128, 128, 128],
    [256, 256, 256],
    [512, 512, 512],
    [1024, 1024, 1024],
    [20, 576, 25],
    [50, 64, 500],
    [64, 500, 800],
    [64, 10, 500],
];

/// Row and column counts of the matrices in the GEMV benchmarks.
const MATRICES: [usize; 2] = [256, 2048];

/// Lengths of vectors that fit in L1, in L2 and in main memory.
const LENGTHS: [usize; 3] = [1 << 10, 1 << 16, 1 << 22];

fn random<T: Element>(device: &CpuDevice, shape: &[usize]) -> Result<Blob<T, CpuDevice>> {
    let blob = Blob::new(device, shape)?;
    Filler::Uniform { min: -1.0, max: 1.0 }.fill(&blob, RngKey::new(1))?;
    Ok(blob)
}

fn gemm<T: Element>(bench: &mut CriterionBench, device: &CpuDevice, name: &str) -> Result<()> {
    // A debug build, in which tests run, would spend minutes in the large products.
    let max_rows = if bench.report.is_test() { 128 } else { usize::MAX };
    for [m, n, k] in SHAPES.into_iter().filter(|shape| shape[0] <= max_rows) {
        let op = Gemm::new(m, n, k);
        let (a, b) = (random::<T>(device, &[m, k])?, random::<T>(device, &[k, n])?);
        let c = random::<T>(device, &[m, n])?;
        let (a, b, mut c) = (a.data()?, b.data()?, c.data_mut()?);
        let work = work::<T>(m * k + k * n + 2 * m * n, op.flops());
        // The size of a square GEMM is its number of rows.
        let size = if m == n && n == k { m.to_string() } else { format!("{m}x{n}x{k}") };
        bench.time(["gemm", T::DTYPE.name(), name, &size], work, || {
            device.gemm(&op, a.view(), b.view(), c.view_mut())
        })?;
    }
    Ok(())
}

fn gemv<T: Element>(bench: &mut CriterionBench, device: &CpuDevice, name: &str) -> Result<()> {
    for n in MATRICES {
        for (trans, kernel) in [(Transpose::No, "gemv"), (Transpose::Yes, "gemv transposed")] {
            let op = Gemv::new(trans, n, n);
            let (a, x) = (random::<T>(device, &[n, n])?, random::<T>(device, &[n])?);
            let y = random::<T>(device, &[n])?;
            let (a, x, mut y) = (a.data()?, x.data()?, y.data_mut()?);
            let work = work::<T>(n * n + 3 * n, 2 * (n * n) as u64);
            bench.time([kernel, T::DTYPE.name(), name, &n.to_string()], work, || {
                device.gemv(&op, a.view(), x.view(), y.view_mut())
            })?;
        }
    }
    Ok(())
}

fn level1<T: Element>(bench: &mut CriterionBench, device: &CpuDevice, name: &str) -> Result<()> {
    for len in LENGTHS {
        let (x, y) = (random::<T>(device, &[len])?, random::<T>(device, &[len])?);
        let (x, mut y) = (x.data()?, y.data_mut()?);
        let (element, size) = (T::DTYPE.name(), len.to_string());
        let alpha = T::acc(1e-3);
        bench.time(["axpy", element, name, &size], work::<T>(3 * len, 2 * len as u64), || {
            device.axpy(alpha, x.view(), y.view_mut())
        })?;
        bench.time(["dot", element, name, &size], work::<T>(2 * len, 2 * len as u64), || {
            device.dot(x.view(), y.view()).map(|dot| {
                black_box(dot);
            })
        })?;
        bench.time(["asum", element, name, &size], work::<T>(len, len as u64), || {
            device.asum(x.view()).map(|sum| {
                black_box(sum);
            })
        })?;
    }
    Ok(())
}

/// Returns the work of a run that reads and writes `accesses` elements.
fn work<T>(accesses: usize, flops: u64) -> Work {
    Work { bytes: (accesses * size_of::<T>()) as u64, flops }
}

fn all_kernels<T: Element>(
    bench: &mut CriterionBench,
    device: &CpuDevice,
    name: &str,
) -> Result<()> {
    gemm::<T>(bench, device, name)?;
    gemv::<T>(bench, device, name)?;
    level1::<T>(bench, device, name)
}

fn main() -> Result<()> {
    let mut bench = CriterionBench::from_args("blas")?;
    for _ in bench.report.passes() {
        for device in [CpuDevice::with_threads(1)?, CpuDevice::new()] {
            let name = bench.report.measure_limits(&device)?;
            all_kernels::<f32>(&mut bench, &device, &name)?;
            all_kernels::<f64>(&mut bench, &device, &name)?;
            all_kernels::<f16>(&mut bench, &device, &name)?;
            all_kernels::<bf16>(&mut bench, &device, &name)?;
        }
    }
    bench.report.finish()
}

//! Benchmarks of GEMM, GEMV and BLAS level 1 on the CPU device, by size, element type and number of
//! threads.

use cortado::{Blob, CpuDevice, Device, Element, Filler, bf16, f16, op};
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, measurement::WallTime};
use criterion::{criterion_group, criterion_main};
use op::{Gemm, Gemv, RngKey, Transpose};
use std::time::Duration;

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// `[m, n, k]` of each GEMM: square matrices, followed by the GEMMs of LeNet's layers.
const SHAPES: [[usize; 3]; 7] = [
    [64, 64, 64],
    [256, 256, 256],
    [512, 512, 512],
    [20, 576, 25],
    [50, 64, 500],
    [64, 500, 800],
    [64, 10, 500],
];

/// Row and column counts of the matrices in the GEMV benchmarks.
const MATRICES: [[usize; 2]; 2] = [[256, 256], [2048, 2048]];

/// Lengths of vectors that fit in L1, in L2 and in main memory.
const LENGTHS: [usize; 3] = [1 << 10, 1 << 16, 1 << 22];

fn random<T: Element, D: Device>(device: &D, shape: &[usize]) -> Blob<T, D> {
    let blob = Blob::new(device, shape).unwrap();
    Filler::Uniform { min: -1.0, max: 1.0 }.fill(&blob, RngKey::new(1)).unwrap();
    blob
}

fn gemm<T: Element, D: Device>(group: &mut Group<'_>, device: &D) {
    for [m, n, k] in SHAPES {
        let op = Gemm::new(m, n, k);
        let (a, b) = (random::<T, D>(device, &[m, k]), random::<T, D>(device, &[k, n]));
        let c = random::<T, D>(device, &[m, n]);
        group.throughput(Throughput::Elements(op.flops()));
        group.bench_function(id::<T, D>(device, &format!("{m}x{n}x{k}")), |bencher| {
            let (a, b, mut c) = (a.data().unwrap(), b.data().unwrap(), c.data_mut().unwrap());
            bencher.iter(|| device.gemm(&op, a.view(), b.view(), c.view_mut()).unwrap());
        });
    }
}

fn gemv<T: Element, D: Device>(group: &mut Group<'_>, device: &D) {
    for [m, n] in MATRICES {
        for (trans, name) in [(Transpose::No, ""), (Transpose::Yes, "_transposed")] {
            let op = Gemv::new(trans, m, n);
            let (inputs, outputs) = op.lengths();
            let a = random::<T, D>(device, &[m, n]);
            let (x, y) = (random::<T, D>(device, &[inputs]), random::<T, D>(device, &[outputs]));
            group.throughput(Throughput::Bytes((m * n * size_of::<T>()) as u64));
            group.bench_function(id::<T, D>(device, &format!("{m}x{n}{name}")), |bencher| {
                let (a, x, mut y) = (a.data().unwrap(), x.data().unwrap(), y.data_mut().unwrap());
                bencher.iter(|| device.gemv(&op, a.view(), x.view(), y.view_mut()).unwrap());
            });
        }
    }
}

fn level1<T: Element, D: Device>(group: &mut Group<'_>, device: &D) {
    for len in LENGTHS {
        let (x, y) = (random::<T, D>(device, &[len]), random::<T, D>(device, &[len]));
        let bytes = |vectors: usize| Throughput::Bytes((vectors * len * size_of::<T>()) as u64);
        let alpha = T::acc(1e-3);
        group.throughput(bytes(3));
        group.bench_function(id::<T, D>(device, &format!("axpy/{len}")), |bencher| {
            let (x, mut y) = (x.data().unwrap(), y.data_mut().unwrap());
            bencher.iter(|| device.axpy(alpha, x.view(), y.view_mut()).unwrap());
        });
        group.throughput(bytes(2));
        group.bench_function(id::<T, D>(device, &format!("dot/{len}")), |bencher| {
            let (x, y) = (x.data().unwrap(), y.data().unwrap());
            bencher.iter(|| device.dot(x.view(), y.view()).unwrap());
        });
        group.throughput(bytes(1));
        group.bench_function(id::<T, D>(device, &format!("asum/{len}")), |bencher| {
            let x = x.data().unwrap();
            bencher.iter(|| device.asum(x.view()).unwrap());
        });
    }
}

fn id<T: Element, D: Device>(device: &D, case: &str) -> BenchmarkId {
    let threads = device.host_workers().count();
    BenchmarkId::new(format!("{}/{threads}_threads", T::DTYPE.name()), case)
}

fn all_kernels<T: Element>(c: &mut Criterion) {
    for device in [CpuDevice::with_threads(1).unwrap(), CpuDevice::new()] {
        let mut group = c.benchmark_group("gemm");
        gemm::<T, _>(&mut group, &device);
        group.finish();
        let mut group = c.benchmark_group("gemv");
        gemv::<T, _>(&mut group, &device);
        group.finish();
        let mut group = c.benchmark_group("level1");
        level1::<T, _>(&mut group, &device);
        group.finish();
    }
}

fn blas(c: &mut Criterion) {
    all_kernels::<f32>(c);
    all_kernels::<f64>(c);
    all_kernels::<f16>(c);
    all_kernels::<bf16>(c);
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
    targets = blas
}
criterion_main!(benches);

//! Benchmarks of CPU devices and of the simulated device, with `cortado::bench_kit`. The benchmark
//! prints tables: each kernel's rates relative to the device's copy bandwidth and GEMM rate, and the
//! sizes from which the device is faster than one CPU thread. A list of transfers by size follows.
//!
//! ```sh
//! cargo bench --bench devices                # all kernels
//! cargo bench --bench devices -- gemm        # only the kernel `gemm`, in all tables
//! ```

use cortado::{
    CpuDevice, Result,
    bench_kit::{Bench, SizeRange},
    device::SimulatedDevice,
};

fn main() -> Result<()> {
    let one_thread = CpuDevice::with_threads(1)?;
    let all_threads = CpuDevice::new();
    // The simulated device runs kernels on one thread, so it differs from the CPU device
    // `one_thread` only in its queue and its transfers.
    let simulated_device = SimulatedDevice::with_threads(1)?;
    let mut bench = Bench::from_args("devices")?;
    let sizes = if bench.is_test() { SizeRange::Smoke } else { SizeRange::Full };
    bench.measure_limits(&one_thread)?;
    bench.measure_limits(&all_threads)?;
    bench.measure_limits(&simulated_device)?;

    let host = bench.survey(&one_thread, sizes)?;
    let parallel = bench.survey(&all_threads, sizes)?;
    bench.break_even(&parallel, &host);
    let simulated = bench.survey(&simulated_device, sizes)?;
    bench.break_even(&simulated, &host);
    bench.transfers(&all_threads)?;
    bench.transfers(&simulated_device)?;
    bench.finish()
}

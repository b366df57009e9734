//! Benchmarks of CPU devices and of the simulated device, with `cortado::bench_kit`. The benchmark
//! prints tables: each kernel's rates relative to the device's copy bandwidth and GEMM rate, and
//! the sizes from which the device is faster than one CPU thread. A list of transfers by size
//! follows.
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
    for _ in bench.passes() {
        bench.measure_limits(&one_thread)?;
        bench.measure_limits(&all_threads)?;
        bench.measure_limits(&simulated_device)?;
        bench.survey(&one_thread, sizes)?;
        bench.survey(&all_threads, sizes)?;
        bench.survey(&simulated_device, sizes)?;
        bench.transfers(&all_threads)?;
        bench.transfers(&simulated_device)?;
    }
    bench.break_even(&all_threads, &one_thread)?;
    bench.break_even(&simulated_device, &one_thread)?;
    bench.finish()
}

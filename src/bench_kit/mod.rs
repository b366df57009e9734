//! Benchmark kit: kernels to time on any device, and tables of the results.
//!
//! - A [`Case`] is one kernel at one size. It states its work (bytes, floating-point operations)
//!   and runs it. Any benchmark harness may time it; the kit depends on none.
//! - A [`Survey`] times all cases on one device. It compares them with the bandwidth of `copy` and
//!   the speed of `gemm` that the device reached in the same survey.
//! - [`BreakEven`] compares two surveys. For each kernel, it gives the size from which one device
//!   is faster, with operands on the device, and with transfers from and to the host.
//!
//! ```
//! use cortado::{CpuDevice, bench_kit::{self, SizeRange, Survey}};
//!
//! let device = CpuDevice::new();
//! for case in bench_kit::cases::<f32>(&device, SizeRange::Smoke)? {
//!     case.run()?; // the device is idle afterwards
//!     println!("{} does {} flop on {} bytes", case.name(), case.work().flops, case.work().bytes);
//! }
//! println!("{}", Survey::measure::<f32>(&device, SizeRange::Smoke)?);
//! # Ok::<(), cortado::Error>(())
//! ```

mod break_even;
mod cases;
mod survey;

pub use break_even::BreakEven;
pub use cases::{Case, SizeRange, Work, cases};
pub use survey::{Peaks, Survey, Timing};

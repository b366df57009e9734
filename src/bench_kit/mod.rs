//! Benchmark kit: times kernels on any device and prints tables of the results.
//!
//! - A [`Case`] is one kernel at one size. A case states its work in bytes and floating-point
//!   operations, and any benchmark harness can time a case.
//! - A [`Survey`] times all cases on one device. A survey compares the rate of each case with the
//!   bandwidth of `copy` and the speed of `gemm` on the same device. Kernels that fall back to the
//!   host are marked, and excluded from comparisons.
//! - A [`BreakEven`] compares two surveys. A `BreakEven` gives, for each kernel, the size from
//!   which one device is faster than the other, without and with the transfers of the operands.
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
#[cfg(feature = "report")]
mod comparison;
#[cfg(feature = "report")]
mod limits;
#[cfg(feature = "report")]
mod machine;
#[cfg(feature = "report")]
mod options;
#[cfg(feature = "report")]
mod page;
#[cfg(feature = "report")]
mod part;
#[cfg(feature = "report")]
mod passes;
#[cfg(feature = "report")]
mod peer;
#[cfg(feature = "report")]
mod program;
#[cfg(feature = "report")]
mod record;
mod sampling;
#[cfg(feature = "report")]
mod store;
#[cfg(feature = "report")]
mod summary;
mod survey;
#[cfg(feature = "report")]
mod transfers;

pub use break_even::BreakEven;
use cases::cases_where;
pub use cases::{Case, SizeRange, Work, cases};
pub use sampling::{Samples, Sampling};
pub use survey::{Peaks, Survey, Timing};
#[cfg(feature = "report")]
pub use {
    comparison::{Change, compare},
    limits::{Level, Limits},
    part::{Part, report_folder},
    peer::PeerTimes,
    program::{Bench, report},
    record::Record,
};

//! What every device should time, and how to read the times.
//!
//! Decisions:
//! - A [`Case`] is a value that describes work (bytes, floating-point operations) and does it when
//!   told. Any harness may time it; this kit depends on none.
//! - Times are read against the device itself: a [`Survey`] gives each case's share of the
//!   bandwidth and of the rate of products that the same device reached in the same minutes.
//! - Two surveys meet in [`BreakEven`]: the size of each kernel from which a device pays, with its
//!   operands at hand, and with operands that come from the host and a result that goes there.
//!
//! ```
//! use cortado::{CpuDevice, bench_kit::{self, Extent, Survey}};
//!
//! let device = CpuDevice::new();
//! for case in bench_kit::cases::<f32, _>(&device, Extent::Smoke)? {
//!     case.run()?; // and the device is idle again
//!     println!("{} does {} flop on {} bytes", case.name(), case.work().flops, case.work().bytes);
//! }
//! println!("{}", Survey::measure::<f32, _>(&device, Extent::Smoke)?);
//! # Ok::<(), cortado::Error>(())
//! ```

mod break_even;
mod cases;
mod survey;

pub use break_even::BreakEven;
pub use cases::{Case, SizeRange, Work, cases};
pub use survey::{Peaks, Survey, Timing};

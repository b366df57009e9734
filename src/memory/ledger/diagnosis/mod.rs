//! The transfer doctor: which read caused each transfer, which write had made that side stale, and
//! which transfers, writes and waits a program does not need.
//!
//! - `history` records the accesses to one memory, and recognizes needless work.
//! - `recorder` defines [`Diagnosis`], which counts transfers and findings by their places.
//! - `report` formats a diagnosis.

pub(in crate::memory) mod history;
pub(super) mod place;
pub(super) mod recorder;
mod report;
pub(super) mod waste;

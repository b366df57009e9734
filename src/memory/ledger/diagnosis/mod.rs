//! The transfer doctor: finds the read that caused each transfer, the write that had made the
//! reader's side stale, and the transfers, writes and waits that a program does not need.
//!
//! - `history` records the accesses to one memory, and recognizes needless work.
//! - `recorder` defines [`Diagnosis`], which counts transfers and findings by their places.
//! - `report` formats a diagnosis.

pub(in crate::memory) mod history;
pub(super) mod place;
pub(super) mod recorder;
mod report;
pub(super) mod waste;

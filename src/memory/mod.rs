//! Memory of devices, kept coherent with the host, and typed views of it.
//!
//! - [`Memory`] is the only trait that a backend must implement. Four methods move bytes; the
//!   others have defaults. A value is a handle to a device *and* to one of its in-order queues.
//! - [`SyncedMemory`] tracks which sides, host and device, are valid. Reading a stale side first
//!   copies the value there; writing a side makes the other stale. Only `&mut` access makes a side
//!   stale, so no borrow of a stale side exists, and no `unsafe` is needed.
//! - [`View`] selects elements; the kernel decides on which side it accesses them.

mod coherent_bytes;
mod erased;
mod host_bytes;
pub mod ledger;
mod memory_trait;
mod synced;
mod view;

pub(crate) use erased::ErasedMemory;
pub use host_bytes::{HostBytes, HostStorage};
pub use ledger::KernelCall;
pub use memory_trait::{CompiledHere, Mapping, Memory, StaleAllocation};
pub use view::{DeviceSlice, DeviceSliceMut, Src, View, ViewMut};
pub use {coherent_bytes::Head, erased::AnyBuffer, synced::SyncedMemory};

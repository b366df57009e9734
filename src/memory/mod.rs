//! Device memory, which is kept coherent with the host, and typed views of its elements.
//!
//! - [`Memory`] is the only trait that a backend must implement. The four required methods of
//!   `Memory` return the device's name, allocate a buffer, upload bytes and download bytes. A
//!   `Memory` value is a handle to a device *and* to one of the device's in-order queues.
//! - [`SyncedMemory`] tracks which of its two sides, host and device, are valid. Reading a stale
//!   side first copies the value from the other side; writing a side makes the other side stale.
//!   Only `&mut` access makes a side stale, so no borrow of a stale side can exist, and
//!   `SyncedMemory` needs no `unsafe` code.
//! - A [`View`] selects a range of typed elements of a memory. A kernel decides whether to access
//!   the elements of a view on the host or on the device.
//! - A [`ledger`] counts transfers and fallbacks. A [`trace`] is a timeline of the program.
//! - A [`BufferPool`] caches freed buffers for a backend whose allocations are slow.

mod buffer_pool;
mod coherent_bytes;
mod device_span;
mod erased;
mod failure_kind;
mod host_bytes;
mod memory_limit;
pub mod ledger;
mod memory_trait;
mod memory_usage;
mod synced;
pub mod trace;
mod view;

#[cfg(feature = "cuda")]
pub(crate) use buffer_pool::size_class;
pub use buffer_pool::{BufferPool, PoolStatistics, PooledBuffer};
pub use device_span::{DeviceSpan, DeviceWork};
pub(crate) use erased::ErasedMemory;
pub use failure_kind::FailureKind;
pub use host_bytes::{HostBytes, HostStorage};
pub use ledger::KernelCall;
pub(crate) use memory_limit::{CountedBytes, MemoryLimit};
pub use memory_trait::{CompiledHere, Mapping, Memory, StaleAllocation};
pub use memory_usage::{MemoryUsage, PoolUsage};
pub use view::{DeviceSlice, DeviceSliceMut, Src, View, ViewMut};
pub use {coherent_bytes::Head, erased::AnyBuffer, synced::SyncedMemory};

//! Batches for nets: where records come from, what is done to them, and threads that prepare
//! them ahead of time.

mod digits;
mod idx;
mod queue;
mod record;
mod source;

pub use digits::Digits;
pub use idx::Idx;
pub use queue::{BlockingQueue, Missed, QueuePair};
pub use record::{Record, Values};
pub use source::{Source, Sources};

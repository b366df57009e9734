//! Batches for nets: where records come from, what is done to them, and a thread that prepares
//! them ahead of time.
//!
//! Decisions:
//! - A [`Source`] is read by one thread, in order; kinds of sources are an open registry of
//!   schemes, [`Sources`].
//! - Databases are LMDB's, read and written without its C library: see [`LmdbReader`].
//! - What is random is a function of a key and of the record's number: the same seed gives the
//!   same batches, whatever the threads.
//! - A fixed number of batches goes round between the thread and the net ([`QueuePair`]), and
//!   whoever waits on a queue wakes when it is closed: nothing hangs.

mod database;
mod digits;
mod idx;
mod lmdb;
mod prefetch;
mod queue;
mod record;
mod source;
mod transform;

pub use digits::Digits;
pub use idx::Idx;
pub use lmdb::{Lmdb, LmdbReader, LmdbWriter};
pub use prefetch::{Batch, Prefetcher};
pub use queue::{BlockingQueue, Missed, QueuePair};
pub use record::{Record, Values};
pub use source::{Source, Sources};
pub use transform::DataTransformer;

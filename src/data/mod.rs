//! Batches for nets: where records come from, what is done to them, and the threads that prepare
//! them ahead of time.
//!
//! Decisions:
//! - A [`Source`] is read by one thread, in order, however many take its records in turn
//!   ([`DataReader`]); kinds of sources are an open registry of schemes, [`SourceRegistry`].
//! - Databases are LMDB's, read and written without its C library: see [`LmdbReader`].
//! - What is random is a function of a key and of the record's number: the same seed gives the
//!   same batches, whatever the threads.
//! - A fixed number of batches goes round between a thread and the net, and of records between
//!   threads ([`QueuePair`]); whoever waits on a queue wakes when it is closed: nothing hangs.

mod database_kind;
mod digits;
mod hdf5;
mod idx;
mod image;
mod image_list;
mod lmdb;
mod queue_pair;
mod prefetch;
mod queue;
mod reader;
mod record;
mod source;
#[cfg(test)]
mod testing;
mod worker_thread;
mod transform;
mod window_crops;

pub use digits::DigitsSource;
pub use hdf5::Hdf5Rows;
pub use idx::IdxSource;
pub use image::{Color, Image};
pub use image_list::ImageList;
pub use lmdb::{LmdbReader, LmdbSource, LmdbWriter};
pub use queue_pair::QueuePair;
pub use prefetch::{Batch, PrefetchOptions, Prefetcher};
pub use queue::{BlockingQueue, QueueError};
pub use reader::DataReader;
pub use record::{Record, RecordValues};
pub use source::{Source, SourceRegistry};
pub use transform::DataTransformer;
pub use window_crops::WindowCrops;

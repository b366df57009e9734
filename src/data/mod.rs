//! Batches of data for nets: sources of records, transformations, and prefetching threads.
//!
//! - One thread reads a [`Source`] in order, for one or more [`DataReader`]s that take the records in
//!   turn. [`SourceRegistry`] maps schemes to sources, and callers can register their own.
//! - LMDB databases are read and written without the C library: see [`LmdbReader`].
//! - Random choices depend only on a key and the record's number. So a seed gives bit-identical
//!   batches for any number of threads.
//! - Fixed numbers of records and batches circulate between threads and the net ([`QueuePair`]).
//!   Closing a queue wakes all waiting threads, so none blocks forever.

mod database_kind;
mod datum;
mod digits;
mod hdf5;
mod idx;
mod image;
mod image_list;
mod lmdb;
mod prefetch;
mod queue;
mod queue_pair;
mod reader;
mod record;
mod source;
mod source_registry;
#[cfg(test)]
mod testing;
mod transform;
mod window_crops;
mod worker_thread;

pub use digits::DigitsSource;
pub use hdf5::Hdf5Rows;
pub use idx::IdxSource;
pub use image::{Color, Image};
pub use image_list::ImageList;
pub use lmdb::{LmdbReader, LmdbSource, LmdbWriter};
pub use prefetch::{Batch, PrefetchOptions, Prefetcher};
pub use queue::{BlockingQueue, QueueError};
pub use queue_pair::QueuePair;
pub use reader::DataReader;
pub use record::{Record, RecordValues};
pub use source::Source;
pub use source_registry::SourceRegistry;
pub use transform::DataTransformer;
pub use window_crops::WindowCrops;

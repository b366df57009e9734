//! Data input for nets: sources of records, transformations, and threads that prefetch batches.
//!
//! - One thread reads a [`Source`] in order, for one or more [`DataReader`]s that take the records
//!   in turn. [`SourceRegistry`] maps schemes to sources, and callers can register further schemes.
//! - [`LmdbReader`] and [`LmdbWriter`] read and write LMDB databases, and [`LevelDbReader`] reads
//!   LevelDB databases, without the C and C++ libraries.
//! - Random choices, such as the crop of a record, depend only on a key and the record's number, so
//!   that a seed yields bit-identical batches for any number of threads.
//! - A [`QueuePair`] passes filled records or batches to the consumer, and passes consumed ones
//!   back to the producer, which reuses their memory. Closing a queue wakes all threads that wait
//!   on the queue, so that no thread waits forever.

mod annotated_box;
mod annotations;
mod box_transform;
mod crop_sampler;
mod database_kind;
mod datum;
mod digits;
mod distortion;
mod draws;
mod expansion;
mod hdf5;
mod idx;
mod image;
mod image_changes;
mod image_list;
mod image_pairs;
mod leveldb;
mod lmdb;
mod noise;
mod prefetch;
mod queue;
mod queue_pair;
mod reader;
mod record;
mod resize_policy;
mod source;
mod source_registry;
#[cfg(test)]
mod testing;
mod transform;
mod window_crops;
mod worker_thread;

pub use annotated_box::AnnotatedBox;
pub use digits::DigitsSource;
pub use hdf5::Hdf5Rows;
pub use idx::IdxSource;
pub use image::{Color, Image};
pub use image_list::ImageList;
pub use leveldb::{LevelDbReader, LevelDbSource};
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

pub(crate) use box_transform::BoxTransformer;
pub(crate) use image_pairs::ImagePairs;

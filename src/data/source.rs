//! The [`Source`] trait of data sources.

use super::{image::Color, record::Record};
use crate::error::Result;

/// An endless sequence of records: after the last record, the first record follows again.
///
/// Several consumers can share the records of a source: see [`DataReader`](super::DataReader).
///
/// ```
/// use cortado::{Result, data::{Record, Source}};
///
/// /// Counts from 0 to 9.
/// struct Counter(u8);
/// impl Source for Counter {
///     fn describe(&self) -> String { "counter".into() }
///     fn records(&self) -> Option<u64> { Some(10) }
///     fn read(&mut self, record: &mut Record) -> Result<()> {
///         record.bytes_mut([1, 1, 1])?[0] = self.0;
///         self.0 = (self.0 + 1) % 10;
///         Ok(())
///     }
/// }
/// let mut counter = Counter(0);
/// counter.skip(13)?;
/// assert_eq!(counter.0, 3);
/// # Ok::<(), cortado::Error>(())
/// ```
pub trait Source: Send {
    /// Returns the name of the source for errors and logs, such as `idx:data/mnist/train`.
    fn describe(&self) -> String;

    /// Returns the number of records in one pass over the source; `None` if the number is unknown.
    /// A source that counts its records returns `None` until the last record of the first pass has
    /// been read.
    fn records(&self) -> Option<u64>;

    /// Reads the next record into `record` and reuses the buffers of `record`.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read. The caller adds the source and the record
    /// number to the error.
    fn read(&mut self, record: &mut Record) -> Result<()>;

    /// Sets the color channels to which later reads convert encoded images. The default
    /// implementation ignores `color`.
    fn set_color(&mut self, color: Color) {
        let _ = color;
    }

    /// Makes later reads expect `AnnotatedDatum` messages, and store the boxes in the records.
    /// Returns whether the source can contain such messages; the default implementation returns
    /// false.
    fn read_annotations(&mut self) -> bool {
        false
    }

    /// Skips `count` records. The default implementation calls [`read`](Self::read) and discards
    /// the records.
    ///
    /// # Errors
    /// Returns any error from [`read`](Self::read).
    #[doc(alias = "Skip")]
    fn skip(&mut self, count: u64) -> Result<()> {
        let mut record = Record::default();
        (0..count).try_for_each(|_| self.read(&mut record))
    }
}

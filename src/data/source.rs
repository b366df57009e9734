//! The trait of data sources.

use super::{image::Color, record::Record};
use crate::error::Result;

/// An endless sequence of records: after the last one, the first one follows again.
///
/// One thread reads a source. Several consumers can share the records, see
/// [`DataReader`](super::DataReader).
pub trait Source: Send {
    /// Returns the name used in errors and logs, such as `idx:data/mnist/train`.
    fn describe(&self) -> String;

    /// Returns the number of records in one pass over the source, if it is known.
    fn records(&self) -> Option<u64>;

    /// Reads the next record into `record`, whose buffers are reused.
    ///
    /// # Errors
    /// Any failure to read the record. The caller adds the source and the record number.
    fn read(&mut self, record: &mut Record) -> Result<()>;

    /// Decodes encoded images to `color` from now on. Does nothing by default.
    fn set_color(&mut self, color: Color) {
        let _ = color;
    }

    /// Skips `count` records. The default implementation reads them.
    ///
    /// # Errors
    /// Errors from [`read`](Self::read).
    #[doc(alias = "Skip")]
    fn skip(&mut self, count: u64) -> Result<()> {
        let mut record = Record::default();
        (0..count).try_for_each(|_| self.read(&mut record))
    }
}

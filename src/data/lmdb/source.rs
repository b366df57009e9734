//! A source of Caffe's records in an LMDB database.

use super::reader::LmdbReader;
use crate::{
    data::{image::Color, record::Record, source::Source},
    error::{Error, Result},
};
use std::path::Path;

/// A source that reads Caffe's `Datum` messages from an LMDB database, in key order. The source
/// decodes `Datum` messages that contain encoded images.
///
/// ```
/// use cortado::{data::{LmdbSource, LmdbWriter, Record, Source}, proto::{Datum, Message}};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("images");
/// let mut image = Record::default();
/// image.bytes_mut([1, 2, 2])?.copy_from_slice(&[1, 2, 3, 4]);
/// let mut writer = LmdbWriter::create(&path, false)?;
/// writer.put(b"00000000", &Datum::try_from(&image)?.encode_to_vec())?;
/// writer.finish()?;
/// let mut record = Record::default();
/// LmdbSource::open(&path)?.read(&mut record)?;
/// assert_eq!(record.values(), image.values());
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "DataReader")]
pub struct LmdbSource {
    reader: LmdbReader,
    name: String,
    color: Color,
    has_annotations: bool,
}

impl LmdbSource {
    /// Opens the LMDB database at `path`, which is the file `data.mdb` or the directory of that
    /// file.
    ///
    /// # Errors
    /// Returns any error from [`LmdbReader::open`], and [`Error::InvalidData`] for an empty
    /// database.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let reader = LmdbReader::open(path)?;
        if reader.entries() == 0 {
            return Err(Error::InvalidData(format!("{}: no records", path.display())));
        }
        let name = format!("lmdb:{}", path.display());
        Ok(Self { reader, name, color: Color::default(), has_annotations: false })
    }

    /// Moves the reader to the next record, or from the last record to the first record.
    fn advance(&mut self) -> Result<()> {
        if !self.reader.advance()? {
            self.reader.rewind();
            self.reader.advance()?;
        }
        Ok(())
    }
}

impl Source for LmdbSource {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn records(&self) -> Option<u64> {
        Some(self.reader.entries())
    }

    fn set_color(&mut self, color: Color) {
        self.color = color;
    }

    fn read_annotations(&mut self) -> bool {
        self.has_annotations = true;
        true
    }

    fn read(&mut self, record: &mut Record) -> Result<()> {
        self.advance()?;
        let (key, value) = self.reader.entry()?;
        let read = match self.has_annotations {
            true => record.read_annotated_datum(value, self.color),
            false => record.read_datum(value, self.color),
        };
        read.map_err(|error| error.context(format!("key `{}`", String::from_utf8_lossy(key))))
    }

    fn skip(&mut self, count: u64) -> Result<()> {
        (0..count % self.reader.entries()).try_for_each(|_| self.advance())
    }
}

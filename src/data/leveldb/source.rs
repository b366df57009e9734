//! A source of Caffe's records in a LevelDB database.

use super::reader::LevelDbReader;
use crate::{
    data::{image::Color, record::Record, source::Source},
    error::{Error, Result},
};
use std::{mem, path::Path};

/// A source that reads Caffe's `Datum` messages from a LevelDB database, in key order. The source
/// decodes `Datum` messages that contain encoded images.
///
/// The source counts the records during its first pass, because a LevelDB database does not state
/// the number of its records. Therefore, [`records`](Source::records) returns `None` until the last
/// record has been read.
///
/// ```no_run
/// use cortado::data::{LevelDbSource, Record, Source};
///
/// let mut source = LevelDbSource::open("mnist_train_leveldb")?;
/// let mut record = Record::default();
/// source.read(&mut record)?;
/// println!("{:?}, label {}", record.shape(), record.label());
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "DataReader")]
pub struct LevelDbSource {
    /// A cursor, which is at the record that the next read returns.
    reader: LevelDbReader,
    /// The result of the cursor's last move; the next read returns its error.
    moved: Result<()>,
    /// The number of records before the cursor.
    position: u64,
    /// The number of records; `None` until the cursor has reached the end for the first time.
    records: Option<u64>,
    name: String,
    color: Color,
    has_annotations: bool,
}

impl LevelDbSource {
    /// Opens the LevelDB database in the directory `path`.
    ///
    /// # Errors
    /// Returns any error from [`LevelDbReader::open`] and [`LevelDbReader::advance`], and
    /// [`Error::InvalidData`] for an empty database.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut reader = LevelDbReader::open(path)?;
        if !reader.advance()? {
            return Err(Error::InvalidData(format!("{}: no records", path.display())));
        }
        let name = format!("leveldb:{}", path.display());
        let (moved, position, records, color) = (Ok(()), 0, None, Color::default());
        Ok(Self { reader, moved, position, records, name, color, has_annotations: false })
    }

    /// Moves the cursor to the next record, or from the last record to the first record.
    fn advance(&mut self) -> Result<()> {
        self.position += 1;
        if !self.reader.advance()? {
            self.records = Some(self.position);
            self.position = 0;
            self.reader.rewind();
            self.reader.advance()?;
        }
        Ok(())
    }
}

impl Source for LevelDbSource {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn records(&self) -> Option<u64> {
        self.records
    }

    fn set_color(&mut self, color: Color) {
        self.color = color;
    }

    fn read_annotations(&mut self) -> bool {
        self.has_annotations = true;
        true
    }

    fn read(&mut self, record: &mut Record) -> Result<()> {
        mem::replace(&mut self.moved, Ok(()))?;
        let (key, value) = self.reader.entry();
        let read = match self.has_annotations {
            true => record.read_annotated_datum(value, self.color),
            false => record.read_datum(value, self.color),
        };
        read.map_err(|error| error.context(format!("key `{}`", String::from_utf8_lossy(key))))?;
        self.moved = self.advance();
        Ok(())
    }

    fn skip(&mut self, mut count: u64) -> Result<()> {
        mem::replace(&mut self.moved, Ok(()))?;
        while count > 0 {
            // Skipping a whole pass has no effect.
            if let Some(records) = self.records.filter(|&records| count >= records) {
                count %= records;
                continue;
            }
            self.advance()?;
            count -= 1;
        }
        Ok(())
    }
}

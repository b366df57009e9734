//! Report on a database: the number of records, their shape and their labels.

use super::report::FileReport;
use cortado::{
    data::{Color, Image, LevelDbReader, LmdbReader},
    error::{Error, Result},
    proto::{Datum, Message},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// Number of bytes of records after which the report stops reading. Reading a whole database of
/// photographs would take hours.
const MAX_BYTES: usize = 1 << 30;

/// Adds the number of records of the LMDB database at `path` to `report`. Also adds the shapes and
/// the labels of the records, or of the first records if the database is larger than [`MAX_BYTES`].
pub(super) fn report_lmdb(report: &mut FileReport, path: &Path) -> Result<()> {
    let mut reader = LmdbReader::open(path)?;
    let records = reader.entries();
    let mut summary = Summary::default();
    while summary.bytes < MAX_BYTES && reader.advance()? {
        let (key, value) = reader.entry()?;
        summary.add(&report.file, key, value)?;
    }
    summary.report(report, Some(records));
    Ok(())
}

/// Like [`report_lmdb`], but for a LevelDB database, which does not store the number of its
/// records.
pub(super) fn report_leveldb(report: &mut FileReport, path: &Path) -> Result<()> {
    let mut reader = LevelDbReader::open(path)?;
    let mut summary = Summary::default();
    let is_complete = loop {
        if !reader.advance()? {
            break true;
        }
        if summary.bytes >= MAX_BYTES {
            break false;
        }
        let (key, value) = reader.entry();
        summary.add(&report.file, key, value)?;
    };
    let records = is_complete.then_some(summary.records);
    summary.report(report, records);
    Ok(())
}

/// Summary of the records that the report has read.
#[derive(Default)]
struct Summary {
    records: u64,
    bytes: usize,
    /// Number of records of each shape. The report decodes only the first encoded image.
    shapes: BTreeMap<[usize; 3], u64>,
    encoded_images: u64,
    float_records: u64,
    labels: BTreeSet<i32>,
}

impl Summary {
    /// Adds a record of the database `file`.
    fn add(&mut self, file: &str, key: &[u8], value: &[u8]) -> Result<()> {
        self.add_value(value).map_err(|error| {
            error.context(format!("{file}: key `{}`", String::from_utf8_lossy(key)))
        })
    }

    fn add_value(&mut self, value: &[u8]) -> Result<()> {
        let not_datum = |error| Error::InvalidData(format!("not a caffe.Datum: {error}"));
        let datum = Datum::decode(value).map_err(not_datum)?;
        if datum.encoded() {
            if self.encoded_images == 0 {
                let shape = Image::decode(datum.data(), Color::AsStored)?.shape();
                self.shapes.insert(shape, 1);
            }
            self.encoded_images += 1;
        } else {
            let extents = [datum.channels(), datum.height(), datum.width()];
            let [Ok(channels), Ok(height), Ok(width)] = extents.map(usize::try_from) else {
                return Err(Error::InvalidData(format!("negative extent in {extents:?}")));
            };
            *self.shapes.entry([channels, height, width]).or_default() += 1;
            self.float_records +=
                u64::from(datum.data().is_empty() && !datum.float_data.is_empty());
        }
        self.labels.insert(datum.label());
        self.records += 1;
        self.bytes += value.len();
        Ok(())
    }

    /// Adds the number of records in the database, if it is known, and the summary to `report`.
    fn report(&self, report: &mut FileReport, records: Option<u64>) {
        report.fields.extend(records.map(|records| ("records".into(), records.into())));
        if records != Some(self.records) {
            report.fields.push(("records read".into(), self.records.into()));
        }
        if self.records > 0 {
            report.fields.extend(self.fields());
        }
    }

    /// Returns the fields of the report: shape, values and labels.
    fn fields(&self) -> Vec<(String, Value)> {
        let values = match (self.encoded_images, self.float_records) {
            (0, 0) => "bytes",
            (0, floats) if floats == self.records => "f32",
            (encoded, 0) if encoded == self.records => "encoded images",
            _ => "mixed",
        };
        let mut fields: Vec<(String, Value)> = Vec::new();
        let key_suffix = if self.encoded_images > 0 { " of the first image" } else { "" };
        for (shape, count) in self.shapes.iter().take(MAX_SHAPES) {
            let text = shape.map(|extent| extent.to_string()).join("×");
            let text = match self.shapes.len() {
                1 => text,
                _ => format!("{text} ({count} of {} records)", self.records),
            };
            fields.push((format!("shape{key_suffix}"), text.into()));
        }
        if self.shapes.len() > MAX_SHAPES {
            fields.push(("further shapes".into(), (self.shapes.len() - MAX_SHAPES).into()));
        }
        fields.push(("values".into(), values.into()));
        if let (Some(first), Some(last)) = (self.labels.first(), self.labels.last()) {
            fields.push(("smallest label".into(), json!(first)));
            fields.push(("greatest label".into(), json!(last)));
            fields.push(("distinct labels".into(), json!(self.labels.len())));
        }
        fields
    }
}

/// Maximum number of different shapes that the report lists.
const MAX_SHAPES: usize = 4;

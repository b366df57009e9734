//! One record of a data source.

use crate::{
    data::{Color, Image},
    error::{Error, Result},
    proto::{Datum, Message, Name},
    shape::Shape,
};

/// An image or array of `channels × height × width` values, and its label.
///
/// A record is made to be filled again and again: its buffers are kept.
#[derive(Clone, Debug, Default)]
#[doc(alias = "Datum")]
pub struct Record {
    shape: [usize; 3],
    bytes: Vec<u8>,
    floats: Vec<f32>,
    is_float: bool,
    label: i32,
}

/// The values of a [`Record`], channel by channel, row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecordValues<'a> {
    /// Of an 8-bit image.
    Bytes(&'a [u8]),
    /// Of anything else.
    Floats(&'a [f32]),
}

impl Record {
    /// Channels, height and width.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Number of values: `channels · height · width`.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// The values, [`count`](Self::count) of them.
    pub fn values(&self) -> RecordValues<'_> {
        if self.is_float {
            RecordValues::Floats(&self.floats)
        } else {
            RecordValues::Bytes(&self.bytes)
        }
    }

    /// The label.
    pub fn label(&self) -> i32 {
        self.label
    }

    /// Sets the label.
    pub fn set_label(&mut self, label: i32) {
        self.label = label;
    }

    /// Makes this a record of bytes of `shape` and gives them to be written; until then their
    /// values are unspecified.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] or [`Error::OutOfMemory`]; the record is then empty.
    pub fn bytes_mut(&mut self, shape: [usize; 3]) -> Result<&mut [u8]> {
        self.is_float = false;
        self.shape = [0; 3];
        resize(&mut self.bytes, shape)?;
        self.shape = shape;
        Ok(&mut self.bytes)
    }

    /// As [`bytes_mut`](Self::bytes_mut), of floats.
    ///
    /// # Errors
    /// As there.
    pub fn floats_mut(&mut self, shape: [usize; 3]) -> Result<&mut [f32]> {
        self.is_float = true;
        self.shape = [0; 3];
        resize(&mut self.floats, shape)?;
        self.shape = shape;
        Ok(&mut self.floats)
    }

    /// Makes this the record that a message of type `Datum` holds; an encoded image is decoded to
    /// `color`.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for bytes that are no such message, and as `try_from` and
    /// [`Image::decode`].
    pub fn read_datum(&mut self, message: &[u8], color: Color) -> Result<()> {
        let Self { mut bytes, mut floats, .. } = std::mem::take(self);
        bytes.clear();
        floats.clear();
        let mut datum = Datum { data: Some(bytes), float_data: floats, ..Default::default() };
        let read = datum.merge(message);
        read.map_err(|error| Error::InvalidData(format!("not a {}: {error}", Datum::full_name())))?;
        if datum.encoded() {
            self.label = datum.label();
            return Image::decode(datum.data(), color)?.store(self);
        }
        *self = Self::try_from(datum)?;
        Ok(())
    }
}

impl TryFrom<Datum> for Record {
    type Error = Error;

    /// A datum's bytes, or its floats if it has no bytes, as Caffe chooses. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for an encoded image, a negative extent, or another number of values
    /// than the shape counts; [`Error::ShapeOverflow`].
    fn try_from(datum: Datum) -> Result<Self> {
        if datum.encoded() {
            let why = "the datum holds an encoded image, which `Record::read_datum` decodes";
            return Err(Error::InvalidData(why.into()));
        }
        let extents = [datum.channels(), datum.height(), datum.width()];
        let [Ok(channels), Ok(height), Ok(width)] = extents.map(usize::try_from) else {
            return Err(Error::InvalidData(format!("the datum has extents {extents:?}")));
        };
        let (shape, label) = ([channels, height, width], datum.label());
        let (bytes, floats) = (datum.data.unwrap_or_default(), datum.float_data);
        let is_float = bytes.is_empty();
        let (got, want) =
            (if is_float { floats.len() } else { bytes.len() }, Shape::new(&shape)?.count());
        if got != want {
            let why = format!("the datum holds {got} values, {want} needed for {extents:?}");
            return Err(Error::InvalidData(why));
        }
        Ok(Self { shape, bytes, floats, is_float, label })
    }
}

impl TryFrom<&Record> for Datum {
    type Error = Error;

    /// The record as a message; nothing tells whether it is an encoded image, which it is not.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for an extent that the message has no room for.
    fn try_from(record: &Record) -> Result<Self> {
        let shape = record.shape;
        let [Ok(channels), Ok(height), Ok(width)] = shape.map(i32::try_from) else {
            return Err(Error::InvalidData(format!(
                "a record of extents {shape:?} makes no datum"
            )));
        };
        let (data, float_data) = match record.values() {
            RecordValues::Bytes(bytes) => (Some(bytes.to_vec()), Vec::new()),
            RecordValues::Floats(floats) => (None, floats.to_vec()),
        };
        let (channels, height, width) = (Some(channels), Some(height), Some(width));
        let label = Some(record.label);
        Ok(Self { channels, height, width, data, float_data, label, encoded: None })
    }
}

/// Makes `values` as long as `shape` needs, or empty if that cannot be.
fn resize<S: Copy + Default>(values: &mut Vec<S>, shape: [usize; 3]) -> Result<()> {
    let resized = Shape::new(&shape).and_then(|shape| {
        let count = shape.count();
        let bytes = count.saturating_mul(size_of::<S>());
        values
            .try_reserve(count.saturating_sub(values.len()))
            .map_err(|_| Error::OutOfMemory { device: "host".into(), bytes })?;
        values.resize(count, S::default());
        Ok(())
    });
    resized.inspect_err(|_| values.clear())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_what_it_is() {
        let mut record = Record::default();
        assert_eq!((record.shape(), record.count()), ([0; 3], 0));
        assert_eq!(record.values(), RecordValues::Bytes(&[]));
        record.bytes_mut([1, 2, 2]).unwrap().copy_from_slice(&[1, 2, 3, 4]);
        record.floats_mut([1, 1, 2]).unwrap().copy_from_slice(&[0.5, 1.5]);
        assert_eq!((record.count(), record.values()), (2, RecordValues::Floats(&[0.5, 1.5])));
        assert_eq!(record.bytes_mut([3, 1, 1]).unwrap().len(), 3);
        assert!(record.bytes_mut([usize::MAX, 2, 1]).is_err());
        assert_eq!((record.count(), record.values()), (0, RecordValues::Bytes(&[])));
        let error = record.floats_mut([1 << 40, 1 << 10, 1]).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        assert_eq!((record.count(), record.values()), (0, RecordValues::Floats(&[])));
    }

    fn datum() -> Datum {
        let (channels, height, width) = (Some(1), Some(2), Some(2));
        Datum { channels, height, width, label: Some(-3), ..Default::default() }
    }

    #[test]
    fn a_datum_gives_its_bytes_or_else_its_floats() {
        let floats = Datum { float_data: vec![1.5; 4], ..datum() };
        let both = Datum { data: Some(vec![1, 2, 3, 4]), ..floats.clone() };
        let record = Record::try_from(both).unwrap();
        assert_eq!((record.shape(), record.label()), ([1, 2, 2], -3));
        assert_eq!(record.values(), RecordValues::Bytes(&[1, 2, 3, 4]));
        assert_eq!(Record::try_from(floats).unwrap().values(), RecordValues::Floats(&[1.5; 4]));
    }

    #[test]
    fn messages_are_read_one_after_the_other() {
        let mut record = Record::default();
        let floats = Datum { float_data: vec![1.5; 4], ..datum() };
        let bytes = Datum { data: Some(vec![1, 2, 3, 4]), label: None, ..datum() };
        for datum in [&floats, &bytes, &floats] {
            record.read_datum(&datum.encode_to_vec(), Color::AsStored).unwrap();
            let want = Record::try_from(datum.clone()).unwrap();
            assert_eq!((record.shape(), record.label()), (want.shape(), want.label()));
            assert_eq!(record.values(), want.values());
            let label = datum.label.or(Some(0));
            assert_eq!(Datum::try_from(&record).unwrap(), Datum { label, ..datum.clone() });
        }
        let error =
            record.read_datum(&bytes.encode_to_vec()[..8], Color::Gray).unwrap_err().to_string();
        assert!(error.starts_with("not a caffe.Datum: "), "{error}");
        assert_eq!(record.count(), 0);
    }

    #[test]
    fn a_datum_that_makes_no_sense_is_refused() {
        for (datum, want) in [
            (datum(), "0 values, 4 needed"),
            (Datum { data: Some(vec![0; 5]), ..datum() }, "5 values, 4 needed"),
            (Datum { float_data: vec![0.0; 3], ..datum() }, "3 values, 4 needed"),
            (Datum { channels: Some(-1), ..datum() }, "extents [-1, 2, 2]"),
            (Datum { encoded: Some(true), data: Some(vec![0; 4]), ..datum() }, "encoded"),
        ] {
            let text = Record::try_from(datum).unwrap_err().to_string();
            assert!(text.contains(want), "{text}");
        }
    }
}

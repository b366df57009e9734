//! Conversion between records and Caffe's `Datum` messages.

use super::{
    image::{Color, Image},
    record::{Record, RecordValues},
};
use crate::{
    error::{Error, Result},
    proto::{Datum, Message, Name},
    shape::Shape,
};

impl Record {
    /// Fills this record from a serialized `Datum` message. If the message contains an encoded
    /// image, decodes the image to the channels that `color` selects.
    ///
    /// ```
    /// use cortado::{data::{Color, Record}, proto::{Datum, Message}};
    ///
    /// let (channels, height, width, label) = (Some(1), Some(1), Some(2), Some(7));
    /// let data = Some(vec![10, 20]);
    /// let datum = Datum { channels, height, width, data, label, ..Default::default() };
    /// let mut record = Record::default();
    /// record.read_datum(&datum.encode_to_vec(), Color::AsStored)?;
    /// assert_eq!((record.count(), record.label()), (2, 7));
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for bytes that are not a `Datum`, and any error from
    /// `Record::try_from` and [`Image::decode`].
    pub fn read_datum(&mut self, message: &[u8], color: Color) -> Result<()> {
        let Self { mut bytes, mut floats, .. } = std::mem::take(self);
        bytes.clear();
        floats.clear();
        let mut datum = Datum { data: Some(bytes), float_data: floats, ..Default::default() };
        let result = datum.merge(message);
        result.map_err(|error| {
            Error::InvalidData(format!("not a {}: {error}", Datum::full_name()))
        })?;
        self.read_datum_message(datum, color)
    }

    /// Like [`read_datum`](Self::read_datum), but for a message that is already decoded. The record
    /// has no boxes afterwards.
    pub(super) fn read_datum_message(&mut self, datum: Datum, color: Color) -> Result<()> {
        self.boxes.clear();
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

    /// Moves the bytes of the `Datum` into the record without copying them. As in Caffe, the record
    /// gets the values of `float_data` only if the field `data` is empty.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for an encoded image, a negative extent, or a number of
    /// values that does not match the shape. Returns [`Error::ShapeOverflow`] if the shape has too
    /// many values.
    fn try_from(datum: Datum) -> Result<Self> {
        if datum.encoded() {
            let reason = "datum: the image is encoded; decode it with `Record::read_datum`";
            return Err(Error::InvalidData(reason.into()));
        }
        let extents = [datum.channels(), datum.height(), datum.width()];
        let [Ok(channels), Ok(height), Ok(width)] = extents.map(usize::try_from) else {
            return Err(Error::InvalidData(format!("datum: negative extent in {extents:?}")));
        };
        let (shape, label) = ([channels, height, width], datum.label());
        let (bytes, floats) = (datum.data.unwrap_or_default(), datum.float_data);
        let is_float = bytes.is_empty();
        let (got, want) =
            (if is_float { floats.len() } else { bytes.len() }, Shape::new(&shape)?.count());
        if got != want {
            let reason =
                format!("datum: expected {want} values for shape {extents:?}, found {got}");
            return Err(Error::InvalidData(reason));
        }
        Ok(Self { shape, bytes, floats, is_float, label, boxes: Vec::new() })
    }
}

impl TryFrom<&Record> for Datum {
    type Error = Error;

    /// Copies the record to a `Datum` message, and leaves the field `encoded` unset.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for an extent above `i32::MAX`.
    fn try_from(record: &Record) -> Result<Self> {
        let shape = record.shape;
        let [Ok(channels), Ok(height), Ok(width)] = shape.map(i32::try_from) else {
            let reason =
                format!("record: an extent of {shape:?} exceeds the int32 range of a datum");
            return Err(Error::InvalidData(reason));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn datum() -> Datum {
        let (channels, height, width) = (Some(1), Some(2), Some(2));
        Datum { channels, height, width, label: Some(-3), ..Default::default() }
    }

    #[test]
    fn a_record_gets_the_floats_of_a_datum_only_if_the_datum_has_no_bytes() {
        let floats = Datum { float_data: vec![1.5; 4], ..datum() };
        let datum = Datum { data: Some(vec![1, 2, 3, 4]), ..floats.clone() };
        let record = Record::try_from(datum).unwrap();
        assert_eq!((record.shape(), record.label()), ([1, 2, 2], -3));
        assert_eq!(record.values(), RecordValues::Bytes(&[1, 2, 3, 4]));
        assert_eq!(Record::try_from(floats).unwrap().values(), RecordValues::Floats(&[1.5; 4]));
    }

    #[test]
    fn a_record_that_reads_a_second_datum_holds_only_that_datum() {
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
    fn a_datum_whose_values_do_not_match_its_shape_is_rejected() {
        for (datum, want) in [
            (datum(), "expected 4 values for shape [1, 2, 2], found 0"),
            (
                Datum { data: Some(vec![0; 5]), ..datum() },
                "expected 4 values for shape [1, 2, 2], found 5",
            ),
            (
                Datum { float_data: vec![0.0; 3], ..datum() },
                "expected 4 values for shape [1, 2, 2], found 3",
            ),
            (Datum { channels: Some(-1), ..datum() }, "extent in [-1, 2, 2]"),
            (Datum { encoded: Some(true), data: Some(vec![0; 4]), ..datum() }, "encoded"),
        ] {
            let text = Record::try_from(datum).unwrap_err().to_string();
            assert!(text.contains(want), "{text}");
        }
    }
}

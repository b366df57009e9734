//! A record of a data source: an image or array with its label.

use super::annotated_box::AnnotatedBox;
use crate::{
    error::{Error, Result},
    shape::Shape,
};

/// An image or array of `channels × height × width` values with a label.
///
/// Filling a record again reuses the record's buffers.
///
/// ```
/// use cortado::{data::Record, proto::Datum};
///
/// let mut record = Record::default();
/// record.bytes_mut([1, 2, 2])?.copy_from_slice(&[10, 20, 30, 40]);
/// record.set_label(3);
/// let datum = Datum::try_from(&record)?;
/// assert_eq!((datum.height(), datum.label(), datum.data()), (2, 3, &[10, 20, 30, 40][..]));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[doc(alias = "Datum")]
pub struct Record {
    pub(super) shape: [usize; 3],
    pub(super) bytes: Vec<u8>,
    pub(super) floats: Vec<f32>,
    pub(super) is_float: bool,
    pub(super) label: i32,
    pub(super) boxes: Vec<AnnotatedBox>,
}

/// The values of a [`Record`] in the order channel, row, column.
///
/// ```
/// use cortado::data::{Record, RecordValues};
///
/// let mut record = Record::default();
/// record.floats_mut([1, 1, 2])?.copy_from_slice(&[0.5, 1.5]);
/// let sum: f32 = match record.values() {
///     RecordValues::Bytes(bytes) => bytes.iter().copied().map(f32::from).sum(),
///     RecordValues::Floats(floats) => floats.iter().sum(),
/// };
/// assert_eq!(sum, 2.0);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecordValues<'a> {
    /// The values of an 8-bit image.
    Bytes(&'a [u8]),
    /// The values of a record that is not an 8-bit image.
    Floats(&'a [f32]),
}

impl Record {
    /// Returns the number of channels, the height and the width.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Returns the number of values, which is `channels · height · width`.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns all [`count`](Self::count) values of the record.
    pub fn values(&self) -> RecordValues<'_> {
        if self.is_float {
            RecordValues::Floats(&self.floats)
        } else {
            RecordValues::Bytes(&self.bytes)
        }
    }

    /// Returns the label.
    pub fn label(&self) -> i32 {
        self.label
    }

    /// Returns the boxes around the objects in the record, which
    /// [`read_annotated_datum`](Self::read_annotated_datum) has stored.
    pub fn boxes(&self) -> &[AnnotatedBox] {
        &self.boxes
    }

    /// Sets the label.
    pub fn set_label(&mut self, label: i32) {
        self.label = label;
    }

    /// Changes this record to an 8-bit image of the given shape, and returns its bytes. The bytes
    /// are unspecified until the caller writes them.
    ///
    /// # Errors
    /// Returns [`Error::ShapeOverflow`] for too large a shape, or [`Error::OutOfMemory`]. After an
    /// error, the record is empty.
    pub fn bytes_mut(&mut self, shape: [usize; 3]) -> Result<&mut [u8]> {
        self.is_float = false;
        self.shape = [0; 3];
        resize(&mut self.bytes, shape)?;
        self.shape = shape;
        Ok(&mut self.bytes)
    }

    /// Like [`bytes_mut`](Self::bytes_mut), but for floats.
    pub fn floats_mut(&mut self, shape: [usize; 3]) -> Result<&mut [f32]> {
        self.is_float = true;
        self.shape = [0; 3];
        resize(&mut self.floats, shape)?;
        self.shape = shape;
        Ok(&mut self.floats)
    }
}

/// Resizes `values` to the product of the extents `shape`, or clears `values` if the resize fails.
fn resize<S: Copy + Default>(values: &mut Vec<S>, shape: [usize; 3]) -> Result<()> {
    let result = Shape::new(&shape).and_then(|shape| {
        let count = shape.count();
        let bytes = count.saturating_mul(size_of::<S>());
        values
            .try_reserve(count.saturating_sub(values.len()))
            .map_err(|_| Error::out_of_host_memory(bytes))?;
        values.resize(count, S::default());
        Ok(())
    });
    result.inspect_err(|_| values.clear())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_filled_again_has_the_new_shape_type_and_values() {
        let mut record = Record::default();
        assert_eq!((record.shape(), record.count()), ([0; 3], 0));
        assert_eq!(record.values(), RecordValues::Bytes(&[]));
        record.bytes_mut([1, 2, 2]).unwrap().copy_from_slice(&[1, 2, 3, 4]);
        record.floats_mut([1, 1, 2]).unwrap().copy_from_slice(&[0.5, 1.5]);
        assert_eq!((record.count(), record.values()), (2, RecordValues::Floats(&[0.5, 1.5])));
        assert_eq!(record.bytes_mut([3, 1, 1]).unwrap().len(), 3);
        assert!(record.bytes_mut([usize::MAX, 2, 1]).is_err());
        assert_eq!((record.count(), record.values()), (0, RecordValues::Bytes(&[])));
        // With 32-bit addresses, no shape can have 2⁵⁰ elements.
        #[cfg(target_pointer_width = "64")]
        {
            let error = record.floats_mut([1 << 40, 1 << 10, 1]).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
            assert_eq!((record.count(), record.values()), (0, RecordValues::Floats(&[])));
        }
    }
}

//! One record of a data source.

use crate::{
    error::{Error, Result},
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
pub enum Values<'a> {
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
    pub fn values(&self) -> Values<'_> {
        if self.is_float { Values::Floats(&self.floats) } else { Values::Bytes(&self.bytes) }
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

//! Blobs as messages: `BlobProto`.

use super::Blob;
use crate::{
    device::Device,
    element::{DType, Element},
    error::{Error, Result},
    proto::{BlobProto, BlobShape},
    shape::Shape,
};

impl<T: Element, D: Device> Blob<T, D> {
    /// This blob as a message, with its diff if `diff`: `double` fields for `f64`, `float` for
    /// the rest. A blob of no axes has no shape in the message, as in Caffe.
    ///
    /// # Errors
    /// [`Error::Borrowed`]; those of the device.
    #[doc(alias = "ToProto")]
    pub fn to_proto(&self, diff: bool) -> Result<BlobProto> {
        let dim: Vec<i64> = self.shape().iter().map(|&extent| extent as i64).collect();
        let shape = (!dim.is_empty()).then_some(BlobShape { dim });
        let mut proto = BlobProto { shape, ..Default::default() };
        (proto.data, proto.double_data) = values(self.data()?.host()?);
        if diff {
            (proto.diff, proto.double_diff) = values(self.diff()?.host()?);
        }
        Ok(proto)
    }

    /// Takes data, and diff if there is one, from a message; the shape too if `reshape`, else it
    /// must be this blob's. Values are rounded to `T`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ, an extent is negative, or there are not as many
    /// values as the shape counts; and, as in Caffe, for a message of no elements unless the blob
    /// has held some before. [`Error::Borrowed`]; those of the device. The blob is unchanged then.
    #[doc(alias = "FromProto")]
    pub fn from_proto(&mut self, proto: &BlobProto, reshape: bool) -> Result<()> {
        let extents = extents(proto)?;
        let shape = Shape::new(&extents)?;
        if !reshape {
            self.expect_shape(proto)?;
        }
        let count = if reshape { shape.count() } else { self.count() };
        let expect = |what, len: usize| match len == count {
            true => Ok(()),
            false => Err(Error::Shape(format!("{len} values of {what} for shape {shape}"))),
        };
        let double = !proto.double_data.is_empty();
        expect("data", if double { proto.double_data.len() } else { proto.data.len() })?;
        let double_diff = !proto.double_diff.is_empty();
        let diffs = if double_diff { proto.double_diff.len() } else { proto.diff.len() };
        if diffs > 0 {
            expect("diff", diffs)?;
        }
        if count == 0 && self.capacity()? == 0 {
            return Err(Error::Shape(format!("a message of no elements, shape {shape}")));
        }
        if reshape {
            self.reshape(&shape)?;
        }
        let mut data = self.data_mut()?;
        set(data.host_write_only()?, &proto.data, &proto.double_data);
        if diffs > 0 {
            let mut diff = self.diff_mut()?;
            set(diff.host_write_only()?, &proto.diff, &proto.double_diff);
        }
        Ok(())
    }

    /// Fails unless a message has this blob's shape.
    pub(crate) fn expect_shape(&self, proto: &BlobProto) -> Result<()> {
        if self.shape_equals(proto) {
            return Ok(());
        }
        let theirs = Shape::new(&extents(proto)?)?;
        Err(Error::Shape(format!("a message of shape {theirs} for {}", self.shape())))
    }

    /// Whether a message has this blob's shape. One with the older `num`, `channels`, `height`
    /// and `width` has that of a blob of at most four axes, to which ones are put in front.
    #[doc(alias = "ShapeEquals")]
    pub fn shape_equals(&self, proto: &BlobProto) -> bool {
        let Ok(extents) = extents(proto) else { return false };
        if !is_legacy(proto) {
            return extents == self.shape()[..];
        }
        (-4..0)
            .zip(&extents)
            .all(|(axis, &extent)| self.shape().legacy(axis).is_ok_and(|ours| ours == extent))
    }
}

fn is_legacy(proto: &BlobProto) -> bool {
    [proto.num, proto.channels, proto.height, proto.width].iter().any(Option::is_some)
}

/// A message's shape: the four older fields if any of them is given.
fn extents(proto: &BlobProto) -> Result<Vec<usize>> {
    let legacy = [proto.num(), proto.channels(), proto.height(), proto.width()].map(i64::from);
    let dim = match (is_legacy(proto), &proto.shape) {
        (true, _) => &legacy[..],
        (false, Some(shape)) => &shape.dim,
        (false, None) => &[],
    };
    let negative = |_| Error::Shape(format!("negative extent in shape {dim:?}"));
    dim.iter().map(|&extent| usize::try_from(extent).map_err(negative)).collect()
}

/// Elements as `float` or as `double` values; the other list is empty.
fn values<T: Element>(elements: &[T]) -> (Vec<f32>, Vec<f64>) {
    match T::DTYPE {
        DType::F64 => (Vec::new(), elements.iter().map(|value| value.to_f64()).collect()),
        _ => (elements.iter().map(|value| value.to_f64() as f32).collect(), Vec::new()),
    }
}

fn set<T: Element>(elements: &mut [T], floats: &[f32], doubles: &[f64]) {
    if doubles.is_empty() {
        let floats = floats.iter().map(|&value| T::from_f64(value.into()));
        elements.iter_mut().zip(floats).for_each(|(element, value)| *element = value);
    } else {
        let doubles = doubles.iter().map(|&value| T::from_f64(value));
        elements.iter_mut().zip(doubles).for_each(|(element, value)| *element = value);
    }
}

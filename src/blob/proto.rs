//! Conversion of blobs from and to `BlobProto` messages.

use super::Blob;
use crate::{
    device::Device,
    element::{DType, Element},
    error::{Error, Result},
    proto::{BlobProto, BlobShape},
    shape::Shape,
};

impl<T: Element, D: Device> Blob<T, D> {
    /// Converts this blob to a message, which includes the diff if `diff` is true. The message
    /// holds `double` values if the element type is `f64`, else `float` values. As in Caffe, a blob
    /// without axes yields a message without a shape.
    ///
    /// ```
    /// use cortado::prelude::*;
    ///
    /// let w = Blob::from_slice(&CpuDevice::new(), &[1, 2], &[1.0_f32, 2.0])?;
    /// let message = w.to_proto(false)?; // without the diff
    /// assert_eq!(message.data, [1.0, 2.0]);
    ///
    /// let mut copy = Blob::<f64, _>::new(&CpuDevice::new(), &[0])?;
    /// copy.from_proto(&message, true)?;
    /// assert_eq!((copy.shape().to_vec(), copy.to_vec()?), (vec![1, 2], vec![1.0, 2.0]));
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Borrowed`] if another access to the data is in progress; any error that the device
    /// returns.
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

    /// Copies the data, and the diff if the message has a diff, from `proto` to this blob, and
    /// rounds the values to `T`. If `reshape` is true, the blob takes the message's shape;
    /// otherwise the shapes must be equal.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes differ, an extent is negative, or the number of values is not
    /// the count of the shape; also, as in Caffe, if the message has no elements and the blob never
    /// held elements. [`Error::Borrowed`] if another access to the data is in progress; any error
    /// that the device returns. On error, the blob is unchanged.
    #[doc(alias = "FromProto")]
    pub fn from_proto(&mut self, proto: &BlobProto, reshape: bool) -> Result<()> {
        let extents = extents(proto)?;
        let shape = Shape::new(&extents)?;
        if !reshape {
            self.check_shape(proto)?;
        }
        let count = if reshape { shape.count() } else { self.count() };
        let check_count = |field, len: usize| match len == count {
            true => Ok(()),
            false => Err(Error::Shape(format!("found {len} values of {field} for shape {shape}"))),
        };
        let has_doubles = !proto.double_data.is_empty();
        check_count("data", if has_doubles { proto.double_data.len() } else { proto.data.len() })?;
        let has_double_diffs = !proto.double_diff.is_empty();
        let diffs = if has_double_diffs { proto.double_diff.len() } else { proto.diff.len() };
        if diffs > 0 {
            check_count("diff", diffs)?;
        }
        if count == 0 && self.storage_bytes()? == 0 {
            return Err(Error::Shape(format!("message of shape {shape} has no elements")));
        }
        if reshape {
            self.reshape(&shape)?;
        }
        let mut data = self.data_mut()?;
        overwrite(data.host_write_only()?, &proto.data, &proto.double_data);
        if diffs > 0 {
            let mut diff = self.diff_mut()?;
            overwrite(diff.host_write_only()?, &proto.diff, &proto.double_diff);
        }
        Ok(())
    }

    /// Returns an error unless a message has this blob's shape.
    pub(crate) fn check_shape(&self, proto: &BlobProto) -> Result<()> {
        if self.shape_equals(proto) {
            return Ok(());
        }
        let (expected, found) = (self.shape(), Shape::new(&extents(proto)?)?);
        Err(Error::Shape(format!("expected shape {expected}, found {found}")))
    }

    /// Returns whether a message has this blob's shape. If the message has the older fields `num`,
    /// `channels`, `height` and `width`, the comparison pads the blob's shape to four axes with
    /// leading extents of 1.
    #[doc(alias = "ShapeEquals")]
    pub fn shape_equals(&self, proto: &BlobProto) -> bool {
        let Ok(extents) = extents(proto) else { return false };
        if !is_legacy(proto) {
            return extents == self.shape()[..];
        }
        (-4..0)
            .zip(&extents)
            .all(|(axis, &found)| self.shape().legacy(axis).is_ok_and(|extent| extent == found))
    }
}

fn is_legacy(proto: &BlobProto) -> bool {
    [proto.num, proto.channels, proto.height, proto.width].iter().any(Option::is_some)
}

/// Returns the shape of a message; the older fields, such as `num`, take precedence over `shape`.
fn extents(proto: &BlobProto) -> Result<Vec<usize>> {
    let legacy_shape =
        [proto.num(), proto.channels(), proto.height(), proto.width()].map(i64::from);
    let dim = match (is_legacy(proto), &proto.shape) {
        (true, _) => &legacy_shape[..],
        (false, Some(shape)) => &shape.dim,
        (false, None) => &[],
    };
    let negative_error = |_| Error::Shape(format!("negative extent in shape {dim:?}"));
    dim.iter().map(|&extent| usize::try_from(extent).map_err(negative_error)).collect()
}

/// Converts elements to a list of `float` values and a list of `double` values, one of which is
/// empty.
fn values<T: Element>(elements: &[T]) -> (Vec<f32>, Vec<f64>) {
    match T::DTYPE {
        DType::F64 => (Vec::new(), elements.iter().map(|value| value.to_f64()).collect()),
        _ => (elements.iter().map(|value| value.to_f64() as f32).collect(), Vec::new()),
    }
}

/// Overwrites `elements` with `doubles`, or with `floats` if `doubles` is empty.
fn overwrite<T: Element>(elements: &mut [T], floats: &[f32], doubles: &[f64]) {
    if doubles.is_empty() {
        let floats = floats.iter().map(|&value| T::from_f64(value.into()));
        elements.iter_mut().zip(floats).for_each(|(element, value)| *element = value);
    } else {
        let doubles = doubles.iter().map(|&value| T::from_f64(value));
        elements.iter_mut().zip(doubles).for_each(|(element, value)| *element = value);
    }
}

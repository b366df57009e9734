//! Image resizing and image noise, as the fields `resize_param` and `noise_param` define them.

use super::{image::Image, noise::Noise, record::Record, resize_policy::ResizePolicy};
use crate::{
    error::{Error, Result},
    op::RngKey,
    proto::TransformationParameter,
};

/// The changes of an image before the mean is subtracted: resizing, then noise.
#[derive(Clone, Debug)]
pub(super) struct ImageChanges {
    resize: Option<ResizePolicy>,
    noise: Option<Noise>,
}

impl ImageChanges {
    /// Creates the changes that `param` defines.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`], which names the field, for an invalid or unsupported field.
    pub(super) fn new(param: &TransformationParameter, key: RngKey) -> Result<Self> {
        let (resize, noise) = (param.resize_param.as_ref(), param.noise_param.as_ref());
        Ok(Self {
            resize: resize
                .map(|resize| ResizePolicy::new(resize, key.named_child("resize")))
                .transpose()?,
            noise: noise.map(|noise| Noise::new(noise, key.named_child("noise"))).transpose()?,
        })
    }

    /// Returns the resize policy, or `None` if `resize_param` is not set.
    pub(super) fn resize(&self) -> Option<&ResizePolicy> {
        self.resize.as_ref()
    }

    /// Returns the shape that a record of the given shape has after the changes.
    pub(super) fn output_shape(&self, [channels, height, width]: [usize; 3]) -> [usize; 3] {
        match &self.resize {
            Some(resize) => {
                let [height, width] = resize.output_size([height, width]);
                [channels, height, width]
            }
            None => [channels, height, width],
        }
    }

    /// Returns the resized image with noise. `number` is the number of the record, on which the
    /// random choices depend.
    ///
    /// # Errors
    /// Returns any error from resizing the image or from adding noise.
    pub(super) fn apply(&self, number: u64, mut image: Image) -> Result<Image> {
        if let Some(resize) = &self.resize {
            image = resize.apply(number, &image)?;
        }
        if let Some(noise) = &self.noise {
            noise.apply(number, &mut image)?;
        }
        Ok(image)
    }

    /// Returns the changed record, or `None` if neither `resize_param` nor `noise_param` is set.
    /// `number` is the number of the record, on which the random choices depend.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] for a record of floats, and any error from resizing the
    /// image or from adding noise.
    pub(super) fn apply_to_record(&self, number: u64, record: &Record) -> Result<Option<Record>> {
        if self.resize.is_none() && self.noise.is_none() {
            return Ok(None);
        }
        let mut changed = Record::default();
        self.apply(number, image_of(record)?)?.store(&mut changed)?;
        Ok(Some(changed))
    }
}

/// Returns the image of a record.
///
/// # Errors
/// Returns [`Error::InvalidInput`] for a record of floats.
pub(super) fn image_of(record: &Record) -> Result<Image> {
    Image::of_record(record).ok_or_else(|| {
        Error::invalid_input(
            "transform_param",
            "`resize_param`, `noise_param`, `distort_param`, `expand_param` and `batch_sampler` need \
             records of 8-bit images",
        )
    })
}

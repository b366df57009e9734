//! Image noise, as the field `noise_param` defines it.

use super::{draws::index, image::Image};
use crate::{
    error::{Error, Result},
    op::RngKey,
    proto::NoiseParameter,
};

/// The changes that the field `noise_param` of the SSD fork of Caffe selects.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    param: NoiseParameter,
    /// The values of the pixels that `saltpepper` sets.
    values: Vec<u8>,
    key: RngKey,
}

impl Noise {
    /// Creates the noise.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`], which names the field, for an invalid or unsupported field.
    pub(super) fn new(param: &NoiseParameter, key: RngKey) -> Result<Self> {
        let unsupported = [
            ("jpeg", param.jpeg() > 0.0, "cortado does not write JPEG files"),
            ("clahe", param.clahe(), "cortado equalizes only whole images; use `hist_eq`"),
            (
                "convert_to_lab",
                param.convert_to_lab(),
                "the fork reads the bytes of the result's floats as pixels",
            ),
        ];
        if let Some((field, _, reason)) = unsupported.iter().find(|(_, is_set, _)| *is_set) {
            return Err(invalid(format!("`{field}` is not supported: {reason}")));
        }
        let dots = param.saltpepper_param.clone().unwrap_or_default();
        let fraction = dots.fraction();
        if param.saltpepper() && !(0.0..=1.0).contains(&fraction) {
            return Err(invalid(format!("`fraction` must lie in 0 to 1, found {fraction}")));
        }
        if param.saltpepper() && dots.value.is_empty() {
            return Err(invalid("`saltpepper` needs a `value` in `saltpepper_param`".into()));
        }
        let values = dots.value.iter().map(|value| *value as u8).collect();
        Ok(Self { param: param.clone(), values, key })
    }

    /// Changes the image. `number` is the number of the record, on which the random choices depend.
    /// Applies the changes in the same order as the SSD fork.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if the image has neither one nor three channels, or if there
    /// are several `value`s but not one for each channel.
    pub(super) fn apply(&self, number: u64, image: &mut Image) -> Result<()> {
        let p = &self.param;
        let [channels, height, width] = image.shape();
        if channels != 1 && channels != 3 {
            return Err(invalid(format!("needs images of 1 or 3 channels, found {channels}")));
        }
        if self.values.len() > 1 && self.values.len() != channels {
            let (count, one) = (self.values.len(), "expected one `value` or one for each");
            return Err(invalid(format!("{one} of {channels} channels, found {count}")));
        }
        if p.decolorize() {
            image.decolorize();
        }
        if p.gauss_blur() {
            image.blur();
        }
        if p.hist_eq() {
            image.equalize();
        }
        if p.erode() {
            image.erode();
        }
        if p.posterize() {
            image.change_values(|x| x / 64 * 64 + 32);
        }
        if p.inverse() {
            image.change_values(|x| !x);
        }
        if p.saltpepper() {
            let fraction = p.saltpepper_param.as_ref().map_or(0.0, |dots| dots.fraction());
            let rng = &mut self.key.child(number).rng();
            for _ in 0..(fraction * width as f32 * height as f32).floor() as usize {
                image.set_pixel(index(rng, height * width), &self.values);
            }
        }
        if p.convert_to_hsv() {
            image.convert_to_hsv();
        }
        Ok(())
    }
}

fn invalid(reason: String) -> Error {
    Error::invalid_input("transform_param", format!("`noise_param`: {reason}"))
}

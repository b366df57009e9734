//! Random changes of the colors of images, as the field `distort_param` defines them.

use super::{
    draws::{index, uniform},
    image::{Image, bgr_of_hsv, hsv_of_bgr, scaled},
};
use crate::{
    error::{Error, Result},
    op::RngKey,
    proto::DistortionParameter,
};
use rand_core::Rng;

/// The field `distort_param` of the SSD fork.
#[derive(Clone, Debug)]
pub(super) struct ColorDistortion {
    param: DistortionParameter,
    key: RngKey,
}

impl ColorDistortion {
    /// Creates the distortion.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`], which names the field, for an invalid range.
    pub(super) fn new(param: DistortionParameter, key: RngKey) -> Result<Self> {
        let p = &param;
        let deltas = [
            ("brightness", p.brightness_prob(), p.brightness_delta()),
            ("hue", p.hue_prob(), p.hue_delta()),
        ];
        for (name, prob, delta) in deltas {
            if prob > 0.0 && !(delta >= 0.0 && delta.is_finite()) {
                return Err(invalid(format!("`{name}_delta` must not be negative, found {delta}")));
            }
        }
        let ranges = [
            ("contrast", p.contrast_prob(), p.contrast_lower(), p.contrast_upper()),
            ("saturation", p.saturation_prob(), p.saturation_lower(), p.saturation_upper()),
        ];
        for (name, prob, lower, upper) in ranges {
            if prob > 0.0 && !(lower >= 0.0 && lower <= upper && upper.is_finite()) {
                return Err(invalid(format!(
                    "expected 0 ≤ {name}_lower ≤ {name}_upper, found {lower} and {upper}"
                )));
            }
        }
        Ok(Self { param, key })
    }

    /// Randomly changes the colors of the image with the number `number`: first the brightness;
    /// then, in one of two orders, the contrast, the saturation and the hue, or the saturation, the
    /// hue and the contrast; and last the order of the channels.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] for an image without three channels, unless the fields
    /// enable only changes of the brightness and the contrast.
    pub(super) fn apply(&self, number: u64, image: &mut Image) -> Result<()> {
        let p = &self.param;
        let [channels, ..] = image.shape();
        let needs_colors = [p.hue_prob(), p.saturation_prob(), p.random_order_prob()];
        if channels != 3 && needs_colors.iter().any(|prob| *prob > 0.0) {
            return Err(invalid(format!(
                "changes of hue, saturation and channels need 3 channels, found {channels}; set \
                 `force_color`"
            )));
        }
        let rng = &mut self.key.child(number).rng();
        let contrast_first = uniform(rng, 0.0, 1.0) > 0.5;
        if happens(rng, p.brightness_prob()) {
            let delta = symmetric(rng, p.brightness_delta());
            image.scale(1.0, delta);
        }
        if contrast_first {
            self.change_contrast(rng, image);
        }
        if happens(rng, p.saturation_prob()) {
            change_saturation(image, uniform(rng, p.saturation_lower(), p.saturation_upper()));
        }
        if happens(rng, p.hue_prob()) {
            change_hue(image, symmetric(rng, p.hue_delta()));
        }
        if !contrast_first {
            self.change_contrast(rng, image);
        }
        if happens(rng, p.random_order_prob()) {
            let mut order = [0, 1, 2];
            for i in (1..3).rev() {
                order.swap(i, index(rng, i + 1));
            }
            image.change_colors(|color| order.map(|channel: usize| color[channel]));
        }
        Ok(())
    }

    fn change_contrast(&self, rng: &mut impl Rng, image: &mut Image) {
        let p = &self.param;
        if happens(rng, p.contrast_prob()) {
            let factor = uniform(rng, p.contrast_lower(), p.contrast_upper());
            // As in the fork, a factor close to 1 changes nothing.
            if (factor - 1.0).abs() > 1e-3 {
                image.scale(factor, 0.0);
            }
        }
    }
}

/// Multiplies the saturation by `factor`. The conversion of the colors rounds even if `factor` is 1.
fn change_saturation(image: &mut Image, factor: f32) {
    image.change_colors(|color| {
        let [hue, saturation, value] = hsv_of_bgr(color);
        bgr_of_hsv([hue, scaled(saturation, factor, 0.0), value])
    });
}

/// Adds `delta` to the hue, whose unit is two degrees. As in the fork, a hue below 0 becomes 0.
fn change_hue(image: &mut Image, delta: f32) {
    if delta != 0.0 {
        image.change_colors(|color| {
            let [hue, saturation, value] = hsv_of_bgr(color);
            bgr_of_hsv([scaled(hue, 1.0, delta), saturation, value])
        });
    }
}

/// Returns `true` with the given probability.
fn happens(rng: &mut impl Rng, probability: f32) -> bool {
    uniform(rng, 0.0, 1.0) < probability
}

/// Draws a number between `-bound` and `bound`.
fn symmetric(rng: &mut impl Rng, bound: f32) -> f32 {
    uniform(rng, -bound, bound)
}

fn invalid(reason: String) -> Error {
    Error::invalid_input("transform_param", format!("`distort_param`: {reason}"))
}

#[cfg(test)]
mod tests;

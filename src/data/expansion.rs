//! Random borders around images, as the field `expand_param` defines them.

use super::{
    draws::uniform,
    image::{Border, Image},
};
use crate::{
    error::{Error, Result},
    limits,
    op::RngKey,
    proto::TransformationParameter,
};

/// The field `expand_param` of the SSD fork.
#[derive(Clone, Debug)]
pub(super) struct Expansion {
    probability: f32,
    max_ratio: f32,
    border: Border,
    key: RngKey,
}

impl Expansion {
    /// Creates the expansion from `transform_param`, or returns `None` if the field `expand_param`
    /// is not set. The border has the color of the field `mean_value`, or is black.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`], which names the field, if `max_expand_ratio` is not a
    /// finite number of at least 1, or if `mean_file` is also set.
    pub(super) fn new(param: &TransformationParameter, key: RngKey) -> Result<Option<Self>> {
        let Some(expand) = param.expand_param else { return Ok(None) };
        let max_ratio = expand.max_expand_ratio();
        if !(max_ratio >= 1.0 && max_ratio.is_finite()) {
            return Err(invalid(format!(
                "`max_expand_ratio` must be at least 1, found {max_ratio}"
            )));
        }
        if param.mean_file.is_some() {
            return Err(invalid(
                "`mean_file` has one size, but the expanded images have random sizes; use \
                 `mean_value`"
                    .into(),
            ));
        }
        let color = param.mean_value.iter().map(|x| x.round_ties_even().clamp(0.0, 255.0) as u8);
        let border = Border::Constant(color.collect());
        Ok(Some(Self { probability: expand.prob(), max_ratio, border, key }))
    }

    /// Puts the image with the number `number` at a random position in a larger image. Returns the
    /// left, top, right and bottom edges of the larger image, as fractions of the size of the
    /// original image, or `None` if the image keeps its size.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the larger image exceeds a size limit.
    pub(super) fn apply(&self, number: u64, image: &mut Image) -> Result<Option<[f32; 4]>> {
        let rng = &mut self.key.child(number).rng();
        // As in the SSD fork, a `max_expand_ratio` below 1.01 has no effect.
        if uniform(rng, 0.0, 1.0) > self.probability || (self.max_ratio - 1.0).abs() < 1e-2 {
            return Ok(None);
        }
        let ratio = uniform(rng, 1.0, self.max_ratio);
        let [_, height, width] = image.shape();
        let size = [height, width].map(|extent| ((extent as f32 * ratio) as usize).max(extent));
        check_size(image, size)?;
        let mut start =
            |i: usize, extent: usize| uniform(rng, 0.0, (size[i] - extent) as f32).floor() as usize;
        let [top, left] = [start(0, height), start(1, width)];
        *image = image.framed([top, left], size, &self.border)?;
        let edge = |position: f32, extent: usize| position / extent as f32;
        Ok(Some([
            edge(-(left as f32), width),
            edge(-(top as f32), height),
            edge((size[1] - left) as f32, width),
            edge((size[0] - top) as f32, height),
        ]))
    }
}

/// Fails if a larger image of `height × width` pixels exceeds the size limit, which depends on the
/// size of `image`.
fn check_size(image: &Image, [height, width]: [usize; 2]) -> Result<()> {
    let [channels, rows, columns] = image.shape();
    let bytes = |height: usize, width: usize| {
        (channels as u64).saturating_mul(height as u64).saturating_mul(width as u64)
    };
    let (wanted, limit) = (bytes(height, width), limits::expanded(bytes(rows, columns)));
    if wanted > limit {
        return Err(Error::InvalidData(format!(
            "`expand_param` enlarges an image of {rows} x {columns} pixels to {height} x {width}, \
             {wanted} bytes, but the size limit is {limit} bytes"
        )));
    }
    Ok(())
}

fn invalid(reason: String) -> Error {
    Error::invalid_input("transform_param", format!("`expand_param`: {reason}"))
}

//! Borders around images.

use super::pixels::Image;
use crate::error::{Error, Result};

/// The values of the pixels in a border around an image.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::data) enum Border {
    /// One value per channel; a channel without a value has the last value, or 0 if the list is
    /// empty.
    Constant(Vec<u8>),
    /// The mirrored image; the pixels at its edges are not repeated.
    Reflected,
    /// The value of the nearest pixel of the image.
    Repeated,
}

impl Image {
    /// Returns an image of `height × width` pixels that contains this image, with its first pixel
    /// at row `top` and column `left`, and `border` around it.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`] if an allocation fails.
    pub(in crate::data) fn framed(
        &self,
        [top, left]: [usize; 2],
        [height, width]: [usize; 2],
        border: &Border,
    ) -> Result<Self> {
        let channels = self.channels;
        let bytes = height.saturating_mul(width).saturating_mul(channels);
        let mut pixels = Vec::new();
        pixels.try_reserve_exact(bytes).map_err(|_| Error::out_of_host_memory(bytes))?;
        let index = |i: usize, start: usize, len: usize| {
            let offset = i as i64 - start as i64;
            match border {
                Border::Reflected => Some(reflect(offset, len)),
                Border::Repeated => Some(offset.clamp(0, len as i64 - 1) as usize),
                Border::Constant(_) => usize::try_from(offset).ok().filter(|&i| i < len),
            }
        };
        let fill: &[u8] = match border {
            Border::Constant(values) => values,
            Border::Reflected | Border::Repeated => &[],
        };
        let fill = |channel: usize| fill.get(channel).or(fill.last()).copied().unwrap_or(0);
        for row in (0..height).map(|i| index(i, top, self.height)) {
            for column in (0..width).map(|i| index(i, left, self.width)) {
                match (row, column) {
                    (Some(row), Some(column)) => {
                        let start = (row * self.width + column) * channels;
                        pixels.extend_from_slice(&self.pixels[start..start + channels]);
                    }
                    _ => pixels.extend((0..channels).map(fill)),
                }
            }
        }
        Ok(Self { channels, height, width, pixels })
    }
}

/// Returns the index in `0..len` to which mirroring at the first and the last pixel maps `i`.
pub(super) fn reflect(i: i64, len: usize) -> usize {
    let last = len as i64 - 1;
    if last == 0 {
        return 0;
    }
    let i = i.rem_euclid(2 * last);
    i.min(2 * last - i) as usize
}

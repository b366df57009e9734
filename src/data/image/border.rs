//! Borders around images.

use super::pixels::Image;
use crate::error::{Error, Result};

/// The pixels of a border.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::data) enum Border {
    /// One value for each channel; the last value also for the channels without a value.
    Constant(Vec<u8>),
    /// The pixels of the image, mirrored at the pixels on its edge.
    Reflected,
    /// The nearest pixels of the image.
    Repeated,
}

impl Image {
    /// Returns an image of `height × width` pixels with this image at the row and the column
    /// `position`, and a border around it.
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

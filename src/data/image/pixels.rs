//! A decoded image and its color channels.

use crate::{
    data::record::{Record, RecordValues},
    error::{Error, Result},
    proto::TransformationParameter,
};

/// The color channels of a decoded image.
///
/// ```
/// use cortado::{data::Color, proto::TransformationParameter};
///
/// let gray = TransformationParameter { force_gray: Some(true), ..Default::default() };
/// assert_eq!(Color::forced(&gray)?, Color::Gray);
/// assert_eq!(Color::default(), Color::AsStored);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// The channels of the file: blue, green and red, or grey. A PNG file with alpha has four
    /// channels, even if the file is grey.
    #[default]
    AsStored,
    /// Three channels: blue, green and red.
    #[doc(alias = "force_color")]
    Bgr,
    /// Grey.
    #[doc(alias = "force_gray")]
    Gray,
}

impl Color {
    /// Returns the color channels that `transform_param` selects.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] if both `force_color` and `force_gray` are set.
    pub fn forced(param: &TransformationParameter) -> Result<Self> {
        match (param.force_color(), param.force_gray()) {
            (false, false) => Ok(Self::AsStored),
            (true, false) => Ok(Self::Bgr),
            (false, true) => Ok(Self::Gray),
            (true, true) => {
                let reason = "`force_color` and `force_gray` are mutually exclusive";
                Err(Error::invalid_input("transform_param", reason))
            }
        }
    }
}

/// A decoded image with 8 bits per channel: grey, or blue, green and red as in OpenCV.
///
/// ```no_run
/// use cortado::data::{Color, Image, Record};
///
/// let image = Image::read("cat.jpg", Color::Bgr)?.resize(256, 256)?.part([16, 16], [224, 224])?;
/// assert_eq!(image.shape(), [3, 224, 224]);
/// let mut record = Record::default();
/// image.store(&mut record)?;
/// std::fs::write("cat.png", image.encode_png()?).unwrap();
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[doc(alias = "Mat")]
pub struct Image {
    pub(super) channels: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) pixels: Vec<u8>,
}

impl Image {
    /// Returns the number of channels, the height and the width.
    pub fn shape(&self) -> [usize; 3] {
        [self.channels, self.height, self.width]
    }

    /// Returns the image that [`store`](Self::store) has copied to `record`; `None` for an empty
    /// record or a record of floats.
    pub(in crate::data) fn of_record(record: &Record) -> Option<Self> {
        let [channels, height, width] = record.shape();
        match record.values() {
            RecordValues::Bytes(bytes) if !bytes.is_empty() => {
                let size = height * width;
                let pixel = |i: usize| (0..channels).map(move |channel| bytes[channel * size + i]);
                Some(Self { channels, height, width, pixels: (0..size).flat_map(pixel).collect() })
            }
            _ => None,
        }
    }

    /// Returns a copy of the rectangle with extents `size` (height, width), whose top left pixel is
    /// `from` (row, column).
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`] for a rectangle that extends beyond the image, and
    /// [`Error::OutOfMemory`] if an allocation fails.
    #[doc(alias = "roi")]
    pub fn part(&self, from: [usize; 2], size: [usize; 2]) -> Result<Self> {
        let ([row, column], [height, width]) = (from, size);
        let fits = |from: usize, size: usize, extent| {
            from.checked_add(size).is_some_and(|end| end <= extent)
        };
        if !fits(row, height, self.height) || !fits(column, width, self.width) {
            let part = format!("{height} x {width} pixels at {row}, {column}");
            let reason = format!("{part} exceed an image of {} x {}", self.height, self.width);
            return Err(Error::invalid_input("part", reason));
        }
        let bytes = height * width * self.channels;
        let mut pixels = Vec::new();
        pixels.try_reserve_exact(bytes).map_err(|_| Error::out_of_host_memory(bytes))?;
        for row in row..row + height {
            let start = (row * self.width + column) * self.channels;
            pixels.extend_from_slice(&self.pixels[start..start + width * self.channels]);
        }
        Ok(Self { channels: self.channels, height, width, pixels })
    }

    /// Copies the image to `record`, channel by channel. The label of the record does not change.
    ///
    /// # Errors
    /// Returns any error from [`Record::bytes_mut`].
    #[doc(alias = "CVMatToDatum")]
    pub fn store(&self, record: &mut Record) -> Result<()> {
        let planes = record.bytes_mut(self.shape())?;
        let size = (self.height * self.width).max(1);
        for (channel, plane) in planes.chunks_exact_mut(size).enumerate() {
            let values = self.pixels.iter().skip(channel).step_by(self.channels);
            plane.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn force_color_and_force_gray_select_the_channels_and_exclude_each_other() {
        let forced = |color, gray| {
            Color::forced(&TransformationParameter {
                force_color: Some(color),
                force_gray: Some(gray),
                ..Default::default()
            })
        };
        assert_eq!(forced(false, false).unwrap(), Color::AsStored);
        assert_eq!(forced(true, false).unwrap(), Color::Bgr);
        assert_eq!(forced(false, true).unwrap(), Color::Gray);
        let error = forced(true, true).unwrap_err().to_string();
        assert!(error.contains("`force_color` and `force_gray` are mutually exclusive"), "{error}");
    }
}

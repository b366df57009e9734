//! Images in files: decoding, and bringing them to a size.

#[cfg(not(feature = "image"))]
mod disabled;
#[cfg(feature = "image")]
mod decode;
#[cfg(feature = "image")]
mod encode;
mod resize;

#[cfg(not(feature = "image"))]
use disabled::{decode, encode_png};
#[cfg(feature = "image")]
use {decode::decode, encode::encode_png};

use super::Record;
use crate::{
    error::{Error, Result},
    proto::TransformationParameter,
};
use std::{fs, path::Path};

/// What an encoded image is decoded to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// As it is: blue, green and red; grey; or, of a PNG that is not opaque, four channels.
    #[default]
    AsStored,
    /// Blue, green and red.
    #[doc(alias = "force_color")]
    Bgr,
    /// Grey.
    #[doc(alias = "force_gray")]
    Gray,
}

impl Color {
    /// What `transform_param` asks for.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for both `force_color` and `force_gray`.
    pub fn forced(param: &TransformationParameter) -> Result<Self> {
        match (param.force_color(), param.force_gray()) {
            (false, false) => Ok(Self::AsStored),
            (true, false) => Ok(Self::Bgr),
            (false, true) => Ok(Self::Gray),
            (true, true) => {
                let why = "`force_color` and `force_gray` exclude each other";
                Err(Error::invalid_input("transform_param", why))
            }
        }
    }
}

/// A decoded image of 8 bits a channel: blue, green and red, or grey, as OpenCV has them.
#[derive(Clone, Debug, PartialEq)]
#[doc(alias = "Mat")]
pub struct Image {
    channels: usize,
    height: usize,
    width: usize,
    /// Row by row, pixel by pixel.
    pixels: Vec<u8>,
}

impl Image {
    /// Decodes a JPEG or PNG file's bytes, told by their start. EXIF's orientation is not heeded.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for other bytes, or damaged ones; without the feature `image`, for all.
    #[doc(alias = "DecodeDatum")]
    pub fn decode(bytes: &[u8], color: Color) -> Result<Self> {
        decode(bytes, color)
    }

    /// Reads a JPEG or PNG file.
    ///
    /// # Errors
    /// [`Error::Io`], and as [`decode`](Self::decode); both name the file.
    #[doc(alias = "ReadImageToCVMat")]
    pub fn read(path: impl AsRef<Path>, color: Color) -> Result<Self> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|error| Error::io(path, error))?;
        Self::decode(&bytes, color).map_err(|error| error.context(path.display().to_string()))
    }

    /// The image as a PNG file's bytes.
    ///
    /// # Errors
    /// [`Error::InvalidData`] without the feature `image`.
    #[doc(alias = "imencode")]
    pub fn encode_png(&self) -> Result<Vec<u8>> {
        encode_png(self)
    }

    /// Channels, height and width.
    pub fn shape(&self) -> [usize; 3] {
        [self.channels, self.height, self.width]
    }

    /// The image at another size, as `cv::resize` makes it by default: each pixel is mixed of the
    /// four around its place, with weights of 1/2048.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for an extent of 0; [`Error::ShapeOverflow`], [`Error::OutOfMemory`].
    pub fn resize(&self, height: usize, width: usize) -> Result<Self> {
        resize::resize(self, height, width)
    }

    /// The rectangle of `[height, width]` pixels that begins at `[row, column]`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] unless all of it lies in the image; [`Error::OutOfMemory`].
    #[doc(alias = "roi")]
    pub fn part(&self, from: [usize; 2], size: [usize; 2]) -> Result<Self> {
        let ([row, column], [height, width]) = (from, size);
        let inside = |from: usize, size: usize, extent| {
            from.checked_add(size).is_some_and(|end| end <= extent)
        };
        if !inside(row, height, self.height) || !inside(column, width, self.width) {
            let why = format!("{height} x {width} pixels from {row}, {column} on");
            let whole = format!("an image of {} x {}", self.height, self.width);
            return Err(Error::invalid_input("part", format!("{why} of {whole}")));
        }
        let bytes = height * width * self.channels;
        let mut pixels = Vec::new();
        let out = |_| Error::OutOfMemory { device: "host".into(), bytes };
        pixels.try_reserve_exact(bytes).map_err(out)?;
        for row in row..row + height {
            let start = (row * self.width + column) * self.channels;
            pixels.extend_from_slice(&self.pixels[start..start + width * self.channels]);
        }
        Ok(Self { channels: self.channels, height, width, pixels })
    }

    /// Makes `record` this image, channel by channel; its label stays.
    ///
    /// # Errors
    /// Those of [`Record::bytes_mut`].
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
    fn one_colour_is_forced_or_none() {
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
        assert!(error.contains("`force_color` and `force_gray` exclude each other"), "{error}");
    }
}

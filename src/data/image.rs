//! Image files: decoding, encoding and resizing.

#[cfg(feature = "image")]
mod bmp;
mod border;
mod color_space;
#[cfg(feature = "image")]
mod decode;
#[cfg(not(feature = "image"))]
mod disabled;
#[cfg(feature = "image")]
mod encode;
#[cfg(feature = "image")]
mod jpeg;
mod pixels;
#[cfg(feature = "image")]
mod png;
#[cfg(feature = "image")]
mod pnm;
#[cfg(feature = "image")]
mod raw;
mod noise;
mod resize;

pub use pixels::{Color, Image};

pub(super) use border::Border;
pub(super) use color_space::{bgr_of_hsv, hsv_of_bgr, scaled};
pub(super) use resize::Interpolation;

use crate::{error::Result, limits};
#[cfg(not(feature = "image"))]
use disabled::{decode, encode_png};
use std::path::Path;
#[cfg(feature = "image")]
use {decode::decode, encode::encode_png};

impl Image {
    /// Decodes the bytes of a JPEG, PNG, BMP, PBM, PGM or PPM file. The magic number of `bytes`
    /// determines the image format. The pixel values equal those of OpenCV. The decoder ignores the
    /// EXIF orientation.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`](crate::Error::InvalidData) for a damaged file, for any other
    /// image format, for a rare kind of file such as lossless JPEG, and for an image that needs more than 32 MiB and more than 64 bytes per byte
    /// of the file. Without the feature `image`, decoding always returns
    /// [`Error::InvalidData`](crate::Error::InvalidData).
    #[doc(alias = "DecodeDatum")]
    pub fn decode(bytes: &[u8], color: Color) -> Result<Self> {
        decode(bytes, color)
    }

    /// Reads an image file of a format that [`decode`](Self::decode) supports.
    ///
    /// # Errors
    /// Returns [`Error::Io`](crate::Error::Io) and any error from [`decode`](Self::decode), with
    /// the name of the file.
    #[doc(alias = "ReadImageToCVMat")]
    pub fn read(path: impl AsRef<Path>, color: Color) -> Result<Self> {
        let path = path.as_ref();
        let bytes = limits::read(path, limits::IMAGE_LEN)?;
        Self::decode(&bytes, color).map_err(|error| error.context(path.display().to_string()))
    }

    /// Encodes the image as the bytes of a PNG file.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`](crate::Error::InvalidData) without the feature `image`.
    #[doc(alias = "imencode")]
    pub fn encode_png(&self) -> Result<Vec<u8>> {
        encode_png(self)
    }

    /// Resizes the image like `cv::resize` with default arguments: by bilinear interpolation, with
    /// weights that are multiples of 1/2048.
    ///
    /// # Errors
    /// Returns [`Error::InvalidInput`](crate::Error::InvalidInput) for an extent of 0,
    /// [`Error::ShapeOverflow`](crate::Error::ShapeOverflow) for too large an image, and
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) if an allocation fails.
    pub fn resize(&self, height: usize, width: usize) -> Result<Self> {
        resize::resize(self, height, width)
    }

    /// Checks that resizing this image to `height × width` pixels does not enlarge the image beyond
    /// the limit `RESIZED_LEN`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`](crate::Error::InvalidData) if the resized image would be
    /// larger than both this image and the limit.
    pub(super) fn check_enlarged(&self, [height, width]: [usize; 2]) -> Result<()> {
        let bytes = height.saturating_mul(width).saturating_mul(self.channels);
        if bytes > limits::RESIZED_LEN && bytes > self.pixels.len() {
            let limit = limits::RESIZED_LEN;
            let reason = format!(
                "resizing to {height} x {width} pixels needs {bytes} bytes, but the size limit for \
                 an enlarged image is {limit} bytes"
            );
            return Err(crate::Error::InvalidData(reason));
        }
        Ok(())
    }

    /// Resizes the image like `cv::resize` with the given interpolation.
    ///
    /// # Errors
    /// Returns the same errors as [`resize`](Self::resize).
    pub(super) fn resize_by(
        &self,
        height: usize,
        width: usize,
        interpolation: Interpolation,
    ) -> Result<Self> {
        resize::resize_by(self, height, width, interpolation)
    }
}

#[cfg(test)]
mod opencv_tests;

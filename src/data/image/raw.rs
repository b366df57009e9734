//! The pixels of a decoded image, before the conversion of colors.

use crate::error::Error;

/// Pixels in the order in which the file stores their colors: gray, or red, green, blue and alpha.
pub(super) struct Raw {
    pub(super) pixels: Vec<u8>,
    pub(super) channels: usize,
    pub(super) height: usize,
    pub(super) width: usize,
}

/// The reason why an image cannot be decoded.
pub(super) enum RawError {
    Damaged(&'static str),
    /// The error message of a decoder in another crate.
    Decoder(String),
    Unsupported(String),
    /// The image needs more memory than the limit for its file allows, or than the machine has.
    TooLarge(Error),
}

impl RawError {
    /// Returns the error for an image of the given format.
    pub(super) fn of(self, format: &str) -> Error {
        match self {
            Self::Damaged(reason) => {
                Error::InvalidData(format!("damaged {format} image: {reason}"))
            }
            Self::Decoder(reason) => {
                Error::InvalidData(format!("damaged {format} image: {reason}"))
            }
            Self::Unsupported(what) => {
                let remedy = "convert the image to PNG with another program";
                let reason = format!("{format} images with {what} are not supported; {remedy}");
                Error::InvalidData(reason)
            }
            Self::TooLarge(error) => error,
        }
    }
}

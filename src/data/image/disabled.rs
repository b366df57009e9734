//! Stub of image decoding and encoding for builds without the feature `image`.

use super::pixels::{Color, Image};
use crate::error::{Error, Result};

pub(super) fn decode(_: &[u8], _: Color) -> Result<Image> {
    Err(disabled())
}

pub(super) fn encode_png(_: &Image) -> Result<Vec<u8>> {
    Err(disabled())
}

fn disabled() -> Error {
    Error::InvalidData("this build does not support images; enable the feature `image`".into())
}

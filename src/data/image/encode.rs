//! Encoding of PNG images.

use super::pixels::Image;
use crate::error::{Error, Result};
use png::ColorType;

/// Encodes the image as a PNG file. OpenCV may encode the same image to different bytes.
pub(super) fn encode_png(image: &Image) -> Result<Vec<u8>> {
    let [channels, height, width] = image.shape();
    let mut pixels = image.pixels.clone();
    if channels > 1 {
        pixels.chunks_exact_mut(channels).for_each(|pixel| pixel.swap(0, 2));
    }
    let encoding_error =
        |error: png::EncodingError| Error::InvalidData(format!("PNG encoding: {error}"));
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    let mut writer = encoder.write_header().map_err(encoding_error)?;
    writer.write_image_data(&pixels).map_err(encoding_error)?;
    writer.finish().map_err(encoding_error)?;
    Ok(bytes)
}

//! Decoding of PNG images.

mod gray;

use super::{
    pixels::Color,
    raw::{Raw, RawError},
};
use crate::{
    error::{Error, Result},
    limits,
};
use ::png::{ColorType, Decoder, DecodingError, Limits, Transformations};
use gray::GrayConversion;
use std::io::Cursor;
use zerocopy::FromZeros;

/// Decodes a PNG image with the channels that OpenCV gives for `color`. `check_size` receives the
/// height, the width and the needed bytes before memory is allocated.
pub(super) fn decode(
    bytes: &[u8],
    color: Color,
    check_size: impl FnOnce([usize; 2], u64) -> Result<()>,
) -> Result<Raw, RawError> {
    let limit = limits::expanded(bytes.len() as u64);
    let limit = Limits { bytes: usize::try_from(limit).unwrap_or(usize::MAX) };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limit);
    // Skip these compressed chunks, because they do not affect the pixels.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let stored = decoder.read_header_info().map_err(damaged)?.color_type;
    let is_colored = !matches!(stored, ColorType::Grayscale | ColorType::GrayscaleAlpha);
    // libpng computes gray from all 16 bits of a value, and then drops the lower 8 bits.
    let keeps_16_bits = color == Color::Gray && is_colored;
    let strip = if keeps_16_bits { Transformations::IDENTITY } else { Transformations::STRIP_16 };
    decoder.set_transformations(Transformations::EXPAND | strip);
    let mut reader = decoder.read_info().map_err(damaged)?;
    let (width, height) = reader.info().size();
    let size = reader.output_buffer_size();
    // The conversion of colors can need 3 bytes per pixel, even if the decoder writes only 1 or 2
    // bytes per pixel.
    let needed_bytes = u64::from(width) * u64::from(height) * 3;
    let needed_bytes = size.map_or(u64::MAX, |size| needed_bytes.max(size as u64));
    check_size([height as usize, width as usize], needed_bytes).map_err(RawError::TooLarge)?;
    let size = size.ok_or(RawError::Damaged("the image is too large"))?;
    let conversion = GrayConversion::of(reader.info());
    // Allocate zeroed memory, because the operating system then maps only the memory pages that the
    // decoder writes.
    let pixels = <[u8]>::new_box_zeroed_with_elems(size);
    let pixels = pixels.map_err(|_| RawError::TooLarge(Error::out_of_host_memory(size)))?;
    let mut pixels = pixels.into_vec();
    let frame = reader.next_frame(&mut pixels).map_err(damaged)?;
    pixels.truncate(frame.buffer_size());
    let mut channels = frame.color_type.samples();
    if keeps_16_bits {
        pixels = match frame.bit_depth {
            ::png::BitDepth::Sixteen => conversion.of_16_bits(&pixels, channels),
            _ => conversion.of_8_bits(&pixels, channels),
        };
        channels = 1;
    } else if stored == ColorType::Grayscale && channels == 2 {
        // OpenCV ignores a transparent gray value.
        pixels = pixels.chunks_exact(2).map(|pixel| pixel[0]).collect();
        channels = 1;
    }
    let (height, width) = (frame.height as usize, frame.width as usize);
    Ok(Raw { pixels, channels, height, width })
}

fn damaged(error: DecodingError) -> RawError {
    RawError::Decoder(error.to_string())
}

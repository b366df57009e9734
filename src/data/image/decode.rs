//! Decoding of images.

use super::{
    bmp,
    pixels::{Color, Image},
    pnm,
    raw::{Raw, RawError},
};
use crate::{
    error::{Error, Result},
    limits,
};
use png::{ColorType, Limits, Transformations};
use std::{fmt::Display, io::Cursor};
use zerocopy::FromZeros;
use zune_jpeg::{
    JpegDecoder,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

const JPEG_MAGIC: [u8; 3] = [0xff, 0xd8, 0xff];
const PNG_MAGIC: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Upper bound on the height and width of a JPEG image, in pixels: the format stores each extent in
/// 16 bits.
const MAX_SIDE: usize = 1 << 16;

pub(super) fn decode(bytes: &[u8], color: Color) -> Result<Image> {
    if bytes.starts_with(&JPEG_MAGIC) {
        jpeg(bytes, color)
    } else if bytes.starts_with(&PNG_MAGIC) {
        png(bytes, color)
    } else if bytes.starts_with(b"BM") {
        raw(bmp::decode(bytes, |size| check_raw_size(size, bytes)), "BMP", color)
    } else if matches!(bytes, [b'P', b'1'..=b'6', ..]) {
        raw(pnm::decode(bytes, |size| check_raw_size(size, bytes)), "PNM", color)
    } else {
        let reason = "unknown image format: neither JPEG, PNG, BMP, PBM, PGM nor PPM";
        Err(Error::InvalidData(reason.into()))
    }
}

/// Converts the pixels of a BMP or PNM image to the channels that `color` selects.
fn raw(decoded: Result<Raw, RawError>, format: &str, color: Color) -> Result<Image> {
    let Raw { pixels, channels, height, width } = decoded.map_err(|error| error.of(format))?;
    let (pixels, channels) = convert(pixels, channels, color, opencv_luminance);
    image(pixels, channels, height, width)
        .ok_or_else(|| RawError::Damaged("pixels are missing").of(format))
}

fn jpeg(bytes: &[u8], color: Color) -> Result<Image> {
    let damaged =
        |reason: &dyn Display| Error::InvalidData(format!("damaged JPEG image: {reason}"));
    let new_decoder = |space| {
        let options = DecoderOptions::new_fast()
            .set_max_width(MAX_SIDE)
            .set_max_height(MAX_SIDE)
            .jpeg_set_out_colorspace(space);
        JpegDecoder::new_with_options(ZCursor::new(bytes), options)
    };
    let mut header = new_decoder(ColorSpace::RGB);
    header.decode_headers().map_err(|error| damaged(&error))?;
    let info = header.info().ok_or_else(|| damaged(&"no header"))?;
    // As in libjpeg, the grey values are the luminance values in the file.
    let gray = color == Color::Gray || color == Color::AsStored && info.components == 1;
    let mut decoder = new_decoder(if gray { ColorSpace::Luma } else { ColorSpace::RGB });
    let (height, width) = (usize::from(info.height), usize::from(info.width));
    check_size([height, width], 3 * height as u64 * width as u64, bytes)?;
    // Try to allocate as much memory as the JPEG decoder needs, because the process aborts if the
    // decoder runs out of memory. The JPEG decoder needs 3 bytes per pixel, and 6 more bytes per
    // pixel for the DCT coefficients of a multi-scan file.
    let bytes = 3 * 3 * height * width;
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| Error::out_of_host_memory(bytes))?;
    let pixels = decoder.decode().map_err(|error| damaged(&error))?;
    image(pixels, if gray { 1 } else { 3 }, height, width)
        .ok_or_else(|| damaged(&"pixels are missing"))
}

fn png(bytes: &[u8], color: Color) -> Result<Image> {
    let damaged = |reason: &dyn Display| Error::InvalidData(format!("damaged PNG image: {reason}"));
    let limit = limits::expanded(bytes.len() as u64);
    let limit = Limits { bytes: usize::try_from(limit).unwrap_or(usize::MAX) };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limit);
    // Skip these compressed chunks, because they do not affect the pixels.
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|error| damaged(&error))?;
    let (width, height) = reader.info().size();
    let size = reader.output_buffer_size();
    // `convert` and `image` can need 3 bytes per pixel, even if the decoder writes only 1 or 2
    // bytes per pixel.
    let needed_bytes = u64::from(width) * u64::from(height) * 3;
    let needed_bytes = size.map_or(u64::MAX, |size| needed_bytes.max(size as u64));
    check_size([height as usize, width as usize], needed_bytes, bytes)?;
    let size = size.ok_or_else(|| damaged(&"too large"))?;
    // Allocate zeroed memory, because the operating system then maps only the memory pages that the
    // decoder writes.
    let pixels = <[u8]>::new_box_zeroed_with_elems(size);
    let mut pixels = pixels.map_err(|_| Error::out_of_host_memory(size))?.into_vec();
    let frame = reader.next_frame(&mut pixels).map_err(|error| damaged(&error))?;
    pixels.truncate(frame.buffer_size());
    let channels = match frame.color_type {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgba => 4,
        _ => 3,
    };
    let (pixels, channels) = convert(pixels, channels, color, luminance);
    image(pixels, channels, frame.height as usize, frame.width as usize)
        .ok_or_else(|| damaged(&"pixels are missing"))
}

/// Fails if an image needs more memory than the limit for a file with the contents `bytes`.
fn check_size([height, width]: [usize; 2], needed_bytes: u64, bytes: &[u8]) -> Result<()> {
    let subject = format_args!("image of {height} x {width} pixels");
    limits::check_expanded(subject, Some(needed_bytes), bytes.len() as u64).map(drop)
}

/// Fails like [`check_size`] if a BMP or PNM image needs too much memory.
fn check_raw_size([height, width]: [usize; 2], bytes: &[u8]) -> Result<()> {
    let needed_bytes = (height as u64).saturating_mul(width as u64).saturating_mul(4);
    check_size([height, width], needed_bytes, bytes)
}

/// Converts pixels, whose channels have the order red, green, blue, to the channels that `color`
/// selects. Keeps the order of the channels. `luminance` converts a color to gray. Returns the
/// pixels and the number of channels.
fn convert(
    pixels: Vec<u8>,
    channels: usize,
    color: Color,
    luminance: fn(&[u8]) -> u8,
) -> (Vec<u8>, usize) {
    let convert_pixels =
        |to: fn(&[u8]) -> [u8; 3]| pixels.chunks_exact(channels).flat_map(to).collect();
    match (color, channels) {
        (Color::Gray, 1) | (Color::AsStored, 1 | 3 | 4) | (Color::Bgr, 3) => (pixels, channels),
        (Color::Gray, 2) => (pixels.chunks_exact(2).map(|x| x[0]).collect(), 1),
        (Color::Gray, _) => (pixels.chunks_exact(channels).map(luminance).collect(), 1),
        (Color::Bgr, 1 | 2) => (convert_pixels(|x| [x[0]; 3]), 3),
        (Color::Bgr, _) => (convert_pixels(|x| [x[0], x[1], x[2]]), 3),
        // Expand a grey image with alpha to four channels, because OpenCV returns four channels for
        // every PNG file with alpha.
        (Color::AsStored, _) => {
            (pixels.chunks_exact(2).flat_map(|x| [x[0], x[0], x[0], x[1]]).collect(), 4)
        }
    }
}

/// Returns the luminance 0.299·R + 0.587·G + 0.114·B, rounded as in libpng.
fn luminance(pixel: &[u8]) -> u8 {
    let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
    ((9797 * r + 19234 * g + 3737 * b + (1 << 14)) >> 15) as u8
}

/// Returns the luminance like [`luminance`], but rounds it as OpenCV does for BMP and PNM images.
fn opencv_luminance(pixel: &[u8]) -> u8 {
    let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
    ((4899 * r + 9617 * g + 1868 * b + (1 << 13)) >> 14) as u8
}

/// Returns the image with blue as the first channel, or `None` if `pixels` has the wrong length.
fn image(mut pixels: Vec<u8>, channels: usize, height: usize, width: usize) -> Option<Image> {
    if channels > 1 {
        pixels.chunks_exact_mut(channels).for_each(|pixel| pixel.swap(0, 2));
    }
    let has_all_pixels = pixels.len() == channels * height * width && !pixels.is_empty();
    has_all_pixels.then_some(Image { channels, height, width, pixels })
}

#[cfg(test)]
mod tests;

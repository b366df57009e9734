//! JPEG and PNG files to images.

use super::{Color, Image};
use crate::error::{Error, Result};
use png::{ColorType, Transformations};
use std::io::Cursor;
use zune_jpeg::{
    JpegDecoder,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

/// How these files start.
const JPEG: [u8; 3] = [0xff, 0xd8, 0xff];
const PNG: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// The most pixels along a side: JPEG's own limit.
const MAX_SIDE: usize = 1 << 16;

pub(super) fn decode(bytes: &[u8], color: Color) -> Result<Image> {
    if bytes.starts_with(&JPEG) {
        jpeg(bytes, color)
    } else if bytes.starts_with(&PNG) {
        png(bytes, color)
    } else {
        Err(Error::InvalidData("neither a JPEG nor a PNG image".into()))
    }
}

fn jpeg(bytes: &[u8], color: Color) -> Result<Image> {
    let damaged =
        |why: &dyn std::fmt::Display| Error::InvalidData(format!("not a JPEG image: {why}"));
    let open = |space| {
        let options = DecoderOptions::new_fast()
            .set_max_width(MAX_SIDE)
            .set_max_height(MAX_SIDE)
            .jpeg_set_out_colorspace(space);
        JpegDecoder::new_with_options(ZCursor::new(bytes), options)
    };
    let mut header = open(ColorSpace::RGB);
    header.decode_headers().map_err(|error| damaged(&error))?;
    let info = header.info().ok_or_else(|| damaged(&"it has no header"))?;
    // Grey is the luminance that the file has, as libjpeg gives it.
    let gray = color == Color::Gray || color == Color::AsStored && info.components == 1;
    let mut decoder = open(if gray { ColorSpace::Luma } else { ColorSpace::RGB });
    let (height, width) = (usize::from(info.height), usize::from(info.width));
    // The decoder does not ask whether there is as much memory: for pixels, and for twice as much
    // of coefficients where the image comes in several scans.
    let bytes = 3 * 3 * height * width;
    let memory = |_| Error::OutOfMemory { device: "host".into(), bytes };
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(memory)?;
    let pixels = decoder.decode().map_err(|error| damaged(&error))?;
    image(pixels, if gray { 1 } else { 3 }, height, width)
        .ok_or_else(|| damaged(&"pixels are missing"))
}

fn png(bytes: &[u8], color: Color) -> Result<Image> {
    let damaged =
        |why: &dyn std::fmt::Display| Error::InvalidData(format!("not a PNG image: {why}"));
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|error| damaged(&error))?;
    let size = reader.output_buffer_size().ok_or_else(|| damaged(&"it is too large"))?;
    // Pages that the image turns out not to fill are not touched.
    let memory = |_| Error::OutOfMemory { device: "host".into(), bytes: size };
    let mut pixels = bytemuck::allocation::try_zeroed_vec(size).map_err(memory)?;
    let frame = reader.next_frame(&mut pixels).map_err(|error| damaged(&error))?;
    pixels.truncate(frame.buffer_size());
    let channels = match frame.color_type {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgba => 4,
        _ => 3,
    };
    let (pixels, channels) = convert(pixels, channels, color);
    image(pixels, channels, frame.height as usize, frame.width as usize)
        .ok_or_else(|| damaged(&"pixels are missing"))
}

/// Brings the pixels of a PNG to what is asked for; red still comes first.
fn convert(pixels: Vec<u8>, channels: usize, color: Color) -> (Vec<u8>, usize) {
    let each = |to: fn(&[u8]) -> [u8; 3]| pixels.chunks_exact(channels).flat_map(to).collect();
    match (color, channels) {
        (Color::Gray, 1) | (Color::AsStored, 1 | 3 | 4) | (Color::Bgr, 3) => (pixels, channels),
        (Color::Gray, 2) => (pixels.chunks_exact(2).map(|x| x[0]).collect(), 1),
        (Color::Gray, _) => (pixels.chunks_exact(channels).map(luminance).collect(), 1),
        (Color::Bgr, 1 | 2) => (each(|x| [x[0]; 3]), 3),
        (Color::Bgr, _) => (each(|x| [x[0], x[1], x[2]]), 3),
        // Grey and alpha: OpenCV has four channels wherever there is alpha.
        (Color::AsStored, _) => {
            (pixels.chunks_exact(2).flat_map(|x| [x[0], x[0], x[0], x[1]]).collect(), 4)
        }
    }
}

/// 0.299·R + 0.587·G + 0.114·B, as libpng rounds it.
fn luminance(pixel: &[u8]) -> u8 {
    let [r, g, b] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
    ((9797 * r + 19234 * g + 3737 * b + (1 << 14)) >> 15) as u8
}

/// Blue comes first. `None` if there are fewer pixels or more.
fn image(mut pixels: Vec<u8>, channels: usize, height: usize, width: usize) -> Option<Image> {
    if channels > 1 {
        pixels.chunks_exact_mut(channels).for_each(|pixel| pixel.swap(0, 2));
    }
    let whole = pixels.len() == channels * height * width && !pixels.is_empty();
    whole.then_some(Image { channels, height, width, pixels })
}

#[cfg(test)]
mod tests;

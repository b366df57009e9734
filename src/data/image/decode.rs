//! Decoding of images.

use super::{
    bmp, jpeg,
    pixels::{Color, Image},
    png, pnm,
    raw::{Raw, RawError},
};
use crate::{
    error::{Error, Result},
    limits,
};

const JPEG_MAGIC: [u8; 3] = [0xff, 0xd8, 0xff];
const PNG_MAGIC: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

pub(super) fn decode(bytes: &[u8], color: Color) -> Result<Image> {
    if bytes.starts_with(&JPEG_MAGIC) {
        let check_size = |[height, width]: [usize; 2]| {
            check_size([height, width], 3 * height as u64 * width as u64, bytes)
        };
        raw(jpeg::decode(bytes, color == Color::Gray, check_size), "JPEG", color)
    } else if bytes.starts_with(&PNG_MAGIC) {
        let check_size = |size, needed_bytes| check_size(size, needed_bytes, bytes);
        raw(png::decode(bytes, color, check_size), "PNG", color)
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
    let (pixels, channels) = convert(pixels, channels, color);
    image(pixels, channels, height, width)
        .ok_or_else(|| RawError::Damaged("pixels are missing").of(format))
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
/// selects. Keeps the order of the channels. Returns the pixels and the number of channels.
fn convert(pixels: Vec<u8>, channels: usize, color: Color) -> (Vec<u8>, usize) {
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

/// Returns the luminance 0.299·R + 0.587·G + 0.114·B, rounded as OpenCV does for BMP and PNM images.
fn luminance(pixel: &[u8]) -> u8 {
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

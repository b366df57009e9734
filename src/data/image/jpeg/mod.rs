//! Decoding of JPEG images, with the pixel values of libjpeg-turbo, through which OpenCV reads
//! JPEG.
//!
//! The decoder reads sequential and progressive files with 8 bits per sample, with Huffman codes or
//! arithmetic coding (ITU-T T.81). [`segments`] finds the parts of a file, and [`frame`], [`tables`]
//! and [`scan`] parse their headers. [`huffman`] and [`arithmetic`] decode the coefficients of each
//! block. [`idct`] computes the samples of each block. [`upsample`] and [`color`] compute the
//! pixels.

mod arithmetic;
mod codes;
mod color;
mod entropy;
mod frame;
mod huffman;
mod idct;
mod picture;
mod plane;
mod probability;
mod progress;
mod scan;
mod segments;
mod tables;
mod upsample;
mod zigzag;

use super::raw::{Raw, RawError};
use crate::error::Result;
use color::{ColorHints, ColorSpace};
use frame::Frame;
use picture::Picture;
use scan::Scan;
use segments::{Segments, TRUNCATED};
use tables::Tables;

/// Decodes a JPEG image. The pixels have one channel if `is_gray` or if the file has one color
/// component, otherwise three. Like OpenCV, the decoder computes the gray values of a file with
/// luminance from the luminance alone, and ignores color profiles. `check_size` receives the height
/// and the width before memory is allocated.
pub(super) fn decode(
    bytes: &[u8],
    is_gray: bool,
    check_size: impl FnOnce([usize; 2]) -> Result<()>,
) -> Result<Raw, RawError> {
    const START_OF_IMAGE: usize = 2;
    let mut segments = Segments { bytes, at: START_OF_IMAGE };
    let (mut tables, mut hints) = (Tables::default(), ColorHints::default());
    let mut frame = None;
    while let Some(marker) = segments.marker() {
        match marker {
            // Markers without a segment.
            0x01 | 0xD0..=0xD8 => {}
            0xC4 => tables.parse_huffman(segments.contents()?)?,
            0xC8 => return Err(RawError::Unsupported("extensions".into())),
            0xCC => tables.parse_conditioning(segments.contents()?)?,
            0xC0..=0xCF if frame.is_some() => return Err(TWO_FRAMES),
            0xC0..=0xCF => frame = Some(Frame::parse(marker, segments.contents()?)?),
            0xD9 => return Err(NO_SCAN),
            0xDB => tables.parse_quantization(segments.contents()?)?,
            0xDD => tables.parse_restart_interval(segments.contents()?)?,
            0xDA => {
                let frame = frame.ok_or(RawError::Damaged("a scan precedes the frame header"))?;
                check_size([frame.height, frame.width]).map_err(RawError::TooLarge)?;
                let space = hints.color_space(&frame);
                return scans(segments, tables, frame, space, is_gray);
            }
            _ => hints.read(marker, segments.contents()?),
        }
    }
    Err(TRUNCATED)
}

/// Decodes the scans of an image. `segments` is at the position after the marker of the first scan.
fn scans(
    mut segments: Segments<'_>,
    mut tables: Tables,
    frame: Frame,
    space: ColorSpace,
    is_gray: bool,
) -> Result<Raw, RawError> {
    let needed = if is_gray { space.gray_components() } else { frame.components.len() };
    let mut picture = Picture::new(frame, needed)?;
    let mut marker = Some(0xDA);
    while let Some(found) = marker {
        match found {
            0x01 | 0xD0..=0xD8 => {}
            0xC4 => tables.parse_huffman(segments.contents()?)?,
            0xCC => tables.parse_conditioning(segments.contents()?)?,
            0xC0..=0xCF => return Err(TWO_FRAMES),
            0xD9 => return picture.finish(space, is_gray),
            0xDB => tables.parse_quantization(segments.contents()?)?,
            0xDD => tables.parse_restart_interval(segments.contents()?)?,
            0xDA => {
                let scan = Scan::parse(segments.contents()?, picture.frame())?;
                segments.at = picture.add_scan(&scan, &tables, segments.bytes, segments.at)?;
                if picture.is_complete() {
                    return picture.finish(space, is_gray);
                }
            }
            _ => drop(segments.contents()?),
        }
        marker = segments.marker();
    }
    Err(TRUNCATED)
}

const TWO_FRAMES: RawError = RawError::Damaged("the file has two frame headers");
const NO_SCAN: RawError = RawError::Damaged("the file has no pixels");

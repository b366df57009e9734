//! Decoding of BMP images.

mod run_length;

use super::raw::{Raw, RawError};
use crate::error::Result;

/// The length of the file header, which precedes the image header.
const FILE_HEADER: usize = 14;
/// Values of the header's compression field for run-length encoding with 8 and 4 bits per pixel.
const RUNS_OF_8_BITS: u32 = 1;
const RUNS_OF_4_BITS: u32 = 2;
/// Value of the header's compression field for an image with color masks.
const BIT_FIELDS: u32 = 3;
/// The color masks of 16-bit pixels, in the order red, green, blue: 5 bits each, or 6 bits for
/// green.
const MASKS_555: [u32; 3] = [0x7C00, 0x3E0, 0x1F];
const MASKS_565: [u32; 3] = [0xF800, 0x7E0, 0x1F];

/// The header of an image.
struct Header {
    height: usize,
    width: usize,
    /// Whether the first row of the file is the top row.
    is_top_down: bool,
    bits: usize,
    compression: u32,
    /// The colors of the palette, each as red, green and blue.
    palette: Vec<[u8; 3]>,
}

/// Decodes a BMP image with a palette, which may be run-length-encoded, or with 16, 24 or 32 bits per
/// pixel. As in OpenCV, the bytes
/// of a 32-bit pixel are blue, green, red and alpha, regardless of the values of the color masks.
/// Also as in OpenCV, the alpha byte is ignored in an image without color masks. `check_size`
/// receives the height and the width before memory is allocated.
pub(super) fn decode(
    bytes: &[u8],
    check_size: impl FnOnce([usize; 2]) -> Result<()>,
) -> Result<Raw, RawError> {
    let header = Header::parse(bytes)?;
    let (height, width) = (header.height, header.width);
    check_size([height, width]).map_err(RawError::TooLarge)?;
    let start = number(bytes, 10, 4)? as usize;
    let rows = bytes.get(start..).ok_or(TRUNCATED)?;
    let is_encoded = matches!(header.compression, RUNS_OF_8_BITS | RUNS_OF_4_BITS);
    let indices = match is_encoded {
        true => run_length::decode(rows, header.bits, [height, width])?,
        false => Vec::new(),
    };
    // The decoded indices take one byte each.
    let (rows, bits) = if is_encoded { (&indices[..], 8) } else { (rows, header.bits) };
    // Each row takes a multiple of four bytes.
    let stride = match is_encoded {
        true => width,
        false => width.checked_mul(bits).ok_or(TRUNCATED)?.div_ceil(32) * 4,
    };
    let len = stride.checked_mul(height).ok_or(TRUNCATED)?;
    let rows = rows.get(..len).ok_or(TRUNCATED)?;
    let is_565 =
        header.compression == BIT_FIELDS && header.bits == 16 && masks(bytes)? == MASKS_565;
    let has_alpha = header.compression == BIT_FIELDS && header.bits == 32;
    let is_gray = header.bits <= 8 && header.palette.iter().all(|[r, g, b]| r == g && g == b);
    let channels = if is_gray {
        1
    } else if has_alpha {
        4
    } else {
        3
    };
    let mut pixels = Vec::with_capacity(height * width * channels);
    for y in 0..height {
        let y = if header.is_top_down { y } else { height - 1 - y };
        let row = &rows[y * stride..][..stride];
        for x in 0..width {
            match bits {
                24 => pixels.extend([row[3 * x + 2], row[3 * x + 1], row[3 * x]]),
                32 if has_alpha => {
                    pixels.extend([row[4 * x + 2], row[4 * x + 1], row[4 * x], row[4 * x + 3]]);
                }
                32 => pixels.extend([row[4 * x + 2], row[4 * x + 1], row[4 * x]]),
                16 => {
                    let pixel = u16::from_le_bytes([row[2 * x], row[2 * x + 1]]);
                    let blue = (pixel << 3) as u8;
                    pixels.extend(match is_565 {
                        true => [(pixel >> 8) as u8 & 0xF8, (pixel >> 3) as u8 & 0xFC, blue],
                        false => [(pixel >> 7) as u8 & 0xF8, (pixel >> 2) as u8 & 0xF8, blue],
                    });
                }
                bits => {
                    let shift = 8 - bits - x * bits % 8;
                    let index = usize::from(row[x * bits / 8] >> shift) & ((1 << bits) - 1);
                    let color = header.palette.get(index).copied().unwrap_or_default();
                    pixels.extend_from_slice(if is_gray { &color[..1] } else { &color });
                }
            }
        }
    }
    Ok(Raw { pixels, channels, height, width })
}

const TRUNCATED: RawError = RawError::Damaged("the file ends before the last pixel");

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, RawError> {
        let len = number(bytes, FILE_HEADER, 4)? as usize;
        let mut is_top_down = false;
        let (width, height, bits, compression, colors, color_len) = match len {
            12 => (number(bytes, 18, 2)?, number(bytes, 20, 2)?, number(bytes, 24, 2)?, 0, 0, 3),
            40.. => {
                let (width, height) = (number(bytes, 18, 4)?, number(bytes, 22, 4)?);
                is_top_down = (height as i32) < 0;
                let height = (height as i32).unsigned_abs();
                let (bits, compression) = (number(bytes, 28, 2)?, number(bytes, 30, 4)?);
                (width, height, bits, compression, number(bytes, 46, 4)?, 4)
            }
            _ => return Err(RawError::Unsupported(format!("an image header of {len} bytes"))),
        };
        if (width as i32) <= 0 || height == 0 {
            return Err(RawError::Damaged("the image has no pixels"));
        }
        let is_supported = match compression {
            0 => matches!(bits, 1 | 4 | 8 | 16 | 24 | 32),
            BIT_FIELDS if bits == 16 => [MASKS_555, MASKS_565].contains(&masks(bytes)?),
            BIT_FIELDS => bits == 32,
            RUNS_OF_8_BITS => bits == 8,
            RUNS_OF_4_BITS => bits == 4,
            _ => false,
        };
        if !is_supported {
            let reason = format!("{bits} bits per pixel and compression {compression}");
            return Err(RawError::Unsupported(reason));
        }
        let mut palette = Vec::new();
        if bits <= 8 {
            let colors = if colors == 0 { 1 << bits } else { colors.min(1 << bits) };
            let start = FILE_HEADER.saturating_add(len);
            for index in 0..colors as usize {
                let color = number(bytes, start.saturating_add(index * color_len), 3)?;
                let [blue, green, red, _] = color.to_le_bytes();
                palette.push([red, green, blue]);
            }
        }
        let (height, width, bits) = (height as usize, width as usize, bits as usize);
        Ok(Self { height, width, is_top_down, bits, compression, palette })
    }
}

/// Returns the color masks of an image: red, green and blue.
fn masks(bytes: &[u8]) -> Result<[u32; 3], RawError> {
    Ok([number(bytes, 54, 4)?, number(bytes, 58, 4)?, number(bytes, 62, 4)?])
}

/// Returns the little-endian number of `len` bytes at `start`.
fn number(bytes: &[u8], start: usize, len: usize) -> Result<u32, RawError> {
    let part = bytes.get(start..).and_then(|rest| rest.get(..len));
    let part = part.ok_or(RawError::Damaged("the file ends within the header"))?;
    Ok(part.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

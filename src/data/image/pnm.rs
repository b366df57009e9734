//! Decoding of PBM, PGM and PPM images.

use super::raw::{Raw, RawError};
use crate::error::Result;

/// Decodes an image of the formats P1 to P6, with the values that OpenCV gives. Values of 16 bits
/// are divided by 256. Only values in text (P1 to P3) are scaled by the maximum in the header.
/// `check_size` receives the height and the width before memory is allocated.
pub(super) fn decode(
    bytes: &[u8],
    check_size: impl FnOnce([usize; 2]) -> Result<()>,
) -> Result<Raw, RawError> {
    let mut reader = Reader { rest: bytes.get(2..).unwrap_or_default() };
    let kind = bytes.get(1).copied().unwrap_or_default();
    let size = || RawError::Damaged("invalid width or height");
    let width = reader.number().filter(|&width| width > 0).ok_or_else(size)?;
    let height = reader.number().filter(|&height| height > 0).ok_or_else(size)?;
    let is_bitmap = matches!(kind, b'1' | b'4');
    let max = if is_bitmap { Some(1) } else { reader.number() };
    let max = max.filter(|max| (1..1 << 16).contains(max));
    let max = max.ok_or(RawError::Damaged("invalid maximum of the values"))?;
    check_size([height, width]).map_err(RawError::TooLarge)?;
    let channels = if matches!(kind, b'3' | b'6') { 3 } else { 1 };
    let count = height.saturating_mul(width).saturating_mul(channels);
    let truncated = || RawError::Damaged("the file ends before the last pixel");
    if kind < b'4' {
        // Each value in text takes at least one byte, so this check limits the memory that a
        // truncated file can request.
        if reader.rest.len() < count {
            return Err(truncated());
        }
        let mut pixels = Vec::with_capacity(count);
        for _ in 0..count {
            let value = if is_bitmap { reader.bit() } else { reader.number() };
            let value = value.ok_or_else(truncated)?.min(max);
            pixels.push(match max {
                _ if is_bitmap => 255 * (1 - value as u8),
                256.. => (value >> 8) as u8,
                _ => (value * 255 / max) as u8,
            });
        }
        return Ok(Raw { pixels, channels, height, width });
    }
    // A single white-space character follows the header.
    let rest = reader.rest.get(1..).unwrap_or_default();
    let pixels = if is_bitmap {
        // Each row starts at a new byte. A bit of 1 is black.
        let stride = width.div_ceil(8);
        let rows = stride.checked_mul(height).and_then(|len| rest.get(..len));
        let rows = rows.ok_or_else(truncated)?;
        let bit = |row: &[u8], x: usize| 255 * (1 - (row[x / 8] >> (7 - x % 8) & 1));
        rows.chunks_exact(stride).flat_map(|row| (0..width).map(move |x| bit(row, x))).collect()
    } else if max > 255 {
        let values = count.checked_mul(2).and_then(|len| rest.get(..len));
        values.ok_or_else(truncated)?.chunks_exact(2).map(|value| value[0]).collect()
    } else {
        rest.get(..count).ok_or_else(truncated)?.to_vec()
    };
    Ok(Raw { pixels, channels, height, width })
}

/// A reader of numbers in text, with comments from `#` to the end of the line.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        while let [first, rest @ ..] = self.rest {
            match first {
                b'#' => {
                    let len = rest.iter().position(|&byte| byte == b'\n');
                    self.rest = &rest[len.unwrap_or(rest.len())..];
                }
                byte if byte.is_ascii_whitespace() => self.rest = rest,
                _ => break,
            }
        }
    }

    fn number(&mut self) -> Option<usize> {
        self.skip_space();
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        // No valid number has more than ten digits.
        (1..=10)
            .contains(&len)
            .then(|| digits.iter().fold(0, |number, digit| 10 * number + usize::from(digit - b'0')))
    }

    /// Removes a single digit, 0 or 1: the bits of a bitmap need no white space between them.
    fn bit(&mut self) -> Option<usize> {
        self.skip_space();
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        matches!(first, b'0' | b'1').then(|| usize::from(first - b'0'))
    }
}

//! Decoding of run-length-encoded BMP images.

use super::super::raw::RawError;

/// Decodes the palette indices of an image with 4 or 8 bits per pixel, in the row order of the
/// file. Pixels that the file skips have the index 0, as in OpenCV.
pub(super) fn decode(
    data: &[u8],
    bits: usize,
    [height, width]: [usize; 2],
) -> Result<Vec<u8>, RawError> {
    let mut indices = vec![0; height * width];
    let mut cursor = Cursor { row: 0, column: 0, width };
    let mut data = data.iter().copied();
    let mut byte = || data.next().map(usize::from).ok_or(TRUNCATED);
    // Whether the last run filled its row, so that the cursor is already in the next row.
    let mut has_filled_row = false;
    while cursor.row < height {
        let (len, code) = (byte()?, byte()?);
        let escapes = std::mem::take(&mut has_filled_row);
        match (len, code) {
            (0, 0) if escapes && cursor.column == 0 => {}
            (0, 0) => cursor = Cursor { row: cursor.row + 1, column: 0, ..cursor },
            (0, 1) => break,
            (0, 2) => {
                let (right, down) = (byte()?, byte()?);
                if bits == 4 && down > 0 {
                    // OpenCV skips no rows in such an image.
                    let what = "run-length encoding of 4 bits per pixel and skipped rows";
                    return Err(RawError::Unsupported(what.into()));
                }
                cursor.skip(right + down * width);
            }
            (0, len) => {
                let row = cursor.rest(&mut indices, len)?;
                // The file pads the indices to a multiple of two bytes.
                for pair in 0..(len * bits).div_ceil(16) {
                    for (offset, byte) in [byte()?, byte()?].into_iter().enumerate() {
                        let start = (2 * pair + offset) * 8 / bits;
                        for (to, index) in row.iter_mut().skip(start).zip(split(byte, bits)) {
                            *to = index;
                        }
                    }
                }
                cursor.column += len;
            }
            (len, code) => {
                let run = split(code, bits).cycle();
                cursor.rest(&mut indices, len)?.iter_mut().zip(run).for_each(|(to, x)| *to = x);
                cursor.column += len;
                if bits == 8 && cursor.column == width {
                    has_filled_row = true;
                    cursor.skip(0);
                }
            }
        }
    }
    Ok(indices)
}

/// Returns the one or two palette indices in a byte.
fn split(byte: usize, bits: usize) -> impl Iterator<Item = u8> + Clone {
    let indices = [(byte >> 4) as u8, (byte & 15) as u8];
    let indices = if bits == 4 { indices } else { [byte as u8; 2] };
    indices.into_iter().take(8 / bits)
}

/// The position of the next pixel.
struct Cursor {
    row: usize,
    column: usize,
    width: usize,
}

impl Cursor {
    /// Returns the next `len` pixels, which must lie in one row.
    fn rest<'a>(&self, indices: &'a mut [u8], len: usize) -> Result<&'a mut [u8], RawError> {
        if self.column + len > self.width {
            return Err(RawError::Damaged("a run is longer than its row"));
        }
        Ok(&mut indices[self.row * self.width + self.column..][..len])
    }

    /// Skips `count` pixels. A cursor at the end of a row moves to the next row.
    fn skip(&mut self, count: usize) {
        let position = self.row * self.width + self.column + count;
        (self.row, self.column) = (position / self.width, position % self.width);
    }
}

const TRUNCATED: RawError = RawError::Damaged("the file ends before the last pixel");

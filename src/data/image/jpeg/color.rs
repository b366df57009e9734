//! Color spaces of JPEG images, and their conversion to red, green and blue or to gray.

use super::frame::Frame;

/// The meaning of the components of an image.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ColorSpace {
    Gray,
    YCbCr,
    Rgb,
    /// Cyan, magenta, yellow and black.
    Cmyk,
    /// Cyan, magenta and yellow as YCbCr, and black.
    Ycck,
}

/// Information about the color space of a file from its application segments.
#[derive(Default)]
pub(super) struct ColorHints {
    /// Whether the file has a JFIF segment.
    pub(super) is_jfif: bool,
    /// The field `transform` of the Adobe segment.
    pub(super) adobe_transform: Option<u8>,
}

impl ColorHints {
    /// Reads a JFIF segment (APP0) or an Adobe segment (APP14), and ignores other segments.
    pub(super) fn read(&mut self, marker: u8, data: &[u8]) {
        match (marker, data) {
            (0xE0, [b'J', b'F', b'I', b'F', 0, ..]) if data.len() >= 14 => self.is_jfif = true,
            (0xEE, [b'A', b'd', b'o', b'b', b'e', _, _, _, _, _, _, transform, ..]) => {
                self.adobe_transform = Some(*transform);
            }
            _ => {}
        }
    }

    /// Returns the color space of a frame, by libjpeg's rules.
    pub(super) fn color_space(&self, frame: &Frame) -> ColorSpace {
        let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
        match (&ids[..], self.adobe_transform) {
            ([_], _) => ColorSpace::Gray,
            ([_, _, _], _) if self.is_jfif => ColorSpace::YCbCr,
            ([_, _, _], Some(0)) => ColorSpace::Rgb,
            ([b'R', b'G', b'B'], None) => ColorSpace::Rgb,
            ([_, _, _], _) => ColorSpace::YCbCr,
            (_, None | Some(0)) => ColorSpace::Cmyk,
            (_, Some(_)) => ColorSpace::Ycck,
        }
    }
}

impl ColorSpace {
    /// Returns the number of components from which gray values are computed.
    pub(super) fn gray_components(self) -> usize {
        match self {
            Self::Gray | Self::YCbCr => 1,
            Self::Rgb => 3,
            Self::Cmyk | Self::Ycck => 4,
        }
    }

    /// Converts a row to gray. `rows` has a row of each component.
    #[inline(always)]
    pub(super) fn to_gray(self, rows: &[&[u8]], to: &mut [u8]) {
        match (self, rows) {
            (Self::Rgb, [r, g, b]) => {
                for (to, (r, (g, b))) in to.iter_mut().zip(r.iter().zip(g.iter().zip(*b))) {
                    let [r, g, b] = [*r, *g, *b].map(u32::from);
                    *to = ((19595 * r + 38470 * g + 7471 * b + (1 << 15)) >> 16) as u8;
                }
            }
            (Self::Cmyk | Self::Ycck, [c, m, y, k]) => {
                let rest = m.iter().zip(y.iter().zip(*k));
                for (to, (c, (m, (y, k)))) in to.iter_mut().zip(c.iter().zip(rest)) {
                    let [r, g, b] = self.without_black([*c, *m, *y, *k]).map(u32::from);
                    *to = ((4899 * r + 9617 * g + 1868 * b + (1 << 13)) >> 14) as u8;
                }
            }
            _ => to.copy_from_slice(rows[0]),
        }
    }

    /// Converts a row to red, green and blue.
    #[inline(always)]
    pub(super) fn to_rgb(self, rows: &[&[u8]], to: &mut [u8]) {
        let (to, _) = to.as_chunks_mut();
        match (self, rows) {
            (Self::YCbCr, [y, cb, cr]) => {
                for (to, (y, (cb, cr))) in to.iter_mut().zip(y.iter().zip(cb.iter().zip(*cr))) {
                    *to = ycc_to_rgb([*y, *cb, *cr]);
                }
            }
            (Self::Cmyk | Self::Ycck, [c, m, y, k]) => {
                let rest = m.iter().zip(y.iter().zip(*k));
                for (to, (c, (m, (y, k)))) in to.iter_mut().zip(c.iter().zip(rest)) {
                    *to = self.without_black([*c, *m, *y, *k]);
                }
            }
            (_, [r, g, b]) => {
                for (to, (r, (g, b))) in to.iter_mut().zip(r.iter().zip(g.iter().zip(*b))) {
                    *to = [*r, *g, *b];
                }
            }
            _ => to.iter_mut().zip(rows[0]).for_each(|(to, gray)| *to = [*gray; 3]),
        }
    }

    /// Converts a CMYK or YCCK pixel to red, green and blue like OpenCV: the file stores cyan,
    /// magenta, yellow and black inverted, as Adobe's programs write them, and each result is `k -
    /// (255 - c)·k/256`.
    #[inline(always)]
    fn without_black(self, [c, m, y, k]: [u8; 4]) -> [u8; 3] {
        let colors = match self {
            Self::Ycck => ycc_to_rgb([c, m, y]).map(|value| 255 - value),
            _ => [c, m, y],
        };
        let k = u32::from(k);
        colors.map(|color| (k - (((255 - u32::from(color)) * k) >> 8)) as u8)
    }
}

/// Converts luminance and chrominance to red, green and blue (JFIF 1.02), with factors of 16
/// fractional bits and libjpeg's rounding.
#[inline(always)]
fn ycc_to_rgb(ycc: [u8; 3]) -> [u8; 3] {
    const HALF: i32 = 1 << 15;
    let [y, cb, cr] = ycc.map(i32::from);
    let (cb, cr) = (cb - 128, cr - 128);
    let r = y + ((91881 * cr + HALF) >> 16);
    let g = y + ((-22554 * cb - 46802 * cr + HALF) >> 16);
    let b = y + ((116_130 * cb + HALF) >> 16);
    [r, g, b].map(|value| value.clamp(0, 255) as u8)
}

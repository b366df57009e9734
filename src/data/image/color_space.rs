//! Conversions of colors to gray, and from and to HSV and YCrCb, with the arithmetic of OpenCV.

use super::pixels::Image;

impl Image {
    /// Replaces the blue, green and red of each pixel by `change(blue, green, red)`. Leaves an
    /// image unchanged if it does not have three channels.
    pub(in crate::data) fn change_colors(&mut self, change: impl Fn([u8; 3]) -> [u8; 3]) {
        if self.channels == 3 {
            self.pixels.as_chunks_mut().0.iter_mut().for_each(|pixel| *pixel = change(*pixel));
        }
    }

    /// Replaces each value `x` by `factor·x + offset`, rounded and clamped to 0..=255, like
    /// `cv::Mat::convertTo`.
    pub(in crate::data) fn scale(&mut self, factor: f32, offset: f32) {
        self.pixels.iter_mut().for_each(|x| *x = scaled(*x, factor, offset));
    }
}

/// Returns `factor·x + offset`, rounded and clamped to 0..=255.
pub(in crate::data) fn scaled(x: u8, factor: f32, offset: f32) -> u8 {
    (f32::from(x) * factor + offset).round_ties_even().clamp(0.0, 255.0) as u8
}

/// Returns the dot product of `weights` and `values`, divided by `2^bits` and rounded.
fn weighted<const N: usize>(values: [i32; N], weights: [i32; N], bits: u32) -> i32 {
    let sum: i32 = values.iter().zip(weights).map(|(value, weight)| value * weight).sum();
    (sum + (1 << (bits - 1))) >> bits
}

/// Returns the luminance 0.114·b + 0.587·g + 0.299·r.
pub(super) fn gray(color: [u8; 3]) -> u8 {
    weighted(color.map(i32::from), [3735, 19235, 9798], 15) as u8
}

/// Converts blue, green and red to the hue (degrees / 2), the saturation and the value.
pub(in crate::data) fn hsv_of_bgr(color: [u8; 3]) -> [u8; 3] {
    const BITS: u32 = 12;
    let [b, g, r] = color.map(i32::from);
    let value = b.max(g).max(r);
    let range = value - b.min(g).min(r);
    // Computes `x·numerator / divisor` with a factor of `BITS` fractional bits; the result is 0 for
    // the divisor 0.
    let divided = |x: i32, numerator: f64, divisor: i32| match divisor {
        0 => 0,
        _ => {
            let factor = numerator * f64::from(1 << BITS) / f64::from(divisor);
            weighted([x], [factor.round_ties_even() as i32], BITS)
        }
    };
    let saturation = divided(range, 255.0, value);
    let hue = if value == r {
        g - b
    } else if value == g {
        b - r + 2 * range
    } else {
        r - g + 4 * range
    };
    let hue = divided(hue, 30.0, range);
    let hue = if hue < 0 { hue + 180 } else { hue };
    [hue, saturation, value].map(|x| x.clamp(0, 255) as u8)
}

/// Converts the hue (degrees / 2, where 180 equals 0), the saturation and the value to blue, green
/// and red, rounded to integers.
pub(in crate::data) fn bgr_of_hsv([hue, saturation, value]: [u8; 3]) -> [u8; 3] {
    let (s, v) = (f32::from(saturation) * (1.0 / 255.0), f32::from(value) * (1.0 / 255.0));
    let hue = f32::from(hue) * (6.0 / 180.0);
    let hue = if hue >= 6.0 { hue - 6.0 } else { hue };
    let sector = hue.floor();
    let part = hue - sector;
    let (low, falling, rising) =
        (v * (1.0 - s), v * (1.0 - s * part), v * (1.0 - s * (1.0 - part)));
    let color = match sector as u32 {
        0 => [low, rising, v],
        1 => [low, v, falling],
        2 => [rising, v, low],
        3 => [v, falling, low],
        4 => [v, low, rising],
        _ => [falling, low, v],
    };
    color.map(|x| (x * 255.0).round_ties_even().clamp(0.0, 255.0) as u8)
}

const YCRCB_BITS: u32 = 14;

/// Converts blue, green and red to the luminance Y and the color differences Cr and Cb.
pub(super) fn ycrcb_of_bgr(color: [u8; 3]) -> [u8; 3] {
    let [b, g, r] = color.map(i32::from);
    let y = weighted([b, g, r], [1868, 9617, 4899], YCRCB_BITS);
    let difference = |x: i32, weight: i32| 128 + weighted([x - y], [weight], YCRCB_BITS);
    [y, difference(r, 11682), difference(b, 9241)].map(|x| x.clamp(0, 255) as u8)
}

/// Converts the luminance Y and the color differences Cr and Cb to blue, green and red.
pub(super) fn bgr_of_ycrcb([y, cr, cb]: [u8; 3]) -> [u8; 3] {
    let [y, cr, cb] = [i32::from(y), i32::from(cr) - 128, i32::from(cb) - 128];
    let b = y + weighted([cb], [29049], YCRCB_BITS);
    let g = y + weighted([cb, cr], [-5636, -11698], YCRCB_BITS);
    let r = y + weighted([cr], [22987], YCRCB_BITS);
    [b, g, r].map(|x| x.clamp(0, 255) as u8)
}

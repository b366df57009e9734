//! Area interpolation: resizing by the mean of the source pixels that an output pixel covers.

use super::taps::{Taps, WEIGHT_BITS, pixels_of};
use crate::{data::image::pixels::Image, error::Result};

/// The source pixels that an output pixel covers along one axis, each with the fraction of the
/// output pixel that lies in the source pixel.
type Cover = Vec<(usize, f32)>;

/// Computes the mean of the source pixels that each output pixel covers. The output must not be
/// larger than the image.
pub(super) fn shrink(x: &Image, height: usize, width: usize) -> Result<Image> {
    let mut pixels = pixels_of(x.channels, height, width)?;
    if x.height.is_multiple_of(height) && x.width.is_multiple_of(width) {
        shrink_by_integers(x, [x.height / height, x.width / width], &mut pixels);
        return Ok(Image { channels: x.channels, height, width, pixels });
    }
    let (rows, columns) = (covers(x.height, height), covers(x.width, width));
    let mut sums = vec![0.0_f32; width * x.channels];
    for row in rows {
        sums.fill(0.0);
        for (y, weight) in row {
            let from = &x.pixels[y * x.width * x.channels..][..x.width * x.channels];
            for (sums, column) in sums.chunks_exact_mut(x.channels).zip(&columns) {
                for (channel, sum) in sums.iter_mut().enumerate() {
                    let values = column
                        .iter()
                        .map(|&(i, weight)| f32::from(from[i * x.channels + channel]) * weight);
                    *sum += weight * values.fold(0.0, |sum, value| sum + value);
                }
            }
        }
        pixels.extend(sums.iter().map(|sum| sum.round_ties_even().clamp(0.0, 255.0) as u8));
    }
    Ok(Image { channels: x.channels, height, width, pixels })
}

/// Shrinks an image by integer factors along both axes. In images with 1, 3 or 4 channels, OpenCV
/// rounds the mean of 2 × 2 pixels up if the mean lies halfway between two integers. In all other
/// cases, OpenCV rounds such a mean to the even integer.
fn shrink_by_integers(x: &Image, [rows, columns]: [usize; 2], pixels: &mut Vec<u8>) {
    let rounds_up = [rows, columns] == [2, 2] && x.channels != 2;
    let scale = 1.0 / (rows * columns) as f32;
    for top in (0..x.height).step_by(rows) {
        for left in (0..x.width).step_by(columns) {
            for channel in 0..x.channels {
                let row = |y: usize| {
                    let start = (y * x.width + left) * x.channels + channel;
                    let values = x.pixels[start..].iter().step_by(x.channels).take(columns);
                    values.map(|&value| u64::from(value)).sum::<u64>()
                };
                let sum: u64 = (top..top + rows).map(row).sum();
                pixels.push(match rounds_up {
                    true => ((sum + 2) >> 2) as u8,
                    false => (sum as f32 * scale).round_ties_even() as u8,
                });
            }
        }
    }
}

/// Returns the source pixels, out of `from`, that each of the `to` output pixels covers along one
/// axis.
fn covers(from: usize, to: usize) -> Vec<Cover> {
    // An output pixel ignores a source pixel of which it covers at most this fraction.
    const LEAST: f64 = 1e-3;
    let scale = 1.0 / (to as f64 / from as f64);
    let cover = |i: usize| {
        let start = i as f64 * scale;
        let end = start + scale;
        let len = scale.min(from as f64 - start);
        let last = (end.floor() as usize).min(from - 1);
        let first = (start.ceil() as usize).min(last);
        let mut cover = Cover::new();
        if first as f64 - start > LEAST {
            cover.push((first - 1, ((first as f64 - start) / len) as f32));
        }
        cover.extend((first..last).map(|i| (i, (1.0 / len) as f32)));
        let rest = end - last as f64;
        if rest > LEAST {
            cover.push((last, (rest.min(1.0).min(len) / len) as f32));
        }
        cover
    };
    (0..to).map(cover).collect()
}

/// Returns the taps of an axis of an image that is enlarged along at least one axis. An output
/// pixel inside a source pixel has the value of the source pixel; an output pixel across the
/// boundary between two source pixels has their mean, weighted by the covered parts.
pub(super) fn taps(from: usize, to: usize) -> Vec<Taps> {
    let inverse = to as f64 / from as f64;
    let scale = 1.0 / inverse;
    let taps_of = |i: usize| {
        let first = (i as f64 * scale).floor();
        let part = ((i + 1) as f64 - (first + 1.0) * inverse) as f32;
        let part = if part <= 0.0 { 0.0 } else { part - part.floor() };
        let first = first as usize;
        if first + 1 >= from {
            return (from - 1, from - 1, [1 << WEIGHT_BITS, 0]);
        }
        let weight = |part: f32| (part * (1 << WEIGHT_BITS) as f32).round_ties_even() as i32;
        (first, first + 1, [weight(1.0 - part), weight(part)])
    };
    (0..to).map(taps_of).collect()
}

//! Image resizing, with the interpolation methods and the rounding of OpenCV.

mod area;
mod kernels;
mod taps;

use self::taps::{Taps, WEIGHT_BITS};
use super::pixels::Image;
use crate::{
    error::{Error, Result},
    shape::Shape,
};

/// An interpolation method for resizing images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::data) enum Interpolation {
    Linear,
    /// The mean of the source pixels that an output pixel covers; if the image is enlarged along an
    /// axis, the weighted mean of at most two source pixels along each axis.
    Area,
    Nearest,
    /// Cubic convolution over 4 × 4 source pixels, with the coefficient −3/4.
    Cubic,
    /// A Lanczos window over 8 × 8 source pixels.
    Lanczos4,
}

/// Resizes an image like `cv::resize` with the given interpolation.
pub(super) fn resize_by(
    x: &Image,
    height: usize,
    width: usize,
    interpolation: Interpolation,
) -> Result<Image> {
    if interpolation == Interpolation::Linear || [height, width, x.height, x.width].contains(&0) {
        return resize(x, height, width);
    }
    if [height, width] == [x.height, x.width] {
        return Ok(x.clone());
    }
    match interpolation {
        Interpolation::Area if height <= x.height && width <= x.width => {
            area::shrink(x, height, width)
        }
        Interpolation::Area => interpolate(x, height, width, area::taps),
        Interpolation::Nearest => kernels::nearest(x, height, width),
        Interpolation::Cubic => kernels::filter(x, height, width, kernels::cubic),
        _ => kernels::filter(x, height, width, kernels::lanczos),
    }
}

/// Computes `y[i] = Σⱼ wⱼ·x[j]` along both axes, where j runs over the two source pixels nearest to
/// `(i + ½)·scale − ½`.
///
/// Rounds like OpenCV's `cv::resize` for 8-bit images.
pub(super) fn resize(x: &Image, height: usize, width: usize) -> Result<Image> {
    interpolate(x, height, width, taps)
}

/// Interpolates linearly between the two source pixels that `taps(from, to)` gives for each output
/// pixel along an axis.
fn interpolate(
    x: &Image,
    height: usize,
    width: usize,
    taps: fn(usize, usize) -> Vec<Taps>,
) -> Result<Image> {
    if [height, width, x.height, x.width].contains(&0) {
        let reason =
            format!("cannot resize {} x {} pixels to {height} x {width}", x.height, x.width);
        return Err(Error::invalid_input("resize", reason));
    }
    let channels = x.channels;
    let count = Shape::new(&[height, width, channels])?.count();
    let mut pixels = Vec::new();
    // The memory for the taps of both axes and for two interpolated rows, in bytes.
    let row = width.saturating_mul(size_of::<Taps>() + 2 * channels * size_of::<i32>());
    let scratch = height.saturating_mul(size_of::<Taps>()).saturating_add(row);
    let bytes = count.saturating_add(scratch);
    let out_of_memory = |_| Error::out_of_host_memory(bytes);
    pixels.try_reserve_exact(count).map_err(out_of_memory)?;
    Vec::<u8>::new().try_reserve_exact(scratch).map_err(out_of_memory)?;
    let (rows, columns) = (taps(x.height, height), taps(x.width, width));
    // The two source rows of the previous output row: their indices and horizontally interpolated
    // values.
    let mut cached_rows = [(usize::MAX, Vec::new()), (usize::MAX, Vec::new())];
    for (above, below, weights) in rows {
        for (slot, row) in [above, below].into_iter().enumerate() {
            if cached_rows[slot].0 == row {
                continue;
            }
            if slot == 0 && cached_rows[1].0 == row {
                cached_rows.swap(0, 1);
                continue;
            }
            let from = &x.pixels[row * x.width * channels..][..x.width * channels];
            cached_rows[slot].0 = row;
            interpolate_row(from, channels, &columns, &mut cached_rows[slot].1);
        }
        let pair = cached_rows[0].1.iter().zip(&cached_rows[1].1);
        pixels.extend(pair.map(|(above, below)| {
            let part = |weight: i32, value: i32| (weight * (value >> 4)) >> 16;
            let sum = part(weights[0], *above) + part(weights[1], *below);
            ((sum + 2) >> 2).clamp(0, 255) as u8
        }));
    }
    Ok(Image { channels, height, width, pixels })
}

/// Interpolates a row of pixels along x. The interpolated values have `WEIGHT_BITS` fractional
/// bits.
fn interpolate_row(from: &[u8], channels: usize, columns: &[Taps], to: &mut Vec<i32>) {
    to.clear();
    for &(before, after, weights) in columns {
        to.extend((0..channels).map(|channel| {
            let value = |column: usize| i32::from(from[column * channels + channel]);
            value(before) * weights[0] + value(after) * weights[1]
        }));
    }
}

/// Returns the taps that resample one axis from `from` to `to` pixels.
fn taps(from: usize, to: usize) -> Vec<Taps> {
    let scale = from as f64 / to as f64;
    let taps_of = |i: usize| {
        let centre = ((i as f64 + 0.5) * scale - 0.5) as f32;
        let before = centre.floor();
        if before < 0.0 {
            return (0, 0, [1 << WEIGHT_BITS, 0]);
        }
        let first = (before as usize).min(from - 1);
        if first + 1 >= from {
            return (first, first, [1 << WEIGHT_BITS, 0]);
        }
        let part = centre - before;
        let weight = |part: f32| (part * (1 << WEIGHT_BITS) as f32).round_ties_even() as i32;
        (first, first + 1, [weight(1.0 - part), weight(part)])
    };
    (0..to).map(taps_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(channels: usize, height: usize, width: usize) -> Image {
        let value = |i: usize| (i * 97 % 251) as u8;
        let pixels = (0..channels * height * width).map(value).collect();
        Image { channels, height, width, pixels }
    }

    /// Computes one interpolated value in `f64` by the definition of bilinear interpolation.
    fn interpolated(x: &Image, [y, i]: [f64; 2], channel: usize) -> f64 {
        let clamp = |v: f64, len: usize| v.clamp(0.0, len as f64 - 1.0);
        let (y, i) = (clamp(y, x.height), clamp(i, x.width));
        let value = |y: f64, i: f64| {
            let (y, i) = ((y as usize).min(x.height - 1), (i as usize).min(x.width - 1));
            f64::from(x.pixels[(y * x.width + i) * x.channels + channel])
        };
        let (fy, fi) = (y.fract(), i.fract());
        let (y, i) = (y.floor(), i.floor());
        let above = value(y, i) * (1.0 - fi) + value(y, i + 1.0) * fi;
        let below = value(y + 1.0, i) * (1.0 - fi) + value(y + 1.0, i + 1.0) * fi;
        above * (1.0 - fy) + below * fy
    }

    #[test]
    fn resized_pixels_match_bilinear_interpolation_in_f64() {
        for (from, to) in [([5, 7], [5, 7]), ([5, 7], [11, 3]), ([8, 6], [4, 3]), ([1, 1], [3, 2])]
        {
            for channels in [1, 3] {
                let x = image(channels, from[0], from[1]);
                let y = x.resize(to[0], to[1]).unwrap();
                assert_eq!(y.shape(), [channels, to[0], to[1]]);
                for (i, got) in y.pixels.iter().enumerate() {
                    let (channel, column) = (i % channels, i / channels % to[1]);
                    let row = i / channels / to[1];
                    let centre = |i: usize, axis: usize| {
                        (i as f64 + 0.5) * from[axis] as f64 / to[axis] as f64 - 0.5
                    };
                    let want = interpolated(&x, [centre(row, 0), centre(column, 1)], channel);
                    assert!((f64::from(*got) - want).abs() <= 1.0, "{i}: {got}, {want}");
                }
                if from == to {
                    assert_eq!(y, x);
                }
            }
        }
        assert!(image(3, 2, 2).resize(0, 1).is_err());
        // With 32-bit addresses, even the largest image may fit into memory, so that the allocation
        // does not fail.
        #[cfg(target_pointer_width = "64")]
        for [height, width] in [[1, 1 << 46], [1 << 46, 1]] {
            let result = image(1, 2, 2).resize(height, width);
            assert!(matches!(result, Err(Error::OutOfMemory { .. })));
        }
    }
}

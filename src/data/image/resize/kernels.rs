//! Resizing by nearest-neighbour interpolation, by cubic convolution and by a Lanczos window.

use super::taps::{WEIGHT_BITS, pixels_of};
use crate::{
    data::image::pixels::Image,
    error::{Error, Result},
};
use std::f64::consts::PI;

/// Sets each output pixel to a source pixel, whose row and column are those of the output pixel
/// times the ratio of the source size to the output size, rounded down.
pub(super) fn nearest(x: &Image, height: usize, width: usize) -> Result<Image> {
    let mut pixels = pixels_of(x.channels, height, width)?;
    let index = |i: usize, from: usize, to: usize| {
        let scale = 1.0 / (to as f64 / from as f64);
        ((i as f64 * scale).floor() as usize).min(from - 1)
    };
    let columns: Vec<usize> = (0..width).map(|i| index(i, x.width, width)).collect();
    for row in (0..height).map(|i| index(i, x.height, height)) {
        for column in &columns {
            let start = (row * x.width + column) * x.channels;
            pixels.extend_from_slice(&x.pixels[start..start + x.channels]);
        }
    }
    Ok(Image { channels: x.channels, height, width, pixels })
}

/// Filters both axes with `kernel(part)`, the weights of `N` neighbouring source pixels. The
/// filtered position lies between the source pixels `N / 2 − 1` and `N / 2` of these, and `part` is
/// its distance from the former. Beyond an edge of the image, the filter repeats the pixels at the
/// edge.
pub(super) fn filter<const N: usize>(
    x: &Image,
    height: usize,
    width: usize,
    kernel: fn(f32) -> [f32; N],
) -> Result<Image> {
    let mut pixels = pixels_of(x.channels, height, width)?;
    let (rows, columns) = (taps(x.height, height, kernel), taps(x.width, width, kernel));
    let len = width.saturating_mul(x.channels);
    // Source rows that were filtered along the columns, each at its number modulo `N`. Only these
    // rows are kept, because the source can have many more rows than the output.
    let mut filtered: [FilteredRow; N] = std::array::from_fn(|_| FilteredRow::default());
    for row in &mut filtered {
        let bytes = len.saturating_mul(size_of::<i32>());
        row.values.try_reserve_exact(len).map_err(|_| Error::out_of_host_memory(bytes))?;
    }
    for taps in rows {
        for (number, _) in taps {
            let row = &mut filtered[number % N];
            if row.number != Some(number) {
                row.number = Some(number);
                row.values.clear();
                let from = &x.pixels[number * x.width * x.channels..][..x.width * x.channels];
                for taps in &columns {
                    for channel in 0..x.channels {
                        let value = |i: usize| i32::from(from[i * x.channels + channel]);
                        row.values.push(taps.iter().map(|&(i, weight)| value(i) * weight).sum());
                    }
                }
            }
        }
        for i in 0..len {
            // The sum of eight products can exceed an `i32`.
            let value = |&(number, weight): &(usize, i32)| {
                i64::from(filtered[number % N].values[i]) * i64::from(weight)
            };
            let sum: i64 = taps.iter().map(value).sum();
            let half = 1 << (2 * WEIGHT_BITS - 1);
            pixels.push(((sum + half) >> (2 * WEIGHT_BITS)).clamp(0, 255) as u8);
        }
    }
    Ok(Image { channels: x.channels, height, width, pixels })
}

/// A row of the source image, filtered along the columns.
#[derive(Default)]
struct FilteredRow {
    /// The number of the row in the source image; `None` before the first row.
    number: Option<usize>,
    values: Vec<i32>,
}

/// Returns the indices and the weights, with `WEIGHT_BITS` fractional bits, of the source pixels of
/// each output pixel along one axis.
fn taps<const N: usize>(
    from: usize,
    to: usize,
    kernel: fn(f32) -> [f32; N],
) -> Vec<[(usize, i32); N]> {
    let scale = 1.0 / (to as f64 / from as f64);
    let taps_of = |i: usize| {
        let centre = ((i as f64 + 0.5) * scale - 0.5) as f32;
        let before = centre.floor();
        let weights = kernel(centre - before);
        std::array::from_fn(|k| {
            let index = before as i64 + k as i64 - (N / 2 - 1) as i64;
            let weight = weights[k] * (1 << WEIGHT_BITS) as f32;
            (index.clamp(0, from as i64 - 1) as usize, weight.round_ties_even() as i32)
        })
    };
    (0..to).map(taps_of).collect()
}

/// Returns the weights of cubic convolution (Keys, 1981) with a = −3/4: the polynomial `(a + 2)·d³
/// − (a + 3)·d² + 1` for distances d up to 1, and `a·(d³ − 5·d² + 8·d − 4)` for distances from 1 to
/// 2.
pub(super) fn cubic(part: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let near = |d: f32| ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0;
    let d = part + 1.0;
    let first = ((A * d - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A;
    let (second, third) = (near(part), near(1.0 - part));
    [first, second, third, 1.0 - first - second - third]
}

/// Returns the weights `sinc(d)·sinc(d/4)` for distances d up to 4, divided by their sum.
pub(super) fn lanczos(part: f32) -> [f32; 8] {
    let sinc = |d: f64| if d.abs() < 1e-6 { 1.0 } else { (PI * d).sin() / (PI * d) };
    let weights: [f64; 8] = std::array::from_fn(|k| {
        let d = f64::from(part) + 3.0 - k as f64;
        sinc(d) * sinc(d / 4.0)
    });
    let sum: f64 = weights.iter().sum();
    weights.map(|weight| (weight / sum) as f32)
}

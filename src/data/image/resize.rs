//! Images brought to another size.

use super::Image;
use crate::{
    error::{Error, Result},
    shape::Shape,
};

/// Bits of a weight after the point.
const BITS: u32 = 11;

/// Where a pixel comes from: the one before, the one after, and how much each counts for.
type Mix = (usize, usize, [i32; 2]);

/// `y[i] = Σⱼ wⱼ·x[j]` over the pixels to both sides of (i + ½)·scale − ½, along both axes.
///
/// The rounding is that of OpenCV's loops for bytes.
pub(super) fn resize(x: &Image, height: usize, width: usize) -> Result<Image> {
    if [height, width, x.height, x.width].contains(&0) {
        let why = format!("{} x {} pixels to {height} x {width}", x.height, x.width);
        return Err(Error::invalid_input("resize", why));
    }
    let channels = x.channels;
    let count = Shape::new(&[height, width, channels])?.count();
    let mut pixels = Vec::new();
    // Where each pixel of a row and a column comes from, and two mixed rows.
    let row = width.saturating_mul(size_of::<Mix>() + 2 * channels * size_of::<i32>());
    let others = height.saturating_mul(size_of::<Mix>()).saturating_add(row);
    let bytes = count.saturating_add(others);
    let out = |_| Error::OutOfMemory { device: "host".into(), bytes };
    pixels.try_reserve_exact(count).map_err(out)?;
    Vec::<u8>::new().try_reserve_exact(others).map_err(out)?;
    let (rows, columns) = (mixes(x.height, height), mixes(x.width, width));
    // The two mixed rows that the last pixel row was made of, by their numbers.
    let mut mixed = [(usize::MAX, Vec::new()), (usize::MAX, Vec::new())];
    for (above, below, weights) in rows {
        for (slot, row) in [above, below].into_iter().enumerate() {
            if mixed[slot].0 == row {
                continue;
            }
            if slot == 0 && mixed[1].0 == row {
                mixed.swap(0, 1);
                continue;
            }
            let from = &x.pixels[row * x.width * channels..][..x.width * channels];
            mixed[slot].0 = row;
            mix(from, channels, &columns, &mut mixed[slot].1);
        }
        let pair = mixed[0].1.iter().zip(&mixed[1].1);
        pixels.extend(pair.map(|(above, below)| {
            let part = |weight: i32, value: i32| (weight * (value >> 4)) >> 16;
            let sum = part(weights[0], *above) + part(weights[1], *below);
            ((sum + 2) >> 2).clamp(0, 255) as u8
        }));
    }
    Ok(Image { channels, height, width, pixels })
}

/// Mixes the pixels of a row, with `BITS` more bits.
fn mix(from: &[u8], channels: usize, columns: &[Mix], to: &mut Vec<i32>) {
    to.clear();
    for &(before, after, weights) in columns {
        to.extend((0..channels).map(|channel| {
            let value = |at: usize| i32::from(from[at * channels + channel]);
            value(before) * weights[0] + value(after) * weights[1]
        }));
    }
}

/// Where each of `to` pixels comes from among `from`.
fn mixes(from: usize, to: usize) -> Vec<Mix> {
    let scale = from as f64 / to as f64;
    let place = |i: usize| {
        let at = ((i as f64 + 0.5) * scale - 0.5) as f32;
        let before = at.floor();
        if before < 0.0 {
            return (0, 0, [1 << BITS, 0]);
        }
        let first = (before as usize).min(from - 1);
        if first + 1 >= from {
            return (first, first, [1 << BITS, 0]);
        }
        let part = at - before;
        let weight = |part: f32| (part * (1 << BITS) as f32).round_ties_even() as i32;
        (first, first + 1, [weight(1.0 - part), weight(part)])
    };
    (0..to).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(channels: usize, height: usize, width: usize) -> Image {
        let value = |i: usize| (i * 97 % 251) as u8;
        let pixels = (0..channels * height * width).map(value).collect();
        Image { channels, height, width, pixels }
    }

    /// The mix as it is defined, in `f64`.
    fn at(x: &Image, [y, i]: [f64; 2], channel: usize) -> f64 {
        let clamp = |v: f64, len: usize| v.clamp(0.0, len as f64 - 1.0);
        let (y, i) = (clamp(y, x.height), clamp(i, x.width));
        let value = |y: f64, i: f64| {
            let (y, i) = (y as usize, i as usize);
            f64::from(
                x.pixels
                    [(y.min(x.height - 1) * x.width + i.min(x.width - 1)) * x.channels + channel],
            )
        };
        let (fy, fi) = (y.fract(), i.fract());
        let (y, i) = (y.floor(), i.floor());
        let above = value(y, i) * (1.0 - fi) + value(y, i + 1.0) * fi;
        let below = value(y + 1.0, i) * (1.0 - fi) + value(y + 1.0, i + 1.0) * fi;
        above * (1.0 - fy) + below * fy
    }

    #[test]
    fn each_pixel_is_the_mix_of_its_neighbours() {
        for (from, to) in [([5, 7], [5, 7]), ([5, 7], [11, 3]), ([8, 6], [4, 3]), ([1, 1], [3, 2])]
        {
            for channels in [1, 3] {
                let x = image(channels, from[0], from[1]);
                let y = x.resize(to[0], to[1]).unwrap();
                assert_eq!(y.shape(), [channels, to[0], to[1]]);
                for (i, got) in y.pixels.iter().enumerate() {
                    let (channel, column) = (i % channels, i / channels % to[1]);
                    let row = i / channels / to[1];
                    let place = |i: usize, axis: usize| {
                        (i as f64 + 0.5) * from[axis] as f64 / to[axis] as f64 - 0.5
                    };
                    let want = at(&x, [place(row, 0), place(column, 1)], channel);
                    assert!((f64::from(*got) - want).abs() <= 1.0, "{i}: {got}, {want}");
                }
                if from == to {
                    assert_eq!(y, x);
                }
            }
        }
        assert!(image(3, 2, 2).resize(0, 1).is_err());
        for [height, width] in [[1, 1 << 46], [1 << 46, 1]] {
            let huge = image(1, 2, 2).resize(height, width);
            assert!(matches!(huge, Err(Error::OutOfMemory { .. })));
        }
    }
}

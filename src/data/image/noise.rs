//! Changes of images that the field `noise_param` selects, with the arithmetic of OpenCV.

use super::{
    border::reflect,
    color_space::{bgr_of_ycrcb, gray, hsv_of_bgr, ycrcb_of_bgr},
    pixels::Image,
};

impl Image {
    /// Replaces each color by its luminance.
    pub(in crate::data) fn decolorize(&mut self) {
        self.change_colors(|color| [gray(color); 3]);
    }

    /// Converts blue, green and red to hue, saturation and value.
    pub(in crate::data) fn convert_to_hsv(&mut self) {
        self.change_colors(hsv_of_bgr);
    }

    /// Replaces each value `x` by `change(x)`.
    pub(in crate::data) fn change_values(&mut self, change: impl Fn(u8) -> u8) {
        self.pixels.iter_mut().for_each(|x| *x = change(*x));
    }

    /// Sets the pixel with the given index, counted row by row.
    pub(in crate::data) fn set_pixel(&mut self, index: usize, values: &[u8]) {
        let pixel = &mut self.pixels[index * self.channels..][..self.channels];
        for (channel, x) in pixel.iter_mut().enumerate() {
            *x = values.get(channel).or(values.last()).copied().unwrap_or(0);
        }
    }

    /// Blurs the image with a Gaussian filter of 7 × 7 pixels and the standard deviation 1.5.
    pub(in crate::data) fn blur(&mut self) {
        // The filter weights at the distances 0 to 3, with 8 fractional bits.
        const WEIGHTS: [u32; 4] = [70, 55, 29, 9];
        let (channels, height, width) = (self.channels, self.height, self.width);
        let weight = |distance: i64| WEIGHTS[distance.unsigned_abs() as usize];
        let row = |y: usize, x: usize, c: usize| -> u32 {
            let value = |d: i64| {
                let x = reflect(x as i64 + d, width);
                u32::from(self.pixels[(y * width + x) * channels + c]) * weight(d)
            };
            (-3..=3).map(value).sum()
        };
        let indices = (0..height * width * channels)
            .map(|i| (i / channels / width, i / channels % width, i % channels));
        let rows: Vec<u32> = indices.clone().map(|(y, x, c)| row(y, x, c)).collect();
        let column = |(y, x, c): (usize, usize, usize)| {
            let value = |d: i64| {
                let y = reflect(y as i64 + d, height);
                rows[(y * width + x) * channels + c] * weight(d)
            };
            (((-3..=3).map(value).sum::<u32>() + (1 << 15)) >> 16) as u8
        };
        self.pixels = indices.map(column).collect();
    }

    /// Replaces each value by the minimum of the value and its neighbours above, below, to the left
    /// and to the right.
    pub(in crate::data) fn erode(&mut self) {
        let (row, channels) = (self.width * self.channels, self.channels);
        let value = |i: usize| {
            let above = (i >= row).then(|| self.pixels[i - row]);
            let below = self.pixels.get(i + row).copied();
            let left = (i % row >= channels).then(|| self.pixels[i - channels]);
            let right = (i % row + channels < row).then(|| self.pixels[i + channels]);
            let neighbours = [above, below, left, right].into_iter().flatten();
            neighbours.fold(self.pixels[i], u8::min)
        };
        self.pixels = (0..self.pixels.len()).map(value).collect();
    }

    /// Equalizes the histogram of the luminance: spreads the luminance over the values 0 to 255 as
    /// evenly as possible.
    pub(in crate::data) fn equalize(&mut self) {
        match self.channels {
            1 => {
                let table = equalizing_table(self.pixels.iter().copied());
                self.change_values(|x| table[usize::from(x)]);
            }
            _ => {
                self.change_colors(ycrcb_of_bgr);
                let table = equalizing_table(self.pixels.iter().step_by(3).copied());
                self.change_colors(|[y, cr, cb]| bgr_of_ycrcb([table[usize::from(y)], cr, cb]));
            }
        }
    }
}

/// Returns a table of the new values: the number of smaller or equal values, minus the number of
/// occurrences of the smallest value, scaled to 0..=255.
fn equalizing_table(values: impl Iterator<Item = u8>) -> [u8; 256] {
    let mut counts = [0_u32; 256];
    values.for_each(|x| counts[usize::from(x)] += 1);
    let total: u32 = counts.iter().sum();
    let smallest = counts.iter().position(|&count| count > 0).unwrap_or(0);
    if counts[smallest] == total {
        return [smallest as u8; 256];
    }
    let scale = 255.0 / (total - counts[smallest]) as f32;
    let (mut table, mut sum) = ([0; 256], 0);
    for (x, count) in counts.iter().enumerate().skip(smallest + 1) {
        sum += count;
        table[x] = (sum as f32 * scale).round_ties_even().clamp(0.0, 255.0) as u8;
    }
    table
}

//! Gray values of colored PNG images.

use ::png::Info;

/// The conversion of red, green and blue to gray by libpng, with the weights 0.299, 0.587 and 0.114
/// that OpenCV passes.
///
/// If a file states its gamma, libpng converts the values to linear values, computes the weighted
/// sum, and converts the sum back. libpng rounds the result of each of these three steps. For the
/// two conversions, it uses tables with indices of 8 bits, or of up to 11 bits for files with 16
/// bits.
pub(super) struct GrayConversion {
    /// The exponents of the conversions to linear values and back; `None` if the gamma is about 1
    /// or invalid.
    exponents: Option<[f64; 2]>,
    /// The number of low bits of a value of 16 bits that the tables ignore.
    ignored_bits: u32,
}

impl GrayConversion {
    pub(super) fn of(info: &Info<'_>) -> Self {
        const SRGB_GAMMA: u32 = 45_455;
        // In units of 1/100000, like the value in the file's gAMA chunk.
        let gamma = match (info.srgb, info.gama_chunk) {
            (Some(_), _) => SRGB_GAMMA,
            (None, Some(gamma)) => gamma.into_scaled(),
            (None, None) => ONE,
        };
        // libpng ignores a gamma whose reciprocal does not fit in 31 bits.
        let reciprocal = (1e10 / f64::from(gamma)).round();
        let is_valid = gamma > 0 && reciprocal <= f64::from(i32::MAX);
        let exponents = [reciprocal, (1e10 / reciprocal).round()];
        let is_about_1 = |value: f64| (value - f64::from(ONE)).abs() <= 5000.0;
        let is_linear = is_about_1(f64::from(gamma)) && is_about_1(reciprocal);
        let exponents =
            exponents.map(|exponent| if is_about_1(exponent) { 1.0 } else { exponent * 0.000_01 });
        let significant_bits = info.sbit.as_ref().and_then(|bits| bits.iter().take(3).max());
        let significant_bits = significant_bits.map_or(16, |&bits| u32::from(bits));
        let ignored_bits = 16_u32.saturating_sub(significant_bits).clamp(5, 8);
        Self { exponents: (is_valid && !is_linear).then_some(exponents), ignored_bits }
    }

    /// Returns the gray values of pixels with three or four channels of 8 bits.
    pub(super) fn of_8_bits(&self, pixels: &[u8], channels: usize) -> Vec<u8> {
        let pixels = pixels.chunks_exact(channels);
        let Some(exponents) = self.exponents else {
            return pixels
                .map(|x| match [x[0], x[1], x[2]] {
                    [r, g, b] if r == g && g == b => r,
                    rgb => (weighted(rgb.map(u32::from)) >> 15) as u8,
                })
                .collect();
        };
        let [to_linear, from_linear] = exponents.map(|exponent| {
            std::array::from_fn::<u8, 256, _>(|i| power(i as f64 / 255.0, exponent, 255.0) as u8)
        });
        let linear = |value: u8| u32::from(to_linear[usize::from(value)]);
        pixels
            .map(|x| match [x[0], x[1], x[2]] {
                [r, g, b] if r == g && g == b => r,
                rgb => from_linear[((weighted(rgb.map(linear)) + HALF) >> 15) as usize],
            })
            .collect()
    }

    /// Returns the gray values of pixels with three or four channels of 16 bits.
    pub(super) fn of_16_bits(&self, pixels: &[u8], channels: usize) -> Vec<u8> {
        let value = |x: &[u8], i: usize| u16::from_be_bytes([x[2 * i], x[2 * i + 1]]);
        let pixels = pixels.chunks_exact(2 * channels);
        let pixels = pixels.map(|x| [value(x, 0), value(x, 1), value(x, 2)]);
        let high_byte = |value: u32| (value >> 8) as u8;
        let Some(exponents) = self.exponents else {
            return pixels
                .map(|rgb| high_byte((weighted(rgb.map(u32::from)) + HALF) >> 15))
                .collect();
        };
        let bits = 16 - self.ignored_bits;
        let max = (1_u32 << bits) - 1;
        let [to_linear, from_linear] = exponents.map(|exponent| {
            let value = |i| power(f64::from(i) / f64::from(max), exponent, 65_535.0) as u16;
            (0..=max).map(value).collect::<Vec<u16>>()
        });
        let look_up =
            |table: &[u16], value: u32| u32::from(table[(value >> self.ignored_bits) as usize]);
        // libpng does not convert pixels that are already gray, but only rounds them to 8 bits. The
        // largest index of the tables that becomes `byte` is `(257·byte + 128)·max / 65535`,
        // rounded.
        let mut rounded = vec![255; to_linear.len()];
        for byte in (0..255).rev() {
            let largest = ((257 * u32::from(byte) + 128) * max + 32_768) / 65_535;
            rounded[..=largest as usize].fill(byte);
        }
        pixels
            .map(|rgb| match rgb {
                [r, g, b] if r == g && g == b => rounded[usize::from(r >> self.ignored_bits)],
                rgb => {
                    let linear = rgb.map(|value| look_up(&to_linear, value.into()));
                    high_byte(look_up(&from_linear, (weighted(linear) + HALF) >> 15))
                }
            })
            .collect()
    }
}

/// The gamma 1 in the units of a PNG file.
const ONE: u32 = 100_000;
/// Half of the factor 32768 in the result of [`weighted`], which rounds the quotient.
const HALF: u32 = 1 << 14;

/// Returns `32768·(0.299·r + 0.587·g + 0.114·b)`.
fn weighted([r, g, b]: [u32; 3]) -> u32 {
    9797 * r + 19_234 * g + 3737 * b
}

/// Returns `max·value^exponent`, rounded.
fn power(value: f64, exponent: f64, max: f64) -> f64 {
    (max * value.powf(exponent) + 0.5).floor()
}

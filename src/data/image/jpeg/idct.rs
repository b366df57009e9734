//! Dequantization and the inverse discrete cosine transform (DCT).
//!
//! The transform has the rounding of libjpeg's accurate integer transform: the algorithm of
//! Loeffler, Ligtenberg and Moschytz (ICASSP 1989) with factors of 13 fractional bits.

use super::{tables::Quantization, zigzag::Block};
use std::num::Wrapping;

/// The number of fractional bits of the factors.
const FACTOR_BITS: usize = 13;
/// The number of fractional bits of the values between the two passes.
const PASS_BITS: usize = 2;

/// A number that wraps around, because the values of a damaged file may overflow.
type Value = Wrapping<i32>;

const fn factor(value: f64) -> Value {
    Wrapping((value * (1 << FACTOR_BITS) as f64 + 0.5) as i32)
}

const F_0_298: Value = factor(0.298631336);
const F_0_390: Value = factor(0.390180644);
const F_0_541: Value = factor(0.541196100);
const F_0_765: Value = factor(0.765366865);
const F_0_899: Value = factor(0.899976223);
const F_1_175: Value = factor(1.175875602);
const F_1_501: Value = factor(1.501321110);
const F_1_847: Value = factor(1.847759065);
const F_1_961: Value = factor(1.961570560);
const F_2_053: Value = factor(2.053119869);
const F_2_562: Value = factor(2.562915447);
const F_3_072: Value = factor(3.072711026);

/// Computes the samples of a block, and stores them in 8 rows of `samples`, `stride` apart.
#[inline(always)]
pub(super) fn inverse_dct(
    block: &Block,
    quantization: &Quantization,
    samples: &mut [u8],
    stride: usize,
) {
    if block[1..].iter().all(|&value| value == 0) {
        let dc = Wrapping(i32::from(block[0]) * i32::from(quantization[0])) << PASS_BITS;
        let sample = sample((dc + Wrapping(1 << (PASS_BITS + 2))) >> (PASS_BITS + 3));
        for row in samples.chunks_mut(stride).take(8) {
            row[..8].fill(sample);
        }
        return;
    }
    let mut values = [[Wrapping(0); 8]; 8];
    for (i, (value, factor)) in block.iter().zip(quantization).enumerate() {
        values[i / 8][i % 8] = Wrapping(i32::from(*value) * i32::from(*factor));
    }
    let columns = transform(&values, FACTOR_BITS - PASS_BITS);
    // The second pass transforms the rows, which are the columns of the transpose.
    let rows = transform(&transpose(&columns), FACTOR_BITS + PASS_BITS + 3);
    for (row, to) in transpose(&rows).iter().zip(samples.chunks_mut(stride)) {
        to[..8].copy_from_slice(&row.map(sample));
    }
}

/// Adds the level shift to a value, and clamps the sum to 8 bits.
#[inline(always)]
fn sample(value: Value) -> u8 {
    (value.0 + 128).clamp(0, 255) as u8
}

#[inline(always)]
fn transpose(x: &[[Value; 8]; 8]) -> [[Value; 8]; 8] {
    let mut y = [[Wrapping(0); 8]; 8];
    for i in 0..8 {
        for j in 0..8 {
            y[j][i] = x[i][j];
        }
    }
    y
}

/// Transforms each column, and divides the results by `2^shift`, rounded.
#[inline(always)]
fn transform(x: &[[Value; 8]; 8], shift: usize) -> [[Value; 8]; 8] {
    let mut y = [[Wrapping(0); 8]; 8];
    for c in 0..8 {
        // The even part.
        let z = (x[2][c] + x[6][c]) * F_0_541;
        let a2 = z - x[6][c] * F_1_847;
        let a3 = z + x[2][c] * F_0_765;
        let a0 = (x[0][c] + x[4][c]) << FACTOR_BITS;
        let a1 = (x[0][c] - x[4][c]) << FACTOR_BITS;
        let even = [a0 + a3, a1 + a2, a1 - a2, a0 - a3];
        // The odd part.
        let z5 = (x[7][c] + x[3][c] + x[5][c] + x[1][c]) * F_1_175;
        let z1 = (x[7][c] + x[1][c]) * F_0_899;
        let z2 = (x[5][c] + x[3][c]) * F_2_562;
        let z3 = z5 - (x[7][c] + x[3][c]) * F_1_961;
        let z4 = z5 - (x[5][c] + x[1][c]) * F_0_390;
        let odd = [
            x[1][c] * F_1_501 - z1 + z4,
            x[3][c] * F_3_072 - z2 + z3,
            x[5][c] * F_2_053 - z2 + z4,
            x[7][c] * F_0_298 - z1 + z3,
        ];
        let half = Wrapping(1 << (shift - 1));
        for i in 0..4 {
            y[i][c] = (even[i] + odd[i] + half) >> shift;
            y[7 - i][c] = (even[i] - odd[i] + half) >> shift;
        }
    }
    y
}

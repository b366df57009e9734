//! Random numbers of a data transformation.

use rand_core::Rng;

/// Draws a number with a uniform distribution between `min` and `max`.
pub(super) fn uniform(rng: &mut impl Rng, min: f32, max: f32) -> f32 {
    let fraction = (rng.next_u32() >> 8) as f32 / (1 << 24) as f32;
    min + (max - min) * fraction
}

/// Draws an integer in `0..count`; each has the probability 1/`count`, up to a relative error of
/// `count`·2⁻³².
pub(super) fn index(rng: &mut impl Rng, count: usize) -> usize {
    ((u64::from(rng.next_u32()) * count as u64) >> 32) as usize
}

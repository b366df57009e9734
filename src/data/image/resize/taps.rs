//! Types and functions that the interpolation methods share: source pixels with their weights, and
//! the allocation of output pixels.

use crate::{
    error::{Error, Result},
    shape::Shape,
};

/// The number of fractional bits of a weight.
pub(super) const WEIGHT_BITS: u32 = 11;

/// The two source pixels that determine an output pixel along one axis, and their weights.
pub(super) type Taps = (usize, usize, [i32; 2]);

/// Returns an empty vector with capacity for the pixels of an image.
pub(super) fn pixels_of(channels: usize, height: usize, width: usize) -> Result<Vec<u8>> {
    let count = Shape::new(&[height, width, channels])?.count();
    let mut pixels = Vec::new();
    pixels.try_reserve_exact(count).map_err(|_| Error::out_of_host_memory(count))?;
    Ok(pixels)
}

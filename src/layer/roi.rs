//! Regions of interest, which the layers of Fast R-CNN and R-FCN pool.

use super::prelude::*;

/// A region of an image: the rectangle with the corners (`left`, `top`) and (`right`, `bottom`), in
/// pixels of the image that enters the net.
pub(super) struct Region {
    /// Index of the image in the batch.
    pub(super) image: usize,
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) right: f32,
    pub(super) bottom: f32,
}

/// Returns the number of regions in the blob `rois`, which has five values per region.
pub(super) fn region_count<T: Element>(rois: &Blob<T>) -> Result<usize> {
    let shape = rois.shape();
    match shape[..] {
        [count, 5] | [count, 5, 1, 1] => Ok(count),
        _ => wrong_shape(format!(
            "regions: expected shape [count, 5] or [count, 5, 1, 1], found {shape}"
        )),
    }
}

/// Reads the regions in the blob `rois`. Each region has five values: the index of the image, and
/// the left, top, right and bottom edges.
///
/// # Errors
/// Returns [`Error::InvalidData`], which gives the index of the region, if the index of an image is
/// not an integer below `images`.
pub(super) fn regions<T: Element>(rois: &Blob<T>, images: usize) -> Result<Vec<Region>> {
    let data = rois.data()?;
    let region = |(i, values): (usize, &[T])| {
        let values: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
        let image = values[0] as usize;
        if image as f64 != values[0] || image >= images {
            return invalid(format!(
                "region {i}: expected the index of one of {images} images, found {}",
                values[0]
            ));
        }
        let [left, top, right, bottom] = [1, 2, 3, 4].map(|i| values[i] as f32);
        Ok(Region { image, left, top, right, bottom })
    };
    data.host()?.chunks_exact(5).enumerate().map(region).collect()
}

/// Converts a coordinate to an integer. Clamps coordinates far outside of any image, so that sums
/// of coordinates do not overflow.
pub(super) fn pixel(coordinate: f32) -> i64 {
    coordinate.clamp(-1.0e9, 1.0e9) as i64
}

/// Returns the part of the range from `start` to `end` that lies in an axis of extent `extent`.
pub(super) fn clipped(start: i64, end: i64, extent: usize) -> std::ops::Range<usize> {
    let clip = |position: i64| position.clamp(0, extent as i64) as usize;
    clip(start)..clip(end)
}

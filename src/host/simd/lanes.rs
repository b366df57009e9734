//! Transposition of planes: from planes to vectors with one element of each of sixteen planes, and
//! back.
//!
//! A kernel that processes the same position of many planes, such as the transforms of Winograd's
//! algorithm, then reads and writes whole vectors at any position.

use crate::host::simd::{
    dispatch::{SimdKernel, SimdScalar},
    vector::{MAX_LANES, SimdVector},
};
use std::ops::Range;

/// Number of planes whose elements one [`Lanes`] holds.
pub(crate) const LANES: usize = MAX_LANES;

/// One element of each of [`LANES`] planes.
pub(crate) type Lanes = [f32; LANES];

/// Writes the elements `range` of each plane of `x` to `lanes`: `lanes[i][j] ← x[j·plane_len +
/// range.start + i]`. The planes have `plane_len` elements, and `x` has at most [`LANES`] planes. The
/// elements of missing planes become zero.
///
/// # Panics
/// The function panics if a plane has fewer than `range.end` elements, if `x` has more than [`LANES`]
/// planes, or if `lanes` is shorter than `range`.
pub(crate) fn planes_to_lanes(
    x: &[f32],
    plane_len: usize,
    range: Range<usize>,
    lanes: &mut [Lanes],
) {
    let planes = x.len().checked_div(plane_len).unwrap_or(0);
    assert!(planes <= LANES && range.end <= plane_len && range.len() <= lanes.len());
    let kernel = PlanesToLanes { x, plane_len, planes, range, lanes };
    // SAFETY: the assertion checks the requirements of `PlanesToLanes`.
    unsafe { f32::dispatch(kernel) };
}

/// Writes `lanes` to the elements `range` of each plane of `x`: `x[j·plane_len + range.start + i] ←
/// lanes[i][j]`. The planes have `plane_len` elements, and `x` has at most [`LANES`] planes.
///
/// # Panics
/// The function panics under the conditions of [`planes_to_lanes`].
pub(crate) fn lanes_to_planes(
    lanes: &[Lanes],
    x: &mut [f32],
    plane_len: usize,
    range: Range<usize>,
) {
    let planes = x.len().checked_div(plane_len).unwrap_or(0);
    assert!(planes <= LANES && range.end <= plane_len && range.len() <= lanes.len());
    let kernel = LanesToPlanes { lanes, x, plane_len, planes, range };
    // SAFETY: the assertion checks the requirements of `LanesToPlanes`.
    unsafe { f32::dispatch(kernel) };
}

/// Kernel of [`planes_to_lanes`]. `run` requires that `x` has `planes` planes, at most [`LANES`],
/// that a plane has at least `range.end` elements, and that `lanes` is at least as long as `range`.
struct PlanesToLanes<'a> {
    x: &'a [f32],
    plane_len: usize,
    planes: usize,
    range: Range<usize>,
    lanes: &'a mut [Lanes],
}

impl SimdKernel<f32> for PlanesToLanes<'_> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = f32>>(self) {
        let Self { x, plane_len, planes, range, lanes } = self;
        let zeros = [0.0; LANES];
        for first in (0..LANES).step_by(V::WIDTH) {
            for at in starts(range.len(), V::WIDTH) {
                let mut rows = [zeros.as_ptr(); LANES];
                for (j, row) in rows.iter_mut().enumerate().take(V::WIDTH) {
                    if first + j < planes {
                        // SAFETY: `at + WIDTH` is at most the length of `range`, so a vector that
                        // starts here lies in plane `first + j`.
                        *row =
                            unsafe { x.as_ptr().add((first + j) * plane_len + range.start + at) };
                    }
                }
                // SAFETY: each row is valid for reads of a vector, and `lanes` has `at + WIDTH`
                // elements of `LANES` values.
                unsafe {
                    V::transpose(rows, lanes.as_mut_ptr().add(at).cast::<f32>().add(first), LANES);
                }
            }
        }
        if range.len() < V::WIDTH {
            for (at, lanes) in range.zip(lanes) {
                for (j, lane) in lanes.iter_mut().enumerate() {
                    *lane = if j < planes { x[j * plane_len + at] } else { 0.0 };
                }
            }
        }
    }
}

/// Kernel of [`lanes_to_planes`]. `run` has the requirements of [`PlanesToLanes`].
struct LanesToPlanes<'a> {
    lanes: &'a [Lanes],
    x: &'a mut [f32],
    plane_len: usize,
    planes: usize,
    range: Range<usize>,
}

impl SimdKernel<f32> for LanesToPlanes<'_> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = f32>>(self) {
        let Self { lanes, x, plane_len, planes, range } = self;
        for first in (0..planes).step_by(V::WIDTH) {
            for at in starts(range.len(), V::WIDTH) {
                let mut rows = [lanes.as_ptr().cast::<f32>(); LANES];
                for (j, row) in rows.iter_mut().enumerate().take(V::WIDTH) {
                    // SAFETY: `at + j` is less than the length of `range`, so less than that of
                    // `lanes`, and `first` is less than `LANES`.
                    *row = unsafe { lanes.as_ptr().add(at + j).cast::<f32>().add(first) };
                }
                let count = V::WIDTH.min(planes - first);
                let start = first * plane_len + range.start + at;
                if count == V::WIDTH {
                    // SAFETY: each row is valid for reads of a vector, and a vector that starts at
                    // `start` lies in plane `first`. The next `WIDTH - 1` planes exist, too.
                    unsafe { V::transpose(rows, x.as_mut_ptr().add(start), plane_len) };
                } else {
                    let mut block = [0.0; LANES * LANES];
                    // SAFETY: as above, and `block` has at least `WIDTH` rows of `WIDTH` elements.
                    unsafe { V::transpose(rows, block.as_mut_ptr(), V::WIDTH) };
                    for (j, row) in block.chunks_exact(V::WIDTH).take(count).enumerate() {
                        x[start + j * plane_len..][..V::WIDTH].copy_from_slice(row);
                    }
                }
            }
        }
        if range.len() < V::WIDTH {
            for (at, lanes) in range.zip(lanes) {
                for (j, &lane) in lanes.iter().enumerate().take(planes) {
                    x[j * plane_len + at] = lane;
                }
            }
        }
    }
}

/// Returns the starts of blocks of `width` elements that cover `0..len`. The last block overlaps the
/// block before if `len` is not a multiple of `width`. There are no blocks if `len` is below `width`.
#[inline(always)]
fn starts(len: usize, width: usize) -> impl Iterator<Item = usize> {
    (0..len / width * width)
        .step_by(width)
        .chain((len > width && !len.is_multiple_of(width)).then(|| len - width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{simd::level::with_each_simd_level, testing::integers};

    #[test]
    fn planes_become_lanes_and_back_at_every_simd_level() {
        let plane_len = 41;
        for planes in [1, 3, 4, 8, 15, 16] {
            for range in [0..41, 0..1, 3..3, 5..8, 8..12, 2..18, 1..34] {
                let x = integers::<f32>(1, planes * plane_len);
                let expected: Vec<Lanes> = range
                    .clone()
                    .map(|i| {
                        std::array::from_fn(|j| if j < planes { x[j * plane_len + i] } else { 0.0 })
                    })
                    .collect();
                with_each_simd_level(|| {
                    let mut lanes = vec![[f32::NAN; LANES]; range.len() + 1];
                    planes_to_lanes(&x, plane_len, range.clone(), &mut lanes);
                    assert!(lanes.pop().is_some_and(|lanes| lanes.iter().all(|x| x.is_nan())));
                    assert_eq!(lanes, expected, "{planes} planes, {range:?}");

                    let mut y = vec![100.0; x.len()];
                    lanes_to_planes(&lanes, &mut y, plane_len, range.clone());
                    for (i, (&y, &x)) in y.iter().zip(&x).enumerate() {
                        let in_range = range.contains(&(i % plane_len));
                        assert_eq!(y, if in_range { x } else { 100.0 });
                    }
                });
            }
        }
    }
}

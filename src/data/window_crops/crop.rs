//! Which pixels of an image a window takes, and where in the result they go.

use super::window_file::WindowBox;

/// How windows are brought to one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct CropGeometry {
    /// Rows and columns of the result.
    pub(super) crop: usize,
    /// How many of these, on each side, show what surrounds the window.
    pub(super) pad: usize,
    /// Whether windows are widened to squares.
    pub(super) square: bool,
}

/// Pixels along one axis: `count` of the image, from `from` on, become `len` of the result, which
/// begin after `pad` others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CropSpan {
    pub(super) from: usize,
    pub(super) count: usize,
    pub(super) len: usize,
    pub(super) pad: usize,
}

impl CropGeometry {
    /// Rows and columns of a window of an image of `extents`; `None` if it takes nothing of it.
    ///
    /// Roundings are Caffe's, in single precision.
    pub(super) fn places(
        &self,
        window: &WindowBox,
        [height, width]: [usize; 2],
        mirrored: bool,
    ) -> Option<[CropSpan; 2]> {
        if self.pad == 0 && !self.square {
            return Some([self.whole(window.y, height)?, self.whole(window.x, width)?]);
        }
        let half = |[first, last]: [i32; 2]| (i64::from(last) - i64::from(first) + 1) as f32 / 2.0;
        let halves = [half(window.y), half(window.x)];
        if halves.iter().any(|half| *half <= 0.0) {
            return None;
        }
        let widest = halves[0].max(halves[1]);
        let [tall, wide] = if self.square { [widest; 2] } else { halves };
        Some([
            self.around(window.y[0] as f32 + halves[0], tall, height, false)?,
            self.around(window.x[0] as f32 + halves[1], wide, width, mirrored)?,
        ])
    }

    /// A window that is taken as it is.
    fn whole(&self, [first, last]: [i32; 2], extent: usize) -> Option<CropSpan> {
        let (from, last) = (usize::try_from(first).ok()?, usize::try_from(last).ok()?);
        let count = (last + 1).checked_sub(from).filter(|&count| count > 0 && last < extent)?;
        Some(CropSpan { from, count, len: self.crop, pad: 0 })
    }

    /// The surroundings of `centre`, up to `half` and the context's share on each side.
    fn around(&self, centre: f32, half: f32, extent: usize, mirrored: bool) -> Option<CropSpan> {
        let crop = self.crop as f32;
        let reach = half * (crop / (self.crop - 2 * self.pad) as f32);
        let (first, last) = ((centre - reach).round() as i64, (centre + reach).round() as i64);
        let ratio = crop / last.saturating_sub(first).saturating_add(1) as f32;
        // What lies before the image and after it.
        let before = first.saturating_neg().max(0);
        let after = last.saturating_sub(i64::try_from(extent).ok()?).saturating_add(1).max(0);
        let (first, last) = (first.saturating_add(before), last.saturating_sub(after));
        let count = usize::try_from(last.saturating_sub(first).saturating_add(1)).ok()?;
        let pixels = |count: f32| (count * ratio).round() as usize;
        let pad = pixels(if mirrored { after } else { before } as f32);
        let len = pixels(count as f32).min(self.crop.checked_sub(pad)?);
        let from = usize::try_from(first).ok()?;
        (count > 0 && len > 0).then_some(CropSpan { from, count, len, pad })
    }
}

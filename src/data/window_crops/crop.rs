//! Geometry of window crops: the source rectangle of a window in the image, and the position of
//! that rectangle in the crop.

use super::window_file::WindowBox;

#[derive(Clone, Copy, Debug)]
pub(super) struct CropGeometry {
    pub(super) crop: usize,
    /// The width of the context on each side of the window, in pixels of the crop.
    pub(super) pad: usize,
    /// Whether to widen windows to squares before adding the context.
    pub(super) square: bool,
}

/// One axis of a crop: `pad` zeros, followed by `len` pixels that are resized from the `count`
/// image pixels starting at pixel `from`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CropSpan {
    pub(super) from: usize,
    pub(super) count: usize,
    pub(super) len: usize,
    pub(super) pad: usize,
}

impl CropGeometry {
    /// Returns the row and column spans of a window, or `None` if the window is outside the image.
    ///
    /// Like Caffe, the function computes the spans in single precision.
    pub(super) fn spans(
        &self,
        window: &WindowBox,
        [height, width]: [usize; 2],
        mirrored: bool,
    ) -> Option<[CropSpan; 2]> {
        if self.pad == 0 && !self.square {
            return Some([self.exact(window.y, height)?, self.exact(window.x, width)?]);
        }
        let half = |[first, last]: [i32; 2]| (i64::from(last) - i64::from(first) + 1) as f32 / 2.0;
        let halves = [half(window.y), half(window.x)];
        if halves.iter().any(|half| *half <= 0.0) {
            return None;
        }
        let widest = halves[0].max(halves[1]);
        let [tall, wide] = if self.square { [widest; 2] } else { halves };
        Some([
            self.with_context(window.y[0] as f32 + halves[0], tall, height, false)?,
            self.with_context(window.x[0] as f32 + halves[1], wide, width, mirrored)?,
        ])
    }

    fn exact(&self, [first, last]: [i32; 2], extent: usize) -> Option<CropSpan> {
        let (from, last) = (usize::try_from(first).ok()?, usize::try_from(last).ok()?);
        let count = (last + 1).checked_sub(from).filter(|&count| count > 0 && last < extent)?;
        Some(CropSpan { from, count, len: self.crop, pad: 0 })
    }

    /// Returns the span of a window with context, clipped to the image. Without context, the window
    /// extends `half` pixels to each side of `centre`.
    fn with_context(
        &self,
        centre: f32,
        half: f32,
        extent: usize,
        mirrored: bool,
    ) -> Option<CropSpan> {
        let crop = self.crop as f32;
        let reach = half * (crop / (self.crop - 2 * self.pad) as f32);
        let (first, last) = ((centre - reach).round() as i64, (centre + reach).round() as i64);
        let ratio = crop / last.saturating_sub(first).saturating_add(1) as f32;
        // Count the pixels of the span before the start of the image, and those after the end of
        // the image.
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

//! Positions at which each tap of a window lies inside the image.

use crate::op::{SpatialAxis, Window};

/// Number of elements of the im2col matrix below which one thread is faster than several.
pub(crate) const PARALLEL_MIN_LEN: usize = 1 << 17;

/// Positions `start..end` along one axis at which one tap lies inside the image. At the positions
/// from `start` on, the tap reads the elements `first`, `first + stride`, … along the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TapRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) first: usize,
    pub(crate) stride: usize,
}

impl TapRange {
    /// Returns the range of the positions in `0..outputs` at which the tap with index `tap` lies
    /// inside the image along `axis`.
    fn new(axis: &SpatialAxis, tap: usize, outputs: usize) -> Self {
        // In the window at position p along the axis, the tap reads element p·stride + shift − pad.
        let (shift, stride) = (tap * axis.dilation, axis.stride);
        let first_inside = axis.pad.saturating_sub(shift).div_ceil(stride);
        let end_inside = (axis.input + axis.pad).saturating_sub(shift).div_ceil(stride);
        let start = first_inside.min(outputs);
        let end = end_inside.clamp(start, outputs);
        let first = if start < end { start * stride + shift - axis.pad } else { 0 };
        Self { start, end, first, stride }
    }

    /// Returns the position of the window in which the tap reads `element`, if there is one.
    #[inline(always)]
    pub(crate) fn position_of(&self, element: usize) -> Option<usize> {
        let distance = element.checked_sub(self.first)?;
        let position = self.start + distance / self.stride;
        (distance % self.stride == 0 && position < self.end).then_some(position)
    }

    /// Returns the index of the element that the tap reads at `position`, or `None` if the tap lies
    /// in the padding.
    fn element_at(&self, position: usize) -> Option<usize> {
        (self.start..self.end)
            .contains(&position)
            .then(|| self.first + (position - self.start) * self.stride)
    }
}

/// Plane of window positions along the last two axes, together with a group of taps that differ
/// only along the last two axes.
#[derive(Clone, Copy)]
pub(crate) struct PlaneTaps<'a> {
    /// Index of the first tap of the group.
    pub(crate) tap: usize,
    /// Offset, within the channel, of the image plane that the taps read, or `None` if the taps lie
    /// outside the image along another axis.
    pub(crate) image: Option<usize>,
    /// Index of the plane's first window position.
    pub(crate) position: usize,
    /// Number of rows of the image plane, and number of elements from the start of one row to the
    /// next.
    pub(crate) rows: usize,
    pub(crate) row_stride: usize,
    /// Number of window positions along each of the last two axes.
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// Position range of each tap along each of the last two axes.
    pub(crate) row_taps: &'a [TapRange],
    pub(crate) column_taps: &'a [TapRange],
}

/// Taps of a window, with the position range of each tap along every axis.
pub(crate) struct WindowTaps {
    /// Spatial axes of the window. A window with fewer than two axes gets additional leading axes
    /// of extent 1.
    axes: Vec<SpatialAxis>,
    outputs: Vec<usize>,
    /// Position ranges of all taps, for each axis.
    ranges: Vec<Vec<TapRange>>,
}

impl WindowTaps {
    /// Returns the taps of `window`.
    pub(crate) fn of(window: &Window) -> Self {
        Self::new(window.axes(), window.output())
    }

    /// Returns the taps of a window over `axes`, at `outputs` positions along each axis. `outputs`
    /// may include positions after the last window, where taps read only padding.
    pub(crate) fn new(axes: &[SpatialAxis], outputs: &[usize]) -> Self {
        let prepended_axes = 2usize.saturating_sub(axes.len());
        let ones = std::iter::repeat_n(SpatialAxis::new(1, 1), prepended_axes);
        let axes: Vec<_> = ones.chain(axes.iter().copied()).collect();
        let ones = std::iter::repeat_n(1, prepended_axes);
        let outputs: Vec<_> = ones.chain(outputs.iter().copied()).collect();
        let axis_ranges = |(axis, &output): (&SpatialAxis, &usize)| {
            (0..axis.kernel).map(|tap| TapRange::new(axis, tap, output)).collect()
        };
        let ranges = axes.iter().zip(&outputs).map(axis_ranges).collect();
        Self { axes, outputs, ranges }
    }

    /// Returns the number of taps of the window in one channel.
    pub(crate) fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Returns the number of image elements in one channel.
    pub(crate) fn channel_len(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    pub(crate) fn positions(&self) -> usize {
        self.outputs.iter().product()
    }

    /// Returns whether the window has exactly two axes, including the axes that `new` prepends.
    pub(crate) fn is_2d(&self) -> bool {
        self.axes.len() == 2
    }

    /// Returns whether the stride is 1 along the last axis.
    pub(crate) fn has_unit_stride(&self) -> bool {
        self.axes.last().is_some_and(|axis| axis.stride == 1)
    }

    /// Calls `body` for each plane of window positions and each group of taps that differ only
    /// along the last two axes. For each plane of positions, the groups of taps are visited in the
    /// order of their indices.
    #[inline(always)]
    pub(crate) fn visit_planes<'a>(&'a self, mut body: impl FnMut(PlaneTaps<'a>)) {
        let outer = self.axes.len() - 2;
        let (height, width) = (self.outputs[outer], self.outputs[outer + 1]);
        let (rows, row_stride) = (self.axes[outer].input, self.axes[outer + 1].input);
        let (row_taps, column_taps) = (&self.ranges[outer][..], &self.ranges[outer + 1][..]);
        let planes: usize = self.outputs[..outer].iter().product();
        let outer_taps: usize = self.axes[..outer].iter().map(|axis| axis.kernel).product();
        for outer_tap in 0..outer_taps {
            for plane in 0..planes {
                body(PlaneTaps {
                    tap: outer_tap * row_taps.len() * column_taps.len(),
                    image: self.image_plane(outer_tap, plane).map(|i| i * rows * row_stride),
                    position: plane * height * width,
                    rows,
                    row_stride,
                    height,
                    width,
                    row_taps,
                    column_taps,
                });
            }
        }
    }

    /// Returns the index of the image plane that a tap reads at a position, or `None` if the tap
    /// lies outside the image. `tap` and `position` are indices over all axes but the last two.
    #[inline]
    fn image_plane(&self, mut tap: usize, mut position: usize) -> Option<usize> {
        let (mut plane, mut stride) = (0, 1);
        for i in (0..self.axes.len() - 2).rev() {
            let (axis, output) = (&self.axes[i], self.outputs[i]);
            plane += stride * self.ranges[i][tap % axis.kernel].element_at(position % output)?;
            stride *= axis.input;
            tap /= axis.kernel;
            position /= output;
        }
        Some(plane)
    }
}

impl PlaneTaps<'_> {
    /// Calls `body(tap, rows, columns)` for each tap, with the tap's position ranges along the last
    /// two axes.
    #[inline(always)]
    pub(crate) fn visit(&self, mut body: impl FnMut(usize, TapRange, TapRange)) {
        let mut tap = self.tap;
        for &rows in self.row_taps {
            for &columns in self.column_taps {
                body(tap, rows, columns);
                tap += 1;
            }
        }
    }
}

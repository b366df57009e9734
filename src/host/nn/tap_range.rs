//! Which positions see the image through which tap.

use crate::op::{SpatialAxis, Window};

/// Elements of the im2col matrix below which one thread is faster than several.
pub(crate) const PARALLEL_MIN_LEN: usize = 1 << 17;

/// Positions `start..end` along one axis at which one tap lies inside the image: there it sees
/// elements `first`, `first + stride`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TapRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) first: usize,
    pub(crate) stride: usize,
}

impl TapRange {
    /// Of `tap`, among so many positions.
    fn new(axis: &SpatialAxis, tap: usize, positions: usize) -> Self {
        // Position p sees element p·stride + shift − pad.
        let (shift, stride) = (tap * axis.dilation, axis.stride);
        let first_inside = axis.pad.saturating_sub(shift).div_ceil(stride);
        let end_inside = (axis.input + axis.pad).saturating_sub(shift).div_ceil(stride);
        let start = first_inside.min(positions);
        let end = end_inside.clamp(start, positions);
        let first = if start < end { start * stride + shift - axis.pad } else { 0 };
        Self { start, end, first, stride }
    }

    /// The position at which `element` is seen, if any.
    #[inline(always)]
    pub(crate) fn position_of(&self, element: usize) -> Option<usize> {
        let from = element.checked_sub(self.first)?;
        let position = self.start + from / self.stride;
        (from % self.stride == 0 && position < self.end).then_some(position)
    }

    /// The element seen at `position`, if any.
    fn at(&self, position: usize) -> Option<usize> {
        (self.start..self.end)
            .contains(&position)
            .then(|| self.first + (position - self.start) * self.stride)
    }
}

/// One tap's positions along the last two axes.
#[derive(Clone, Copy)]
pub(crate) struct TapPlane {
    /// The first of them in a row of the columns.
    pub(crate) position: usize,
    /// Where the two axes start in the channel; `None` if the tap lies outside along another.
    pub(crate) image: Option<usize>,
    /// Elements from one row of the image to the next.
    pub(crate) pitch: usize,
    /// Positions along the last axis but one, and along the last.
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// What is seen along them.
    pub(crate) rows: TapRange,
    pub(crate) run: TapRange,
}

/// A plane of positions along the last two axes, and the taps that differ along these only.
#[derive(Clone, Copy)]
pub(crate) struct PlaneTaps<'a> {
    /// The first of the taps.
    pub(crate) tap: usize,
    /// Where the plane that they see starts in the channel; `None` if they lie outside.
    pub(crate) image: Option<usize>,
    /// The first of the positions.
    pub(crate) position: usize,
    /// Rows of the plane of the image, and elements from one to the next.
    pub(crate) rows: usize,
    pub(crate) pitch: usize,
    /// Positions along the two axes.
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// What taps see along them.
    pub(crate) down: &'a [TapRange],
    pub(crate) along: &'a [TapRange],
}

/// A window's taps and what they see.
pub(crate) struct WindowTaps {
    /// At least two: axes of one element are put in front.
    axes: Vec<SpatialAxis>,
    outputs: Vec<usize>,
    /// For every axis, for every tap along it.
    reaches: Vec<Vec<TapRange>>,
}

impl WindowTaps {
    /// At all of a window's positions.
    pub(crate) fn of(window: &Window) -> Self {
        Self::new(window.axes(), window.output())
    }

    /// At so many positions along each axis, also such that see nothing but padding.
    pub(crate) fn new(axes: &[SpatialAxis], outputs: &[usize]) -> Self {
        let missing = 2usize.saturating_sub(axes.len());
        let ones = std::iter::repeat_n(SpatialAxis::new(1, 1), missing);
        let axes: Vec<_> = ones.chain(axes.iter().copied()).collect();
        let ones = std::iter::repeat_n(1, missing);
        let outputs: Vec<_> = ones.chain(outputs.iter().copied()).collect();
        let of_axis = |(axis, &output): (&SpatialAxis, &usize)| {
            (0..axis.kernel).map(|tap| TapRange::new(axis, tap, output)).collect()
        };
        let reaches = axes.iter().zip(&outputs).map(of_axis).collect();
        Self { axes, outputs, reaches }
    }

    /// Taps of one channel.
    pub(crate) fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Elements of one channel.
    pub(crate) fn plane(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    /// Positions in all.
    pub(crate) fn positions(&self) -> usize {
        self.outputs.iter().product()
    }

    /// Whether there are no axes but two.
    pub(crate) fn is_2d(&self) -> bool {
        self.axes.len() == 2
    }

    /// Whether windows along the last axis are one element apart.
    pub(crate) fn has_unit_stride(&self) -> bool {
        self.axes.last().is_some_and(|axis| axis.stride == 1)
    }

    /// Calls `body(tap, plane)` for every tap and every plane of positions.
    #[inline(always)]
    pub(crate) fn visit(&self, mut body: impl FnMut(usize, TapPlane)) {
        self.visit_planes(
            #[inline(always)]
            |PlaneTaps { tap, image, position, rows: _, pitch, height, width, down, along }| {
                let mut tap = tap;
                for &rows in down {
                    for &run in along {
                        body(tap, TapPlane { position, image, pitch, height, width, rows, run });
                        tap += 1;
                    }
                }
            },
        );
    }

    /// Calls `body` for every plane of positions and every plane of the image that taps see from
    /// it; of the taps these are in order.
    #[inline(always)]
    pub(crate) fn visit_planes<'a>(&'a self, mut body: impl FnMut(PlaneTaps<'a>)) {
        let around = self.axes.len() - 2;
        let (height, width) = (self.outputs[around], self.outputs[around + 1]);
        let (rows, pitch) = (self.axes[around].input, self.axes[around + 1].input);
        let (down, along) = (&self.reaches[around][..], &self.reaches[around + 1][..]);
        let planes: usize = self.outputs[..around].iter().product();
        let taps_around: usize = self.axes[..around].iter().map(|axis| axis.kernel).product();
        for tap_around in 0..taps_around {
            let tap = tap_around * down.len() * along.len();
            for i in 0..planes {
                let image = self.image_plane(tap_around, i).map(|at| at * rows * pitch);
                let position = i * height * width;
                body(PlaneTaps { tap, image, position, rows, pitch, height, width, down, along });
            }
        }
    }

    /// The plane of the image that a tap sees at a position, both counted along the axes before
    /// the last two.
    #[inline]
    fn image_plane(&self, mut tap: usize, mut position: usize) -> Option<usize> {
        let (mut plane, mut pitch) = (0, 1);
        for i in (0..self.axes.len() - 2).rev() {
            let (axis, output) = (&self.axes[i], self.outputs[i]);
            plane += pitch * self.reaches[i][tap % axis.kernel].at(position % output)?;
            pitch *= axis.input;
            tap /= axis.kernel;
            position /= output;
        }
        Some(plane)
    }
}

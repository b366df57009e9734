//! Where the columns of images lie, and how many images are multiplied at a time.
//!
//! Columns are not made: row r of them (a tap of a channel) at position p is the element
//! `rows[r] + p's` of the images. For that to hold with padding and strides too, images are
//! rearranged first into *frames*: padded, and of every stride-th element one plane. A frame is
//! about as large as its image, columns are as many times larger as a kernel has taps.

use crate::{
    element::Element,
    error::{Error, Result},
    host::{
        blas::gemm::{CopySpan, IndirectMatrix},
        cache::scratch::with_scratch,
        nn::{im2col::im2col_channels, tap_range::WindowTaps},
        threads::Workers,
    },
    op::{Convolution, SpatialAxis, Transpose, Window},
};
use std::ops::Range;

/// Columns below which a product is too narrow to be fast.
const MIN_N: usize = 64;

/// Terms below which a sum over positions is too short to be fast: every sum is read and written
/// for so many.
const MIN_K: usize = 384;

/// Most images side by side.
const MAX_IMAGES: usize = 32;
/// Elements of frames for which memory is asked before they are made.
const PREALLOC_CHECK_LEN: usize = 1 << 24;

/// The images of a convolution, by groups, in slabs of a few side by side.
pub(crate) struct ImplicitColumns {
    /// Windows over the channels of one group.
    window: Window,
    batch: usize,
    groups: usize,
    /// Output planes of one group.
    outputs: usize,
    /// Most images side by side.
    images: usize,
    /// How one group of an image is rearranged, unless it is used as it is.
    frame: Option<WindowTaps>,
    /// Elements of a frame's planes of one channel, and from one image's frame to the next.
    plane: usize,
    stride: usize,
    /// Where each row of the columns begins.
    rows: Vec<usize>,
    /// Where positions lie from there, image after image.
    runs: Vec<CopySpan>,
    /// Runs of one image.
    per_image: usize,
}

/// Images of one group whose columns are multiplied at once.
pub(crate) struct ImageGroup {
    images: usize,
    group: usize,
    columns: usize,
}

impl ImageGroup {
    pub(crate) fn group(&self) -> usize {
        self.group
    }

    /// Columns in all.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }
}

impl ImplicitColumns {
    /// For products whose columns are positions.
    pub(crate) fn for_outputs(op: &Convolution) -> Result<Self> {
        let positions = op.window().positions().max(1);
        // Wide enough, and little of the last vector computed in vain; as many for each if that
        // can be had.
        let wide = |images: &usize| {
            let columns = images * positions;
            columns >= MIN_N && columns.next_multiple_of(16) - columns <= columns / 15
        };
        let wide = || (1..MAX_IMAGES).filter(wide).take(4);
        let even = wide().find(|&images| op.batch().is_multiple_of(images));
        Self::new(op, even.or(wide().next()).unwrap_or(MAX_IMAGES))
    }

    /// For sums over positions.
    pub(crate) fn for_filter_gradients(op: &Convolution) -> Result<Self> {
        Self::new(op, MIN_K.div_ceil(op.window().positions().max(1)).min(MAX_IMAGES))
    }

    fn new(op: &Convolution, images: usize) -> Result<Self> {
        let all = op.window();
        let window = Window::new(all.channels() / op.groups(), all.axes())?;
        let (batch, groups) = (op.batch(), op.groups());
        let images = images.clamp(1, batch.max(1));
        expect_frames(&window, images)?;
        let as_it_is = window.axes().iter().all(|axis| axis.stride == 1 && axis.pad == 0);
        let phases: Vec<SpatialAxis> = window.axes().iter().map(phases).collect();
        let extents = extents(&window);
        let plane = extents.iter().product::<usize>();
        let planes = phases.iter().map(|axis| axis.kernel).product::<usize>();
        let (rows, runs) = (rows(&window, &extents, planes * plane), runs(&window, &extents));
        let per_image = runs.len();
        let frame = window.channels() * planes * plane;
        let stride = if as_it_is { groups * frame } else { frame };
        let positions = window.positions();
        let runs = (0..images).flat_map(|image| {
            let shift = move |run: &CopySpan| CopySpan {
                from: run.from + image * stride,
                to: run.to + image * positions,
                ..*run
            };
            runs.iter().map(shift).collect::<Vec<_>>()
        });
        Ok(Self {
            runs: runs.collect(),
            frame: (!as_it_is).then(|| WindowTaps::new(&phases, &extents)),
            outputs: op.outputs() / groups,
            window,
            batch,
            groups,
            images,
            plane,
            stride,
            rows,
            per_image,
        })
    }

    /// Rows of the columns of one group.
    pub(crate) fn rows(&self) -> usize {
        self.window.column_rows()
    }

    /// Output planes of one group.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Most images of one slab.
    pub(crate) fn images(&self) -> usize {
        self.images
    }

    /// Runs of so many images in the batch.
    pub(crate) fn tasks(&self) -> usize {
        self.batch.div_ceil(self.images)
    }

    /// So many images of one group, of those that are handed over with it.
    pub(crate) fn slab(&self, group: usize, images: usize) -> ImageGroup {
        ImageGroup { images, group, columns: images * self.window.positions() }
    }

    /// The image that is its own columns, whose rows are `positions` apart.
    pub(crate) fn identity<'a, A>(&self, slab: &ImageGroup, x: &'a [A]) -> Option<&'a [A]> {
        (self.window.is_identity() && slab.images == 1).then(|| &x[self.image(slab, 0)])
    }

    /// Calls `body` with some rows of the slab's columns, or their transpose.
    pub(crate) fn with_columns<A: Element, R>(
        &self,
        workers: &Workers,
        slab: &ImageGroup,
        trans: Transpose,
        rows: Range<usize>,
        x: &[A],
        body: impl FnOnce(&IndirectMatrix<A>) -> R,
    ) -> R {
        let (rows, runs) = (&self.rows[rows], &self.runs[..slab.images * self.per_image]);
        let Some(frame) = &self.frame else {
            let start = self.image(slab, 0).start.min(x.len());
            return body(&IndirectMatrix::new(trans, &x[start..], rows, runs));
        };
        with_scratch(slab.images * self.stride, |frames: &mut [A]| {
            for (image, frame_of) in frames.chunks_exact_mut(self.stride.max(1)).enumerate() {
                im2col_channels(workers, frame, &x[self.image(slab, image)], frame_of, self.plane);
            }
            body(&IndirectMatrix::new(trans, frames, rows, runs))
        })
    }

    /// The slab's results, if a product can write them: those of one image.
    pub(crate) fn result_mut<'a, A>(
        &self,
        slab: &ImageGroup,
        y: &'a mut [A],
    ) -> Option<&'a mut [A]> {
        (slab.images == 1).then(|| &mut y[self.result(slab, 0)])
    }

    /// Copies results of several images side by side to their places.
    pub(crate) fn scatter_results<A: Element>(
        &self,
        slab: &ImageGroup,
        product: &[A],
        y: &mut [A],
    ) {
        let positions = self.window.positions().max(1);
        for (row, product) in product.chunks_exact(slab.columns.max(1)).enumerate() {
            for (image, run) in product.chunks_exact(positions).enumerate() {
                let at = self.result(slab, image).start + row * positions;
                y[at..at + positions].copy_from_slice(run);
            }
        }
    }

    /// Calls `body` with the slab's results side by side, and their leading dimension.
    pub(crate) fn with_gathered_outputs<A: Element, R>(
        &self,
        slab: &ImageGroup,
        y: &[A],
        body: impl FnOnce(&[A], usize) -> R,
    ) -> R {
        let positions = self.window.positions().max(1);
        if slab.images == 1 {
            return body(&y[self.result(slab, 0)], positions);
        }
        with_scratch(self.outputs * slab.columns, |side: &mut [A]| {
            for (row, side) in side.chunks_exact_mut(slab.columns.max(1)).enumerate() {
                for (image, run) in side.chunks_exact_mut(positions).enumerate() {
                    let at = self.result(slab, image).start + row * positions;
                    run.copy_from_slice(&y[at..at + positions]);
                }
            }
            body(side, slab.columns)
        })
    }

    /// Where the slab's group of `image` lies.
    fn image(&self, slab: &ImageGroup, image: usize) -> Range<usize> {
        let len = self.window.image_len();
        let start = (image * self.groups + slab.group) * len;
        start..start + len
    }

    /// Where the slab's group of the results of `image` lies.
    fn result(&self, slab: &ImageGroup, image: usize) -> Range<usize> {
        let len = self.outputs * self.window.positions();
        let start = (image * self.groups + slab.group) * len;
        start..start + len
    }
}

/// Elements from the first tap to the last.
fn reach(axis: &SpatialAxis) -> usize {
    axis.dilation * (axis.kernel - 1)
}

/// Along one axis of a frame: a tap for every remainder, by the stride, of where a tap lies.
fn phases(axis: &SpatialAxis) -> SpatialAxis {
    SpatialAxis { kernel: axis.stride.min(reach(axis) + 1), dilation: 1, ..*axis }
}

/// Extents of a plane of a frame.
fn extents(window: &Window) -> Vec<usize> {
    let axes = window.axes().iter().zip(window.output());
    axes.map(|(axis, output)| output + reach(axis) / axis.stride).collect()
}

/// Fails if there is no memory for the frames of so many images: a dilation far beyond an image
/// makes them far larger than images, filters and results.
fn expect_frames(window: &Window, images: usize) -> Result<()> {
    let planes = window.axes().iter().map(|axis| phases(axis).kernel);
    let all = [images, window.channels()].into_iter().chain(planes).chain(extents(window));
    let count = all.fold(1usize, |count, by| count.saturating_mul(by.max(1)));
    // Few are not worth the question.
    if count <= PREALLOC_CHECK_LEN || Vec::<f64>::new().try_reserve_exact(count).is_ok() {
        return Ok(());
    }
    let bytes = count.saturating_mul(size_of::<f64>());
    Err(Error::OutOfMemory { device: "host".into(), bytes })
}

/// Where rows of the columns begin in a frame: of channels of `channel` elements, whose planes
/// have these extents.
fn rows(window: &Window, extents: &[usize], channel: usize) -> Vec<usize> {
    let plane: usize = extents.iter().product();
    // Of every tap so far: its plane, and where in that.
    let mut taps = vec![(0, 0)];
    for (axis, extent) in window.axes().iter().zip(extents) {
        let along: Vec<_> = (0..axis.kernel).map(|tap| tap * axis.dilation).collect();
        let next = |&(plane, at): &(usize, usize)| {
            let phases = phases(axis).kernel;
            let place = move |&tap: &usize| {
                (plane * phases + tap % axis.stride, at * extent + tap / axis.stride)
            };
            along.iter().map(place).collect::<Vec<_>>()
        };
        taps = taps.iter().flat_map(next).collect();
    }
    let of_channel = |c| taps.iter().map(move |(phase, at)| c * channel + phase * plane + at);
    (0..window.channels()).flat_map(of_channel).collect()
}

/// Where the positions of one image lie in a plane of its frame, of these extents.
fn runs(window: &Window, extents: &[usize]) -> Vec<CopySpan> {
    let output = window.output();
    let (width, pitch) =
        (output.last().copied().unwrap_or(1), extents.last().copied().unwrap_or(1));
    let mut runs: Vec<CopySpan> = Vec::new();
    for to in (0..window.positions()).step_by(width.max(1)) {
        let (mut row, mut from, mut step) = (to / width, 0, pitch);
        for (output, extent) in output.iter().zip(extents).rev().skip(1) {
            from += row % output * step;
            (row, step) = (row / output, step * extent);
        }
        match runs.last_mut() {
            Some(last) if last.from + last.len == from => last.len += width,
            _ => runs.push(CopySpan { from, to, len: width }),
        }
    }
    runs
}

#[cfg(test)]
mod tests;

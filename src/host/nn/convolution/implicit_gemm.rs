//! Implicit GEMM for convolution: address tables of the im2col matrix, and the images that one GEMM
//! processes.
//!
//! The matrix element in row `r` (a tap of a channel) and column `p` (a position) is
//! `x[row_offsets[r] + offset(p)]`. With padding or strides above 1, the elements of an image cannot
//! be addressed by the sum of a row offset and a position offset. Each image is then first copied to
//! a *frame*: a zero-padded copy of the image, split into polyphase planes. A frame is about as large
//! as the image. A stored im2col matrix would be larger than the image by a factor of about the
//! number of taps.
//!
//! The im2col matrix is stored only if it is small and the GEMM for filter gradients reads it in
//! place. Then the frame is the im2col matrix.

use crate::{
    element::Element,
    error::{Error, Result},
    host::{
        blas::{
            gemm::{GemmB, reads_b_in_place},
            kernel::indirect_packing::{CopySpan, IndirectMatrix},
        },
        cache::scratch::with_scratch,
        nn::{im2col::im2col_channels, tap_range::WindowTaps},
        threads::Workers,
    },
    op::{Convolution, Gemm, SpatialAxis, Transpose, Window},
};
use std::ops::Range;

/// Smallest number of im2col columns for which a GEMM is efficient.
const MIN_N: usize = 64;

/// Smallest number of positions for which a GEMM that sums over positions is efficient. With fewer
/// than `MIN_K` positions per GEMM, reads and writes of the partial sums take too large a share of
/// the time.
const MIN_K: usize = 384;

/// Largest number of images in one GEMM.
const MAX_IMAGES: usize = 32;

/// Largest number of elements of an im2col matrix that is stored: 64 KiB of `f32`.
const STORED_MAX_LEN: usize = 1 << 14;

/// Number of frame elements above which a trial allocation checks whether the host has enough
/// memory.
const PREALLOC_CHECK_LEN: usize = 1 << 24;

/// Address tables of the im2col matrix of one group of channels, for several images at a time.
pub(crate) struct ImplicitColumns {
    /// Window of the convolution over the channels of one group.
    window: Window,
    groups: usize,
    /// Number of output planes of one channel group.
    pub(crate) outputs: usize,
    /// Largest number of images in one GEMM.
    pub(crate) max_images: usize,
    /// Position ranges of the im2col operation that copies an image to its zero-padded frame, or
    /// `None` if images are read in place.
    frame_taps: Option<WindowTaps>,
    /// Whether the frame of an image is its im2col matrix.
    is_stored: bool,
    /// Number of elements in one polyphase plane of a frame, or in one row of a stored matrix.
    plane_len: usize,
    /// Distance in elements from one frame to the next, or from one image to the next if images are
    /// read in place.
    image_stride: usize,
    row_offsets: Vec<usize>,
    /// Spans of consecutive positions whose elements are contiguous, for one image after another.
    position_spans: Vec<CopySpan>,
    spans_per_image: usize,
}

/// Images and channel group that one GEMM processes.
pub(crate) struct ImageGroup {
    images: usize,
    /// Index of the channel group that the GEMM processes.
    pub(crate) group: usize,
    /// Number of window positions in all images of the GEMM.
    pub(crate) columns: usize,
}

impl ImplicitColumns {
    /// Returns the address tables for the GEMM that computes outputs, with one column per position.
    pub(crate) fn for_outputs(op: &Convolution) -> Result<Self> {
        let positions = op.window().positions().max(1);
        let is_efficient = |images: &usize| {
            let columns = images * positions;
            let idle_lanes = columns.next_multiple_of(16) - columns;
            columns >= MIN_N && idle_lanes <= columns / 15
        };
        // Use the first of the four smallest efficient image counts that divides the batch size, or
        // the smallest count if none divides it.
        let candidates = || (1..MAX_IMAGES).filter(is_efficient).take(4);
        let divisor = candidates().find(|&images| op.batch().is_multiple_of(images));
        Self::new(op, divisor.or(candidates().next()).unwrap_or(MAX_IMAGES))
    }

    /// Returns the address tables for the GEMM that computes filter gradients by sums over
    /// positions. A small matrix is stored if the GEMM reads it in place (decision 59).
    pub(crate) fn for_filter_gradients(op: &Convolution) -> Result<Self> {
        let positions = op.window().positions();
        let columns = Self::new(op, MIN_K.div_ceil(positions.max(1)).min(MAX_IMAGES))?;
        let gemm = Gemm::<f32>::new(columns.outputs, columns.rows(), positions)
            .transpose(Transpose::No, Transpose::Yes);
        let is_stored = columns.max_images == 1
            && columns.rows() * positions <= STORED_MAX_LEN
            && reads_b_in_place(&gemm, None);
        Ok(if is_stored { columns.stored() } else { columns })
    }

    /// Returns the tables for frames that are the im2col matrices of their images.
    fn stored(self) -> Self {
        let positions = self.window.positions();
        Self {
            frame_taps: Some(WindowTaps::of(&self.window)),
            is_stored: true,
            plane_len: positions,
            image_stride: self.rows() * positions,
            ..self
        }
    }

    fn new(op: &Convolution, max_images: usize) -> Result<Self> {
        let op_window = op.window();
        let window = Window::new(op_window.channels() / op.groups(), op_window.axes())?;
        let (batch, groups) = (op.batch(), op.groups());
        let max_images = max_images.clamp(1, batch.max(1));
        check_memory_for_frames(&window, max_images)?;
        let in_place = window.axes().iter().all(|axis| axis.stride == 1 && axis.pad == 0);
        let phases: Vec<SpatialAxis> = window.axes().iter().map(phase_axis).collect();
        let extents = plane_extents(&window);
        let plane_len = extents.iter().product::<usize>();
        let channel_len = phases.iter().map(|axis| axis.kernel).product::<usize>() * plane_len;
        let frame_len = window.channels() * channel_len;
        let image_stride = if in_place { groups * frame_len } else { frame_len };
        let positions = window.positions();
        let spans = position_spans(&window, &extents);
        let spans_of_image = |image| {
            spans.iter().map(move |span| CopySpan {
                from: span.from + image * image_stride,
                to: span.to + image * positions,
                ..*span
            })
        };
        Ok(Self {
            position_spans: (0..max_images).flat_map(spans_of_image).collect(),
            spans_per_image: spans.len(),
            row_offsets: row_offsets(&window, &extents, channel_len),
            frame_taps: (!in_place).then(|| WindowTaps::new(&phases, &extents)),
            is_stored: false,
            outputs: op.outputs() / groups,
            window,
            groups,
            max_images,
            plane_len,
            image_stride,
        })
    }

    /// Returns the number of rows of the im2col matrix of one channel group.
    pub(crate) fn rows(&self) -> usize {
        self.window.column_rows()
    }

    /// Returns the [`ImageGroup`] for channel group `group` of the operands' first `images` images.
    pub(crate) fn image_group(&self, group: usize, images: usize) -> ImageGroup {
        ImageGroup { images, group, columns: images * self.window.positions() }
    }

    /// Returns the slice of `x` that equals the im2col matrix of `group`. Returns `None` if `group`
    /// has several images, or if the image is not identical to its im2col matrix.
    pub(crate) fn image_as_columns<'a, A>(
        &self,
        group: &ImageGroup,
        x: &'a [A],
    ) -> Option<&'a [A]> {
        (self.window.is_identity() && group.images == 1).then(|| &x[self.image_range(group, 0)])
    }

    /// Calls `body` with the rows `rows` of the im2col matrix of `group`, or with the transpose of
    /// these rows if `trans` is `Yes`. A stored matrix is not transposed; the GEMM's descriptor must
    /// say that it is the transpose of `B`.
    pub(crate) fn with_columns<A: Element, R>(
        &self,
        workers: &Workers,
        group: &ImageGroup,
        trans: Transpose,
        rows: Range<usize>,
        x: &[A],
        body: impl FnOnce(&GemmB<A>) -> R,
    ) -> R {
        let spans = &self.position_spans[..group.images * self.spans_per_image];
        let row_offsets = &self.row_offsets[rows.clone()];
        let Some(taps) = &self.frame_taps else {
            let start = self.image_range(group, 0).start.min(x.len());
            let matrix = IndirectMatrix::new(trans, &x[start..], row_offsets, spans);
            return body(&GemmB::Indirect(&matrix));
        };
        with_scratch(group.images * self.image_stride, |frames: &mut [A]| {
            for (image, frame) in frames.chunks_exact_mut(self.image_stride.max(1)).enumerate() {
                let x = &x[self.image_range(group, image)];
                im2col_channels(workers, taps, x, frame, self.plane_len);
            }
            if self.is_stored {
                return body(&GemmB::Matrix(&frames[rows.start * self.plane_len..]));
            }
            let matrix = IndirectMatrix::new(trans, frames, row_offsets, spans);
            body(&GemmB::Indirect(&matrix))
        })
    }

    /// Returns the outputs of `group` as a matrix if `group` has a single image, else `None`.
    pub(crate) fn output_mut<'a, A>(
        &self,
        group: &ImageGroup,
        y: &'a mut [A],
    ) -> Option<&'a mut [A]> {
        (group.images == 1).then(|| &mut y[self.output_range(group, 0)])
    }

    /// Copies the outputs of all images of `group` from the rows of `matrix` to `y`.
    pub(crate) fn scatter_outputs<A: Element>(
        &self,
        group: &ImageGroup,
        matrix: &[A],
        y: &mut [A],
    ) {
        self.for_each_output(group, |row, output| y[output].copy_from_slice(&matrix[row]));
    }

    /// Calls `body` with the outputs of `group` as one matrix, and with the matrix's leading
    /// dimension.
    pub(crate) fn with_gathered_outputs<A: Element, R>(
        &self,
        group: &ImageGroup,
        y: &[A],
        body: impl FnOnce(&[A], usize) -> R,
    ) -> R {
        if group.images == 1 {
            return body(&y[self.output_range(group, 0)], self.window.positions());
        }
        with_scratch(self.outputs * group.columns, |matrix: &mut [A]| {
            self.for_each_output(group, |row, output| matrix[row].copy_from_slice(&y[output]));
            body(matrix, group.columns)
        })
    }

    /// Calls `body` for each output plane of each image. `body` receives the range of the plane's
    /// elements in the output matrix and their range in `y`.
    fn for_each_output(
        &self,
        group: &ImageGroup,
        mut body: impl FnMut(Range<usize>, Range<usize>),
    ) {
        let positions = self.window.positions();
        for row in 0..self.outputs {
            for image in 0..group.images {
                let row_start = row * group.columns + image * positions;
                let y_start = self.output_range(group, image).start + row * positions;
                body(row_start..row_start + positions, y_start..y_start + positions);
            }
        }
    }

    fn image_range(&self, group: &ImageGroup, image: usize) -> Range<usize> {
        let len = self.window.image_len();
        let start = (image * self.groups + group.group) * len;
        start..start + len
    }

    fn output_range(&self, group: &ImageGroup, image: usize) -> Range<usize> {
        let len = self.outputs * self.window.positions();
        let start = (image * self.groups + group.group) * len;
        start..start + len
    }
}

/// Returns the distance in elements from the first to the last tap of a window along `axis`.
fn tap_distance(axis: &SpatialAxis) -> usize {
    axis.dilation * (axis.kernel - 1)
}

/// Returns the parameters, along one axis, of the im2col operation that copies an image to its
/// padded frame. The copying im2col operation has one tap per phase of the stride. The phase of a
/// tap is the tap's offset modulo the stride.
fn phase_axis(axis: &SpatialAxis) -> SpatialAxis {
    SpatialAxis { kernel: axis.stride.min(tap_distance(axis) + 1), dilation: 1, ..*axis }
}

/// Returns the extents of one polyphase plane of a frame.
fn plane_extents(window: &Window) -> Vec<usize> {
    let axes = window.axes().iter().zip(window.output());
    axes.map(|(axis, output)| output + tap_distance(axis) / axis.stride).collect()
}

/// Fails if memory for the frames (padded images) of `images` images cannot be allocated. A frame
/// is far larger than the image and the output if the dilation far exceeds the extent of the image.
fn check_memory_for_frames(window: &Window, images: usize) -> Result<()> {
    let phases = window.axes().iter().map(|axis| phase_axis(axis).kernel);
    let factors = [images, window.channels()].into_iter().chain(phases);
    let len = factors
        .chain(plane_extents(window))
        .fold(1usize, |len, factor| len.saturating_mul(factor.max(1)));
    if len <= PREALLOC_CHECK_LEN || Vec::<f64>::new().try_reserve_exact(len).is_ok() {
        return Ok(());
    }
    let bytes = len.saturating_mul(size_of::<f64>());
    Err(Error::out_of_host_memory(bytes))
}

/// Returns the offset of each row of the im2col matrix in a frame with `channel_len` elements per
/// channel. `extents` are the extents of one polyphase plane of the frame.
fn row_offsets(window: &Window, extents: &[usize], channel_len: usize) -> Vec<usize> {
    let plane_len: usize = extents.iter().product();
    // For each tap along the axes visited so far, the index of the phase that the tap reads, and
    // the offset of the tap in the plane of that phase.
    let mut taps = vec![(0, 0)];
    for (axis, extent) in window.axes().iter().zip(extents) {
        let phases = phase_axis(axis).kernel;
        let shifts = (0..axis.kernel).map(|tap| tap * axis.dilation);
        let add_axis = |(phase, offset): (usize, usize)| {
            shifts.clone().map(move |shift| {
                (phase * phases + shift % axis.stride, offset * extent + shift / axis.stride)
            })
        };
        taps = taps.into_iter().flat_map(add_axis).collect();
    }
    let offsets_of_channel =
        |c| taps.iter().map(move |(phase, offset)| c * channel_len + phase * plane_len + offset);
    (0..window.channels()).flat_map(offsets_of_channel).collect()
}

/// Returns the spans of consecutive positions of one image whose elements are contiguous in a
/// polyphase plane with the extents `extents`.
fn position_spans(window: &Window, extents: &[usize]) -> Vec<CopySpan> {
    let output = window.output();
    let width = output.last().copied().unwrap_or(1);
    let plane_width = extents.last().copied().unwrap_or(1);
    let mut spans: Vec<CopySpan> = Vec::new();
    for to in (0..window.positions()).step_by(width.max(1)) {
        let (mut row, mut from, mut stride) = (to / width, 0, plane_width);
        for (output, extent) in output.iter().zip(extents).rev().skip(1) {
            from += row % output * stride;
            (row, stride) = (row / output, stride * extent);
        }
        match spans.last_mut() {
            Some(last) if last.from + last.len == from => last.len += width,
            _ => spans.push(CopySpan { from, to, len: width }),
        }
    }
    spans
}

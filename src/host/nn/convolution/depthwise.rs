//! Depthwise convolution: every channel is a group with separate filters.
//!
//! A GEMM for a depthwise convolution would use each loaded element for only a few operations.
//! Instead of a GEMM, the depthwise kernels copy each plane to a polyphase layout (see
//! [`PolyphasePlane`]), where the elements that one tap reads for many windows are contiguous. The
//! depthwise kernels process many windows at once, tap by tap, without special cases for windows at
//! the borders.

use crate::{
    element::Element,
    error::Result,
    host::{
        cache::scratch::with_scratch,
        nn::{
            convolution::schedule::{ONE_THREAD, activate},
            polyphase::PolyphasePlane,
        },
        simd::{
            accumulator::{accumulator_len, narrow, overwrite_widened, widen, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::{Convolution, Pool2d, PoolRounding, SpatialAxis, Unary},
};
use num_traits::{Float, Zero};
use std::ops::Range;

/// Largest number of filters per channel for which the depthwise kernels run. For more filters per
/// channel, a GEMM is faster.
const MAX_CHANNEL_MULTIPLIER: usize = 4;

/// Number of windows whose sums a loop computes at a time. Several vectors of independent sums hide
/// the latency of additions.
const WINDOWS: usize = 64;

/// Approximate number of elements in the input planes of one task.
const GRAIN: usize = 1 << 15;

/// Geometry of a depthwise convolution with one or two axes.
pub(crate) struct Depthwise {
    layout: PolyphasePlane,
    /// Offset of each tap: the index in the polyphase plane of the element that the tap reads in
    /// window 0.
    tap_offsets: Vec<usize>,
    /// For each phase, the taps that read the phase, as pairs of the tap's index and the tap's
    /// offset from the start of the phase.
    phase_taps: Vec<Vec<(usize, usize)>>,
    channels: usize,
    /// Number of filters per channel.
    multiplier: usize,
    /// Number of elements in one input plane.
    plane_len: usize,
    /// Number of elements in an output plane.
    positions: usize,
}

impl Depthwise {
    /// Returns `None` if `op` is not depthwise, or if a GEMM would be at least as fast.
    pub(crate) fn new(op: &Convolution) -> Option<Self> {
        let window = op.window();
        let channels = window.channels();
        if channels == 0
            || op.groups() != channels
            || op.outputs() > MAX_CHANNEL_MULTIPLIER * channels
        {
            return None;
        }
        let axes = match *window.axes() {
            [columns] => [SpatialAxis::new(1, 1), columns],
            [rows, columns] => [rows, columns],
            _ => return None,
        };
        // Use the polyphase layout of pooling, with windows that extend from the first to the last
        // dilated tap.
        let extents = axes.map(|axis| axis.dilation * (axis.kernel - 1) + 1);
        let [input, stride, pad] =
            [axes.map(|axis| axis.input), axes.map(|axis| axis.stride), axes.map(|axis| axis.pad)];
        let pool_op = Pool2d::new(1, input, extents, stride, pad, PoolRounding::Floor).ok()?;
        if pool_op.output()[0] * pool_op.output()[1] != window.positions()
            || !PolyphasePlane::is_profitable(&pool_op)
        {
            return None;
        }
        let layout = PolyphasePlane::new(&pool_op);
        let pool_taps = layout.taps();
        let [rows, columns] = axes;
        let offset = |(r, c): (usize, usize)| {
            pool_taps[r * rows.dilation * extents[1] + c * columns.dilation].offset
        };
        let taps = (0..rows.kernel).flat_map(|r| (0..columns.kernel).map(move |c| (r, c)));
        let tap_offsets: Vec<_> = taps.map(offset).collect();
        let mut phase_taps = vec![Vec::new(); layout.phases()];
        for (tap, offset) in tap_offsets.iter().enumerate() {
            phase_taps[offset / layout.phase_len()].push((tap, offset % layout.phase_len()));
        }
        Some(Self {
            layout,
            tap_offsets,
            phase_taps,
            channels,
            multiplier: op.outputs() / channels,
            plane_len: window.plane_len(),
            positions: window.positions(),
        })
    }

    /// `y ← activation(filters ∗ x + bias)`
    pub(crate) fn forward<T: Element>(
        &self,
        workers: &Workers,
        x: &[T],
        filters: &[T::Acc],
        bias: Option<&[T::Acc]>,
        activation: Option<Unary<T::Acc>>,
        y: &mut [T],
    ) -> Result<()> {
        let output_len = self.multiplier * self.positions;
        let planes = self.planes_per_task();
        workers.try_for_each_chunk(y, planes * output_len, |task, y| {
            self.with_buffers::<T>(|wide_buffer, phases, values| {
                for (p, y) in (task * planes..).zip(y.chunks_exact_mut(output_len)) {
                    self.load_plane(
                        &x[p * self.plane_len..][..self.plane_len],
                        wide_buffer,
                        phases,
                    );
                    for (o, y) in self.filters_of(p).zip(y.chunks_exact_mut(self.positions)) {
                        let bias = bias.map_or(T::Acc::zero(), |bias| bias[o]);
                        let filter = &filters[o * self.tap_offsets.len()..];
                        let values = &mut values[..self.padded_windows()];
                        values.fill(bias);
                        let taps = self.tap_offsets.iter().copied().zip(filter.iter().copied());
                        add_taps(phases, taps, values);
                        for (window, row) in self.layout.rows() {
                            narrow(&values[window..][..row.len()], &mut y[row]);
                        }
                    }
                }
            });
            activate(&ONE_THREAD, activation, y)
        })
    }

    /// `dx ← filtersᵀ ∗ dy`
    pub(crate) fn backward_input<T: Element>(
        &self,
        workers: &Workers,
        filters: &[T::Acc],
        dy: &[T],
        dx: &mut [T],
    ) {
        let output_len = self.multiplier * self.positions;
        let planes = self.planes_per_task();
        workers.for_each_chunk(dx, planes * self.plane_len, |task, dx| {
            self.with_buffers::<T>(|wide_buffer, phases, values| {
                // The elements of `values` before the first window, and between rows of windows,
                // stay zero.
                for (p, dx) in (task * planes..).zip(dx.chunks_exact_mut(self.plane_len)) {
                    phases.fill(T::Acc::zero());
                    for (i, o) in self.filters_of(p).enumerate() {
                        let dy = &dy[p * output_len + i * self.positions..][..self.positions];
                        let first_window = self.max_tap_offset();
                        self.load_windows(dy, &mut values[first_window..]);
                        let filter = &filters[o * self.tap_offsets.len()..];
                        for (phase, taps) in self.phase_taps.iter().enumerate() {
                            let taps = taps
                                .iter()
                                .map(|&(tap, offset)| (first_window - offset, filter[tap]));
                            let len = self.layout.phase_len();
                            add_taps(values, taps, &mut phases[phase * len..][..len]);
                        }
                    }
                    overwrite_widened(dx, wide_buffer, |dx| {
                        dx.fill(T::Acc::zero());
                        vectorized(
                            #[inline(always)]
                            |_| self.layout.merge_phases(phases, dx),
                        );
                    });
                }
            });
        });
    }

    /// `sums ← dy ∗ x`, with separate sums for each part of the batch; a part has `images` images.
    pub(crate) fn backward_filters<T: Element>(
        &self,
        workers: &Workers,
        images: usize,
        x: &[T],
        dy: &[T],
        sums: &mut [T::Acc],
    ) {
        let batch = x.len() / (self.channels * self.plane_len);
        let output_len = self.multiplier * self.positions;
        let sums_len = self.multiplier * self.tap_offsets.len();
        let sums_per_task = self.planes_per_task().div_ceil(images);
        workers.for_each_chunk(sums, sums_per_task * sums_len, |task, sums| {
            self.with_buffers::<T>(|wide_buffer, phases, values| {
                for (i, sums) in (task * sums_per_task..).zip(sums.chunks_exact_mut(sums_len)) {
                    let (batch_part, channel) = (i / self.channels, i % self.channels);
                    sums.fill(T::Acc::zero());
                    for image in batch_part * images..batch.min((batch_part + 1) * images) {
                        let p = image * self.channels + channel;
                        self.load_plane(
                            &x[p * self.plane_len..][..self.plane_len],
                            wide_buffer,
                            phases,
                        );
                        let dy = dy[p * output_len..][..output_len].chunks_exact(self.positions);
                        for (dy, sums) in dy.zip(sums.chunks_exact_mut(self.tap_offsets.len())) {
                            self.load_windows(dy, values);
                            let values = &values[..self.padded_windows()];
                            add_products(phases, &self.tap_offsets, values, sums);
                        }
                    }
                }
            });
        });
    }

    fn planes_per_task(&self) -> usize {
        (GRAIN / self.plane_len.max(1)).max(1)
    }

    /// Returns the indices of the filters for the channel of input plane `p`.
    fn filters_of(&self, p: usize) -> Range<usize> {
        let channel = p % self.channels;
        channel * self.multiplier..(channel + 1) * self.multiplier
    }

    /// Returns the number of window slots, rounded up to a multiple of [`WINDOWS`].
    fn padded_windows(&self) -> usize {
        self.layout.window_slots().next_multiple_of(WINDOWS)
    }

    /// Returns the largest offset, in elements, of a tap from the start of its phase. A phase holds
    /// elements of the input plane that are one stride apart.
    fn max_tap_offset(&self) -> usize {
        self.phase_taps.iter().flatten().map(|&(_, offset)| offset).max().unwrap_or(0)
    }

    /// Calls `body` with three zeroed buffers: for a widened plane, for a polyphase plane, and for
    /// one value per window. The buffer for the values also has space for [`Self::max_tap_offset`]
    /// zeros before the first value.
    fn with_buffers<T: Element>(
        &self,
        body: impl FnOnce(&mut [T::Acc], &mut [T::Acc], &mut [T::Acc]),
    ) {
        let (wide_len, phases_len) =
            (accumulator_len::<T>(self.plane_len), self.layout.len() + WINDOWS);
        let values_len =
            self.max_tap_offset() + self.padded_windows().max(self.layout.phase_len() + WINDOWS);
        with_scratch(wide_len + phases_len + values_len, |scratch: &mut [T::Acc]| {
            scratch.fill(T::Acc::zero());
            let (wide_buffer, scratch) = scratch.split_at_mut(wide_len);
            let (phases, values) = scratch.split_at_mut(phases_len);
            body(wide_buffer, phases, values);
        });
    }

    /// Copies the input plane `x` to the polyphase layout `phases`.
    fn load_plane<T: Element>(&self, x: &[T], wide_buffer: &mut [T::Acc], phases: &mut [T::Acc]) {
        let x = widened(x, wide_buffer);
        vectorized(
            #[inline(always)]
            |_| self.layout.split_phases(x, phases),
        );
    }

    /// Widens the element of `dy` for each window, and stores it in the window's slot in `values`.
    /// The slots between rows of windows keep their values.
    fn load_windows<T: Element>(&self, dy: &[T], values: &mut [T::Acc]) {
        for (window, row) in self.layout.rows() {
            widen(&dy[row.clone()], &mut values[window..][..row.len()]);
        }
    }
}

/// `yₙ ← yₙ + Σ wₜ · x[offsetₜ + n]` over all `taps`, which are pairs of offset and weight.
fn add_taps<A: Element + Float>(
    x: &[A],
    taps: impl Iterator<Item = (usize, A)> + Clone,
    y: &mut [A],
) {
    vectorized(
        #[inline(always)]
        |_| {
            let (blocks, rest) = y.as_chunks_mut::<WINDOWS>();
            let rest_start = blocks.len() * WINDOWS;
            for (i, y) in blocks.iter_mut().enumerate() {
                let mut sum = *y;
                for (offset, w) in taps.clone() {
                    let x = &x[offset + i * WINDOWS..][..WINDOWS];
                    for j in 0..WINDOWS {
                        sum[j] = sum[j] + w * x[j];
                    }
                }
                *y = sum;
            }
            for (offset, w) in taps.clone() {
                let x = &x[offset + rest_start..][..rest.len()];
                rest.iter_mut().zip(x).for_each(|(y, &x)| *y = *y + w * x);
            }
        },
    );
}

/// `sumsₜ ← sumsₜ + Σ yₙ · x[offsetₜ + n]`. The length of `y` must be a multiple of [`WINDOWS`].
fn add_products<A: Element + Float>(x: &[A], offsets: &[usize], y: &[A], sums: &mut [A]) {
    vectorized(
        #[inline(always)]
        |_| {
            for (&offset, sum) in offsets.iter().zip(sums) {
                let mut lanes = [A::zero(); WINDOWS];
                for (i, y) in y.as_chunks::<WINDOWS>().0.iter().enumerate() {
                    let x = &x[offset + i * WINDOWS..][..WINDOWS];
                    for j in 0..WINDOWS {
                        lanes[j] = lanes[j] + y[j] * x[j];
                    }
                }
                // Add the upper half of the lanes to the lower half until one lane is left.
                let mut len = WINDOWS / 2;
                while len > 0 {
                    for j in 0..len {
                        lanes[j] = lanes[j] + lanes[j + len];
                    }
                    len /= 2;
                }
                *sum = *sum + lanes[0];
            }
        },
    );
}

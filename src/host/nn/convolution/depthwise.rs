//! Depthwise convolution: every channel has filters of its own.
//!
//! A product of one row would read its columns once and do little with them. So planes are
//! rearranged such that what a tap of all windows sees lies side by side (see [`PolyphasePlane`]); then
//! many windows are summed at once, tap by tap, and nothing of a border is left to look after.

use crate::host::simd::accumulator::accumulator_len;
use crate::{
    element::Element,
    error::Result,
    host::{
        cache::scratch::with_scratch,
        nn::{
            convolution::{ALONE, activate},
            polyphase::PolyphasePlane,
        },
        simd::{
            accumulator::{narrow, overwrite_widened, widen, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::{Convolution, Pool2d, PoolRounding, SpatialAxis, Unary},
};
use num_traits::{Float, Zero};
use std::ops::Range;

/// Most filters of a channel: for more, products are faster.
const MAX_CHANNEL_MULTIPLIER: usize = 4;

/// Windows summed at a time: a few vectors, to hide the latency of an addition.
const WINDOWS: usize = 64;

/// Elements of the planes of one task.
const GRAIN: usize = 1 << 15;

/// How a depthwise convolution in one or two axes is computed.
pub(crate) struct Depthwise {
    tiling: PolyphasePlane,
    /// Where window 0 finds each tap in a rearranged plane.
    taps: Vec<usize>,
    /// For every phase, the taps that lie in it: their numbers, and where in the phase.
    by_phase: Vec<Vec<(usize, usize)>>,
    channels: usize,
    /// Filters of a channel.
    filters: usize,
    /// Elements of an input plane and of an output plane.
    plane: usize,
    positions: usize,
}

impl Depthwise {
    /// `None` if the convolution is no such one.
    pub(crate) fn of(op: &Convolution) -> Option<Self> {
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
        let pool = pool(&axes)?;
        if pool.output()[0] * pool.output()[1] != window.positions()
            || !PolyphasePlane::is_profitable(&pool)
        {
            return None;
        }
        let tiling = PolyphasePlane::new(&pool);
        let all = tiling.taps();
        let [rows, columns] = axes;
        // Of a dilated kernel's reach, what its taps see.
        let offset = |r: usize, c: usize| {
            all[r * rows.dilation * pool.kernel[1] + c * columns.dilation].offset
        };
        let taps: Vec<_> =
            (0..rows.kernel).flat_map(|r| (0..columns.kernel).map(move |c| (r, c))).collect();
        let taps: Vec<_> = taps.into_iter().map(|(r, c)| offset(r, c)).collect();
        let mut by_phase = vec![Vec::new(); tiling.phases()];
        for (tap, offset) in taps.iter().enumerate() {
            by_phase[offset / tiling.phase_len()].push((tap, offset % tiling.phase_len()));
        }
        Some(Self {
            tiling,
            taps,
            by_phase,
            channels,
            filters: op.outputs() / channels,
            plane: window.plane_len(),
            positions: window.positions(),
        })
    }

    /// `y ← filters ∗ x + bias`, and a function of it if there is one.
    pub(crate) fn convolve<T: Element>(
        &self,
        workers: &Workers,
        x: &[T],
        filters: &[T::Acc],
        bias: Option<&[T::Acc]>,
        function: Option<Unary<T::Acc>>,
        y: &mut [T],
    ) -> Result<()> {
        let results = self.filters * self.positions;
        let per_task = self.planes_per_task();
        workers.try_for_each_chunk(y, per_task * results, |task, y| {
            self.with_rooms::<T>(|wide, tiled, values| {
                for (p, y) in (task * per_task..).zip(y.chunks_exact_mut(results)) {
                    self.spread(&x[p * self.plane..][..self.plane], wide, tiled);
                    for (o, y) in self.outputs(p).zip(y.chunks_exact_mut(self.positions)) {
                        let bias = bias.map_or(T::Acc::zero(), |bias| bias[o]);
                        let filter = &filters[o * self.taps.len()..][..self.taps.len()];
                        let values = &mut values[..self.windows()];
                        values.fill(bias);
                        let taps = self.taps.iter().copied().zip(filter.iter().copied());
                        add_taps(tiled, taps, values);
                        for (window, row) in self.tiling.rows() {
                            narrow(&values[window..][..row.len()], &mut y[row]);
                        }
                    }
                }
            });
            activate(&ALONE, function, y)
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
        let results = self.filters * self.positions;
        let per_task = self.planes_per_task();
        workers.for_each_chunk(dx, per_task * self.plane, |task, dx| {
            self.with_rooms::<T>(|wide, tiled, values| {
                // What precedes the first window and lies between rows of windows stays zero.
                for (p, dx) in (task * per_task..).zip(dx.chunks_exact_mut(self.plane)) {
                    tiled.fill(T::Acc::zero());
                    for (i, o) in self.outputs(p).enumerate() {
                        let dy = &dy[p * results + i * self.positions..][..self.positions];
                        let lead = self.lead();
                        self.place(dy, &mut values[lead..]);
                        let filter = &filters[o * self.taps.len()..][..self.taps.len()];
                        for (phase, taps) in self.by_phase.iter().enumerate() {
                            let taps = taps.iter().map(|&(tap, at)| (lead - at, filter[tap]));
                            let len = self.tiling.phase_len();
                            add_taps(values, taps, &mut tiled[phase * len..][..len]);
                        }
                    }
                    overwrite_widened(dx, wide, |dx| {
                        dx.fill(T::Acc::zero());
                        vectorized(
                            #[inline(always)]
                            || self.tiling.from_phases(tiled, dx),
                        );
                    });
                }
            });
        });
    }

    /// The filters' gradients over runs of `images` images, each run's apart: `sums ← dy ∗ x`.
    pub(crate) fn correlate<T: Element>(
        &self,
        workers: &Workers,
        images: usize,
        x: &[T],
        dy: &[T],
        sums: &mut [T::Acc],
    ) {
        let batch = x.len() / (self.channels * self.plane);
        let (part, results) = (self.filters * self.taps.len(), self.filters * self.positions);
        let per_task = self.planes_per_task().div_ceil(images);
        workers.for_each_chunk(sums, per_task * part, |task, sums| {
            self.with_rooms::<T>(|wide, tiled, values| {
                for (at, sums) in (task * per_task..).zip(sums.chunks_exact_mut(part)) {
                    let (run, channel) = (at / self.channels, at % self.channels);
                    sums.fill(T::Acc::zero());
                    for image in run * images..batch.min((run + 1) * images) {
                        let p = image * self.channels + channel;
                        self.spread(&x[p * self.plane..][..self.plane], wide, tiled);
                        let dy = dy[p * results..][..results].chunks_exact(self.positions);
                        for (dy, sums) in dy.zip(sums.chunks_exact_mut(self.taps.len())) {
                            self.place(dy, values);
                            add_products(tiled, &self.taps, &values[..self.windows()], sums);
                        }
                    }
                }
            });
        });
    }

    fn planes_per_task(&self) -> usize {
        (GRAIN / self.plane.max(1)).max(1)
    }

    /// Filters of the channel of plane `p`.
    fn outputs(&self, p: usize) -> Range<usize> {
        let channel = p % self.channels;
        channel * self.filters..(channel + 1) * self.filters
    }

    /// Numbers of windows, up to whole runs of those summed at a time.
    fn windows(&self) -> usize {
        self.tiling.window_slots().next_multiple_of(WINDOWS)
    }

    /// The farthest that a tap lies behind the start of its phase.
    fn lead(&self) -> usize {
        self.by_phase.iter().flatten().map(|&(_, at)| at).max().unwrap_or(0)
    }

    /// Calls `body` with room to widen a plane, and, zeroed, for a rearranged plane and for a
    /// value of each window behind as many zeros as a tap can look back.
    fn with_rooms<T: Element>(
        &self,
        body: impl FnOnce(&mut [T::Acc], &mut [T::Acc], &mut [T::Acc]),
    ) {
        let (wide, tiled) = (accumulator_len::<T>(self.plane), self.tiling.len() + WINDOWS);
        let values = self.lead() + self.windows().max(self.tiling.phase_len() + WINDOWS);
        with_scratch(wide + tiled + values, |room: &mut [T::Acc]| {
            room.fill(T::Acc::zero());
            let (wide, room) = room.split_at_mut(wide);
            let (tiled, values) = room.split_at_mut(tiled);
            body(wide, tiled, values);
        });
    }

    /// Rearranges a plane.
    fn spread<T: Element>(&self, x: &[T], wide: &mut [T::Acc], tiled: &mut [T::Acc]) {
        let x = widened(x, wide);
        vectorized(
            #[inline(always)]
            || self.tiling.to_phases(x, tiled),
        );
    }

    /// Puts each window's element at its number; numbers of no window are left as they are.
    fn place<T: Element>(&self, dy: &[T], values: &mut [T::Acc]) {
        for (window, row) in self.tiling.rows() {
            widen(&dy[row.clone()], &mut values[window..][..row.len()]);
        }
    }
}

/// The geometry as that of a pooling, whose windows are the kernel's reach.
fn pool(axes: &[SpatialAxis; 2]) -> Option<Pool2d> {
    let reach = axes.map(|axis| axis.dilation * (axis.kernel - 1) + 1);
    let [input, stride, pad] =
        [axes.map(|axis| axis.input), axes.map(|axis| axis.stride), axes.map(|axis| axis.pad)];
    Pool2d::new(1, input, reach, stride, pad, PoolRounding::Floor).ok()
}

/// `yₙ ← yₙ + Σ wₜ · x[offsetₜ + n]` over taps of offset and weight.
fn add_taps<A: Element + Float>(
    x: &[A],
    taps: impl Iterator<Item = (usize, A)> + Clone,
    y: &mut [A],
) {
    vectorized(
        #[inline(always)]
        || {
            let (runs, rest) = y.as_chunks_mut::<WINDOWS>();
            let done = runs.len() * WINDOWS;
            for (i, y) in runs.iter_mut().enumerate() {
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
                let x = &x[offset + done..][..rest.len()];
                rest.iter_mut().zip(x).for_each(|(y, &x)| *y = *y + w * x);
            }
        },
    );
}

/// `sumsₜ ← sumsₜ + Σ yₙ · x[offsetₜ + n]`; `y` is whole runs.
fn add_products<A: Element + Float>(x: &[A], offsets: &[usize], y: &[A], sums: &mut [A]) {
    vectorized(
        #[inline(always)]
        || {
            for (&offset, sum) in offsets.iter().zip(sums) {
                let mut lanes = [A::zero(); WINDOWS];
                for (i, y) in y.as_chunks::<WINDOWS>().0.iter().enumerate() {
                    let x = &x[offset + i * WINDOWS..][..WINDOWS];
                    for j in 0..WINDOWS {
                        lanes[j] = lanes[j] + y[j] * x[j];
                    }
                }
                // Halves are added until one lane is left.
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

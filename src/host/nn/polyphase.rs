//! Polyphase layout of a plane: the elements that one kernel tap reads, over all windows, are
//! contiguous.

use crate::op::Pool2d;
use std::ops::Range;

/// Number of windows that a pooling loop processes at a time.
pub(crate) const LANES: usize = 16;

/// Geometry of the polyphase layout of a plane. A *phase* consists of all elements whose row and
/// column distances from one another are multiples of the stride.
///
/// Row `r` and column `c` of the padded plane are element `(r / stride, c / stride)` of phase `(r
/// mod stride, c mod stride)`. The layout omits phases that no tap reads. For each tap, the element
/// that window `(p, q)` reads lies at a constant offset from element `(p, q)` of the tap's phase.
/// The *slot* of window `(p, q)` is the index of element `(p, q)` in a phase, so one tap reads
/// contiguous elements for windows with consecutive slots. If windows overlap, a row of a phase is
/// longer than a row of windows, and the slots between rows of windows are unused.
pub(crate) struct PolyphasePlane {
    op: Pool2d,
    /// Number of phases that the layout stores along each axis.
    phases: [usize; 2],
    /// Numbers of rows and columns in each phase.
    extents: [usize; 2],
    runs: Vec<Run>,
}

/// Run of elements that are one stride apart in the plane, from index `from` on, and contiguous in
/// the layout, from index `to` on.
struct Run {
    from: usize,
    to: usize,
    len: usize,
}

impl Run {
    fn ends_before(&self, next: &Self) -> bool {
        (self.from + self.len, self.to + self.len) == (next.from, next.to)
    }
}

/// One tap of a pooling window, given by the location of the element that the tap reads in window
/// 0.
#[derive(Clone, Copy)]
pub(crate) struct Tap {
    /// Offset in the polyphase layout of the element that the tap reads in window 0.
    pub offset: usize,
    /// Index `row · width + column` of the element that the tap reads in window 0, modulo 2³².
    /// `row` or `column` is negative if the tap lies in the padding.
    pub index: i32,
}

impl PolyphasePlane {
    /// Returns true if a plane has enough windows to fill vectors, and windows are not larger than
    /// the plane. The polyphase layout for windows larger than the plane would be mostly padding.
    pub(crate) fn is_profitable(op: &Pool2d) -> bool {
        op.output()[0] * op.output()[1] >= LANES / 2
            && (0..2).all(|axis| op.kernel[axis] <= op.input[axis])
    }

    pub(crate) fn new(op: &Pool2d) -> Self {
        let (mut phases, mut extents) = ([0; 2], [0; 2]);
        for axis in 0..2 {
            phases[axis] = op.kernel[axis].min(op.stride[axis]);
            extents[axis] = op.output()[axis] + (op.kernel[axis] - 1) / op.stride[axis];
        }
        let mut layout = Self { op: *op, phases, extents, runs: Vec::new() };
        layout.runs = layout.runs();
        layout
    }

    /// Returns the length of the layout, including padding so that a loop can read [`LANES`]
    /// elements from any offset.
    pub(crate) fn len(&self) -> usize {
        self.phases() * self.phase_len() + LANES
    }

    /// Returns the number of window slots, a multiple of [`LANES`].
    pub(crate) fn window_slots(&self) -> usize {
        let [height, width] = self.op.output();
        ((height - 1) * self.slot_row_stride() + width).next_multiple_of(LANES)
    }

    /// Returns, for each run of windows with consecutive slots, the first slot and the range of the
    /// run in the output plane.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let ([height, width], row_stride) = (self.op.output(), self.slot_row_stride());
        // If each row of windows fills its slots, all windows form one run.
        let (runs, len) = if row_stride == width { (1, height * width) } else { (height, width) };
        (0..runs).map(move |run| (run * row_stride, run * len..(run + 1) * len))
    }

    /// Returns the number of slots from one row of windows to the next.
    pub(crate) fn slot_row_stride(&self) -> usize {
        self.extents[1]
    }

    /// Returns the number of phases in the layout.
    pub(crate) fn phases(&self) -> usize {
        self.phases[0] * self.phases[1]
    }

    /// Returns the number of elements in one phase.
    pub(crate) fn phase_len(&self) -> usize {
        self.extents[0] * self.extents[1]
    }

    /// Returns all taps of the pooling window in row-major order.
    pub(crate) fn taps(&self) -> Vec<Tap> {
        let Pool2d { input, kernel, stride, pad, .. } = self.op;
        let taps = (0..kernel[0]).flat_map(|r| (0..kernel[1]).map(move |c| (r, c)));
        let tap = |(r, c)| {
            let row = r as i64 - pad[0] as i64;
            let index = row * input[1] as i64 + c as i64 - pad[1] as i64;
            let start = self.phase_start(r % stride[0], c % stride[1]);
            let offset = start + r / stride[0] * self.extents[1] + c / stride[1];
            Tap { offset, index: index as i32 }
        };
        taps.map(tap).collect()
    }

    /// Returns one value per slot, which is `value(row, column)` for the slot of a window and
    /// `unused_value` for an unused slot.
    pub(crate) fn per_window<V: Copy>(
        &self,
        unused_value: V,
        value: impl Fn(usize, usize) -> V,
    ) -> Vec<V> {
        let mut values = vec![unused_value; self.window_slots()];
        for row in 0..self.op.output()[0] {
            for column in 0..self.op.output()[1] {
                values[row * self.slot_row_stride() + column] = value(row, column);
            }
        }
        values
    }

    /// Copies plane `x` to the polyphase layout `phases`, without changing the padding of `phases`.
    #[inline(always)]
    pub(crate) fn split_phases<A: Copy>(&self, x: &[A], phases: &mut [A]) {
        let stride = self.op.stride[1];
        for run in &self.runs {
            let (x, to) = (&x[run.from..], &mut phases[run.to..][..run.len]);
            match stride {
                1 => copy(&x[..run.len], to),
                2 => copy_even(x, to),
                _ => to.iter_mut().zip(x.iter().step_by(stride)).for_each(|(to, x)| *to = *x),
            }
        }
    }

    /// Copies the polyphase layout `phases` back to plane `x`. Elements of `x` that no tap reads do
    /// not change.
    #[inline(always)]
    pub(crate) fn merge_phases<A: Copy>(&self, phases: &[A], x: &mut [A]) {
        let stride = self.op.stride[1];
        for run in &self.runs {
            let (x, from) = (&mut x[run.from..], &phases[run.to..][..run.len]);
            match stride {
                1 => x[..run.len].copy_from_slice(from),
                _ => x.iter_mut().step_by(stride).zip(from).for_each(|(x, from)| *x = *from),
            }
        }
    }

    /// Returns the runs of elements that are copied between a plane and its polyphase layout.
    fn runs(&self) -> Vec<Run> {
        let Pool2d { input: [height, width], stride, pad, .. } = self.op;
        let starts = (0..height).flat_map(|row| (0..stride[1].min(width)).map(move |c| (row, c)));
        let mut runs: Vec<Run> = Vec::new();
        for (row, column) in starts {
            let [i, j] = [(row + pad[0]) / stride[0], (column + pad[1]) / stride[1]];
            let phases = [(row + pad[0]) % stride[0], (column + pad[1]) % stride[1]];
            let is_read = (0..2).all(|axis| phases[axis] < self.phases[axis]);
            if !is_read || i >= self.extents[0] || j >= self.extents[1] {
                continue;
            }
            let len = (width - column).div_ceil(stride[1]).min(self.extents[1] - j);
            let to = self.phase_start(phases[0], phases[1]) + i * self.extents[1] + j;
            let run = Run { from: row * width + column, to, len };
            match runs.last_mut() {
                // Consecutive rows that span the full width of the plane form one run.
                Some(last_run) if stride[1] == 1 && last_run.ends_before(&run) => {
                    last_run.len += len;
                }
                _ => runs.push(run),
            }
        }
        runs
    }

    fn phase_start(&self, row_phase: usize, column_phase: usize) -> usize {
        (row_phase * self.phases[1] + column_phase) * self.phase_len()
    }
}

/// `y ← x`. Fewer than 256 elements are copied without `memcpy`, because a call of `memcpy` would
/// take longer than the copy of most slices.
#[inline(always)]
fn copy<A: Copy>(x: &[A], y: &mut [A]) {
    match x.len() {
        ..4 => y.iter_mut().zip(x).for_each(|(y, x)| *y = *x),
        4..8 => copy_blocks::<A, 4>(x, y),
        8..16 => copy_blocks::<A, 8>(x, y),
        16..256 => copy_blocks::<A, 16>(x, y),
        _ => y.copy_from_slice(x),
    }
}

/// Copies a slice of at least `N` elements in blocks of `N` elements. The last block of `N`
/// elements may overlap the previous block.
#[inline(always)]
fn copy_blocks<A: Copy, const N: usize>(x: &[A], y: &mut [A]) {
    let ((from, _), (to, _)) = (x.as_chunks::<N>(), y.as_chunks_mut::<N>());
    to.iter_mut().zip(from).for_each(|(y, x)| *y = *x);
    if let (Some(x), Some(y)) = (x.last_chunk::<N>(), y.last_chunk_mut::<N>()) {
        *y = *x;
    }
}

/// `yⱼ ← x₂ⱼ`
#[inline(always)]
fn copy_even<A: Copy>(x: &[A], y: &mut [A]) {
    match y.len() {
        ..4 => y.iter_mut().zip(x.iter().step_by(2)).for_each(|(y, x)| *y = *x),
        4..8 => copy_even_blocks::<A, 4, 7>(x, y),
        8..16 => copy_even_blocks::<A, 8, 15>(x, y),
        _ => copy_even_blocks::<A, 16, 31>(x, y),
    }
}

/// Like [`copy_even`], but for at least `N` elements, in blocks of `N`. Each block is read from
/// `SPAN = 2·N − 1` consecutive elements of `x`. The last block may overlap the previous block.
#[inline(always)]
fn copy_even_blocks<A: Copy, const N: usize, const SPAN: usize>(x: &[A], y: &mut [A]) {
    let last_start = y.len() - N;
    let mut start = 0;
    loop {
        let x: &[A; SPAN] = x[2 * start..].first_chunk().expect("x has 2·len − 1 elements");
        let y: &mut [A; N] = y[start..].first_chunk_mut().expect("start is at most len − N");
        *y = std::array::from_fn(|j| x[2 * j]);
        if start == last_start {
            return;
        }
        start = last_start.min(start + N);
    }
}

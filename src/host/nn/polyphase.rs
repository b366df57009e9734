//! A plane rearranged such that what one tap of all windows covers lies side by side.

use crate::op::Pool2d;
use std::ops::Range;

/// Windows computed at a time.
pub(crate) const LANES: usize = 16;

/// The geometry of a plane in *phases*: rows and columns that are a stride apart lie together.
///
/// Row `r` and column `c` of the padded plane are element `(r / stride, c / stride)` of phase
/// `(r mod stride, c mod stride)`; phases that no tap reaches are left out. So a tap of window
/// `(p, q)` is found at a constant offset from element `(p, q)` of its phase: numbering windows
/// like the elements of a phase, a tap of many windows is one run of memory. A row of a phase is
/// longer than one of windows where windows overlap; the numbers left over belong to no window.
pub(crate) struct PolyphasePlane {
    op: Pool2d,
    /// Number of phases.
    phases: [usize; 2],
    /// Extents of a phase.
    phase: [usize; 2],
    runs: Vec<Run>,
}

/// Elements of the plane, from `from` on a stride apart, that lie together from `to` on.
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

/// One tap of every window.
#[derive(Clone, Copy)]
pub(crate) struct Tap {
    /// Where window 0 finds it in the rearranged plane.
    pub offset: usize,
    /// Where it finds it in the plane as it was, taken modulo 2³².
    pub place: i32,
}

impl PolyphasePlane {
    /// Whether windows are many enough to compute them together, and not so large that the plane
    /// would grow by it.
    pub(crate) fn is_profitable(op: &Pool2d) -> bool {
        op.output()[0] * op.output()[1] >= LANES / 2
            && (0..2).all(|axis| op.kernel[axis] <= op.input[axis])
    }

    pub(crate) fn new(op: &Pool2d) -> Self {
        let (mut phases, mut phase) = ([0; 2], [0; 2]);
        for axis in 0..2 {
            phases[axis] = op.kernel[axis].min(op.stride[axis]);
            phase[axis] = op.output()[axis] + (op.kernel[axis] - 1) / op.stride[axis];
        }
        let mut tiling = Self { op: *op, phases, phase, runs: Vec::new() };
        tiling.runs = tiling.runs();
        tiling
    }

    /// Elements of a rearranged plane, with room to read whole lanes at its end.
    pub(crate) fn len(&self) -> usize {
        self.phases() * self.phase_len() + LANES
    }

    /// Numbers of windows, up to whole lanes.
    pub(crate) fn window_slots(&self) -> usize {
        ((self.op.output()[0] - 1) * self.phase[1] + self.op.output()[1]).next_multiple_of(LANES)
    }

    /// Runs of an output plane and the numbers of the windows they begin with.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let ([height, width], pitch) = (self.op.output(), self.phase[1]);
        // Where every number is a window's, but for those that fill up the lanes, it is one run.
        let (runs, len) = if pitch == width { (1, height * width) } else { (height, width) };
        (0..runs).map(move |run| (run * pitch, run * len..(run + 1) * len))
    }

    /// What is added to the number of a window for that below it.
    pub(crate) fn pitch(&self) -> usize {
        self.phase[1]
    }

    /// Number of phases, which lie one after the other.
    pub(crate) fn phases(&self) -> usize {
        self.phases[0] * self.phases[1]
    }

    /// Elements of one phase.
    pub(crate) fn phase_len(&self) -> usize {
        self.phase[0] * self.phase[1]
    }

    /// All taps, in row-major order.
    pub(crate) fn taps(&self) -> Vec<Tap> {
        let Pool2d { input, kernel, stride, pad, .. } = self.op;
        let taps = (0..kernel[0]).flat_map(|r| (0..kernel[1]).map(move |c| (r, c)));
        let tap = |(r, c)| {
            let row = r as i64 - pad[0] as i64;
            let place = row * input[1] as i64 + c as i64 - pad[1] as i64;
            let start = self.start(r % stride[0], c % stride[1]);
            let offset = start + r / stride[0] * self.phase[1] + c / stride[1];
            Tap { offset, place: place as i32 }
        };
        taps.map(tap).collect()
    }

    /// `value(row, column)` of each window, by number; `other` for numbers of no window.
    pub(crate) fn per_window<V: Copy>(
        &self,
        other: V,
        value: impl Fn(usize, usize) -> V,
    ) -> Vec<V> {
        let mut values = vec![other; self.window_slots()];
        for row in 0..self.op.output()[0] {
            for column in 0..self.op.output()[1] {
                values[row * self.phase[1] + column] = value(row, column);
            }
        }
        values
    }

    /// Rearranges plane `x` into `room`, whose padding is left as it is.
    #[inline(always)]
    pub(crate) fn to_phases<A: Copy>(&self, x: &[A], room: &mut [A]) {
        let stride = self.op.stride[1];
        for run in &self.runs {
            let (x, to) = (&x[run.from..], &mut room[run.to..][..run.len]);
            match stride {
                1 => copy(&x[..run.len], to),
                2 => halve(x, to),
                _ => to.iter_mut().zip(x.iter().step_by(stride)).for_each(|(to, x)| *to = *x),
            }
        }
    }

    /// Takes plane `x` back out of its rearrangement; what is not part of it is left as it is.
    #[inline(always)]
    pub(crate) fn from_phases<A: Copy>(&self, room: &[A], x: &mut [A]) {
        let stride = self.op.stride[1];
        for run in &self.runs {
            let (x, from) = (&mut x[run.from..], &room[run.to..][..run.len]);
            match stride {
                1 => x[..run.len].copy_from_slice(from),
                _ => x.iter_mut().step_by(stride).zip(from).for_each(|(x, from)| *x = *from),
            }
        }
    }

    /// The runs that a plane is moved in.
    fn runs(&self) -> Vec<Run> {
        let Pool2d { input: [height, width], stride, pad, .. } = self.op;
        let starts = (0..height).flat_map(|row| (0..stride[1].min(width)).map(move |s| (row, s)));
        let mut runs: Vec<Run> = Vec::new();
        for (row, s) in starts {
            let [i, j] = [(row + pad[0]) / stride[0], (s + pad[1]) / stride[1]];
            let phases = [(row + pad[0]) % stride[0], (s + pad[1]) % stride[1]];
            let reached = (0..2).all(|axis| phases[axis] < self.phases[axis]);
            if !reached || i >= self.phase[0] || j >= self.phase[1] {
                continue;
            }
            let len = (width - s).div_ceil(stride[1]).min(self.phase[1] - j);
            let to = self.start(phases[0], phases[1]) + i * self.phase[1] + j;
            let run = Run { from: row * width + s, to, len };
            match runs.last_mut() {
                // Whole rows are one run.
                Some(last) if stride[1] == 1 && last.ends_before(&run) => last.len += len,
                _ => runs.push(run),
            }
        }
        runs
    }

    fn start(&self, row_phase: usize, column_phase: usize) -> usize {
        (row_phase * self.phases[1] + column_phase) * self.phase_len()
    }
}

/// `y ← x`, mostly short: a call of a copy of any length would cost more than the copy.
#[inline(always)]
fn copy<A: Copy>(x: &[A], y: &mut [A]) {
    match x.len() {
        ..4 => y.iter_mut().zip(x).for_each(|(y, x)| *y = *x),
        4..8 => copy_by::<A, 4>(x, y),
        8..16 => copy_by::<A, 8>(x, y),
        16..256 => copy_by::<A, 16>(x, y),
        _ => y.copy_from_slice(x),
    }
}

/// As [`copy`] of at least `N` elements, `N` at a time, of which the last may be copied twice.
#[inline(always)]
fn copy_by<A: Copy, const N: usize>(x: &[A], y: &mut [A]) {
    let ((runs, _), (room, _)) = (x.as_chunks::<N>(), y.as_chunks_mut::<N>());
    room.iter_mut().zip(runs).for_each(|(y, x)| *y = *x);
    if let (Some(x), Some(y)) = (x.last_chunk::<N>(), y.last_chunk_mut::<N>()) {
        *y = *x;
    }
}

/// `yⱼ ← x₂ⱼ`
#[inline(always)]
fn halve<A: Copy>(x: &[A], y: &mut [A]) {
    match y.len() {
        ..4 => y.iter_mut().zip(x.iter().step_by(2)).for_each(|(y, x)| *y = *x),
        4..8 => halve_by::<A, 4, 7>(x, y),
        8..16 => halve_by::<A, 8, 15>(x, y),
        _ => halve_by::<A, 16, 31>(x, y),
    }
}

/// As [`halve`] of at least `N` elements, `N` at a time, of which the last may be copied twice.
#[inline(always)]
fn halve_by<A: Copy, const N: usize, const REACH: usize>(x: &[A], y: &mut [A]) {
    let last = y.len() - N;
    let mut start = 0;
    loop {
        let run: &[A; REACH] = x[2 * start..].first_chunk().expect("elements up to the last");
        let y: &mut [A; N] = y[start..].first_chunk_mut().expect("as many");
        *y = std::array::from_fn(|j| run[2 * j]);
        if start == last {
            return;
        }
        start = last.min(start + N);
    }
}

//! Columns back to images: every element of an image is the sum of its places.
//!
//! Sums are kept in registers while the taps pass by. To add one tap after the other to the image
//! in memory takes many times as long: each would wait for what the one before it has just written
//! one element further on.

use crate::{
    element::{DType, Element},
    error::Result,
    host::{
        blas::gemm::{SimdKernel, SimdScalar, SimdVector},
        cache::scratch::with_scratch,
        nn::tap_range::{PARALLEL_MIN_LEN, PlaneTaps, TapPlane, TapRange, WindowTaps},
        simd::{
            accumulator::{accumulator_len, overwrite_widened, widened},
            vectorized,
        },
        threads::Workers,
    },
    op::Window,
};
use bytemuck::{cast_slice, cast_slice_mut};
use num_traits::{Float, Zero};

/// Taps along the last axis that are added at a time.
const TAPS: usize = 16;

/// The image whose every element is the sum of its places in `columns`; overwrites `x`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) unless `x` holds the image and `columns` its columns.
pub fn col2im<T: Element>(
    workers: &Workers,
    window: &Window,
    columns: &[T],
    x: &mut [T],
) -> Result<()> {
    window.check("col2im", ("x", x.len()), ("columns", columns.len()))?;
    if x.is_empty() {
        return Ok(());
    }
    let (reaches, plane) = (WindowTaps::of(window), window.plane_len());
    let (taps, positions) = (window.taps(), window.positions());
    let channels = if columns.len() < PARALLEL_MIN_LEN { window.channels() } else { 1 };
    workers.for_each_chunk(x, channels * plane, |i, x| {
        // 16-bit elements are summed in their accumulator type, rounded once.
        let columns = &columns[i * channels * taps * positions..];
        let columns = &columns[..x.len() / plane * taps * positions];
        with_scratch(accumulator_len::<T>(columns.len()), |wide| {
            let columns = widened(columns, wide);
            with_scratch(accumulator_len::<T>(x.len()), |sums| {
                overwrite_widened(x, sums, |x| {
                    col2im_accumulate(&Workers::sequential(), &reaches, columns, positions, x);
                });
            });
        });
    });
    Ok(())
}

/// Sums of columns, rows `ld` elements apart, for the elements of whole channels they stem from;
/// overwrites `x`.
pub(crate) fn col2im_accumulate<A: Element + Float>(
    workers: &Workers,
    reaches: &WindowTaps,
    columns: &[A],
    ld: usize,
    x: &mut [A],
) {
    let (taps, plane) = (reaches.taps(), reaches.plane());
    if plane == 0 || reaches.positions() == 0 {
        return x.fill(A::zero());
    }
    let channels = if columns.len() < PARALLEL_MIN_LEN { x.len() / plane } else { 1 };
    workers.for_each_chunk(x, channels * plane, |i, x| {
        let columns = columns[i * channels * taps * ld..].chunks(taps * ld);
        let overwrites = reaches.is_2d() && reaches.has_unit_stride();
        if !overwrites {
            x.fill(A::zero());
        }
        for (x, columns) in x.chunks_exact_mut(plane).zip(columns) {
            reaches.visit_planes(|at| {
                let Some(image) = at.image else { return };
                let (columns, x) = (&columns[at.tap * ld..], &mut x[image..][..at.rows * at.pitch]);
                match A::DTYPE {
                    _ if !reaches.has_unit_stride() => add_taps(at, columns, ld, x),
                    DType::F64 => add_runs::<A, f64>(at, columns, ld, overwrites, x),
                    _ => add_runs::<A, f32>(at, columns, ld, overwrites, x),
                }
            });
        }
    });
}

/// Tap by tap, of windows several elements apart.
fn add_taps<A: Element + Float>(at: PlaneTaps, columns: &[A], ld: usize, x: &mut [A]) {
    let PlaneTaps { position, pitch, height, width, down, along, .. } = at;
    vectorized(
        #[inline(always)]
        || {
            let mut tap = 0;
            for &rows in down {
                for &run in along {
                    let at = TapPlane { position, image: Some(0), pitch, height, width, rows, run };
                    scatter(at, &columns[tap * ld..], x);
                    tap += 1;
                }
            }
        },
    );
}

/// One tap's positions in two axes: from the columns onto the image.
#[inline(always)]
fn scatter<A: Element + Float>(at: TapPlane, columns: &[A], x: &mut [A]) {
    let TapPlane { rows, run, width, .. } = at;
    let len = run.end - run.start;
    if rows.start == rows.end || len == 0 {
        return;
    }
    let columns = &columns[at.position..][..at.height * width];
    let x = &mut x[rows.first * at.pitch + run.first..];
    let y = &columns[rows.start * width + run.start..rows.end * width];
    let step = rows.stride * at.pitch;
    for (i, y) in y.chunks(width).enumerate() {
        let x = x[i * step..].iter_mut().step_by(run.stride);
        x.zip(&y[..len]).for_each(|(x, &y)| *x = *x + y);
    }
}

/// Row by row, of windows side by side, to what `x` holds or to nothing; `A` is `S`.
fn add_runs<A: Element, S: SimdScalar>(
    at: PlaneTaps,
    columns: &[A],
    ld: usize,
    overwrites: bool,
    x: &mut [A],
) {
    let (taps, positions) = (at.down.len() * at.along.len(), at.height * at.width);
    assert!((taps - 1) * ld + at.position + positions <= columns.len(), "columns");
    let (columns, x) = (cast_slice(columns), cast_slice_mut(x));
    // SAFETY: columns of all taps and positions are there, as just seen, and all rows of `x`.
    #[allow(unsafe_code)]
    unsafe {
        S::dispatch(AddRuns { at, columns, ld, overwrites, x });
    }
}

struct AddRuns<'a, S> {
    at: PlaneTaps<'a>,
    columns: &'a [S],
    ld: usize,
    overwrites: bool,
    x: &'a mut [S],
}

#[allow(unsafe_code)]
impl<S: SimdScalar> SimdKernel<S> for AddRuns<'_, S> {
    #[inline(always)]
    unsafe fn run<L: SimdVector<Scalar = S>>(self) {
        // SAFETY: handed on.
        unsafe {
            if self.at.pitch <= L::WIDTH {
                self.add::<L, 1>();
            } else {
                self.add::<L, 2>();
            }
        }
    }
}

/// What a tap adds to a block of a row.
#[derive(Clone, Copy)]
struct Run<M, const VECTORS: usize> {
    /// From where positions' row begins to the block's first element; wraps.
    shift: usize,
    /// Elements of the block that the tap sees.
    there: [M; VECTORS],
}

impl<M: Copy, const VECTORS: usize> Run<M, VECTORS> {
    /// Of no elements.
    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn none<L: SimdVector<Mask = M>>() -> Self {
        // SAFETY: the caller's: the instructions are there.
        Self { shift: 0, there: [unsafe { L::mask(0, 0) }; VECTORS] }
    }

    #[allow(unsafe_code)]
    #[inline(always)]
    unsafe fn new<L: SimdVector<Mask = M>>(reach: &TapRange, block: usize) -> Self {
        // SAFETY: the caller's: the instructions are there.
        let mut run = unsafe { Self::none::<L>() };
        run.shift = reach.start.wrapping_sub(reach.first).wrapping_add(block);
        for (v, there) in run.there.iter_mut().enumerate() {
            let skip = block + v * L::WIDTH;
            let start = reach.first.saturating_sub(skip).min(L::WIDTH);
            let end = reach.first + (reach.end - reach.start);
            let end = end.saturating_sub(skip).clamp(start, L::WIDTH);
            // SAFETY: as above.
            *there = unsafe { L::mask(start, end) };
        }
        run
    }
}

#[allow(unsafe_code)]
impl<S: SimdScalar> AddRuns<'_, S> {
    /// In blocks of `VECTORS` vectors.
    #[inline(always)]
    unsafe fn add<L: SimdVector<Scalar = S>, const VECTORS: usize>(mut self) {
        for block in (0..self.at.pitch).step_by(VECTORS * L::WIDTH) {
            for (part, along) in self.at.along.chunks(TAPS).enumerate() {
                // SAFETY: handed on.
                unsafe {
                    let mut runs = [Run::<L::Mask, VECTORS>::none::<L>(); TAPS];
                    for (run, reach) in runs.iter_mut().zip(along) {
                        *run = Run::new::<L>(reach, block);
                    }
                    let all = &runs[..along.len()];
                    // Of usual kernels, masks stay in registers.
                    match (all.first_chunk::<3>(), all.first_chunk::<5>(), all.len()) {
                        (Some(runs), _, 3) => self.add_block::<L, VECTORS>(block, part, runs),
                        (_, Some(runs), 5) => self.add_block::<L, VECTORS>(block, part, runs),
                        _ => self.add_block::<L, VECTORS>(block, part, all),
                    }
                }
            }
        }
    }

    /// A block of every row: some of the taps along the last axis.
    #[inline(always)]
    unsafe fn add_block<L: SimdVector<Scalar = S>, const VECTORS: usize>(
        &mut self,
        block: usize,
        part: usize,
        runs: &[Run<L::Mask, VECTORS>],
    ) {
        let (at, ld) = (self.at, self.ld);
        let columns = self.columns.as_ptr().wrapping_add(at.position + part * TAPS * ld);
        for row in 0..at.rows {
            // SAFETY: what is loaded of the columns is there by its mask; of `x`, no more of a row
            // than there is.
            unsafe {
                let left = at.pitch - block;
                let x = self.x.as_mut_ptr().add(row * at.pitch + block);
                let mut sums = [L::splat(S::zero()); VECTORS];
                if !self.overwrites || part > 0 {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        let there = left.saturating_sub(v * L::WIDTH).min(L::WIDTH);
                        *sum = L::load_first(x.wrapping_add(v * L::WIDTH), there);
                    }
                }
                for (tap, down) in at.down.iter().enumerate() {
                    let Some(position) = down.position_of(row) else { continue };
                    let from = tap * at.along.len() * ld + position * at.width;
                    let sums_of_tap = sums_of::<L, VECTORS>(columns.wrapping_add(from), ld, runs);
                    for (sum, of_tap) in sums.iter_mut().zip(sums_of_tap) {
                        *sum = sum.add(of_tap);
                    }
                }
                for (v, sum) in sums.into_iter().enumerate() {
                    let there = left.saturating_sub(v * L::WIDTH).min(L::WIDTH);
                    sum.store_first(x.wrapping_add(v * L::WIDTH), there);
                }
            }
        }
    }
}

/// Sums over taps of one row, by themselves: they need not wait for those of another.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn sums_of<L: SimdVector, const VECTORS: usize>(
    mut from: *const L::Scalar,
    ld: usize,
    runs: &[Run<L::Mask, VECTORS>],
) -> [L; VECTORS] {
    // SAFETY: the caller's: what masks mean of the columns is there.
    unsafe {
        let mut sums = [L::splat(L::Scalar::zero()); VECTORS];
        for (i, run) in runs.iter().enumerate() {
            let from_run = from.wrapping_add(run.shift);
            for (v, sum) in sums.iter_mut().enumerate() {
                let x = L::load_masked(from_run.wrapping_add(v * L::WIDTH), run.there[v]);
                *sum = if i == 0 { x } else { sum.add(x) };
            }
            from = from.wrapping_add(ld);
        }
        sums
    }
}

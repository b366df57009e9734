//! col2im: sums all copies of each image element in an im2col matrix.
//!
//! If the stride along the last axis is 1, a vector of image elements stays in registers while all
//! taps along that axis are added. Adding one tap after another to the image in memory would be
//! several times slower, because each load would wait for the store of the previous tap. If the
//! stride along the last axis exceeds 1, a portable loop adds one tap after another.

use crate::cast::{cast_slice, cast_slice_mut};
use crate::{
    element::{DType, Element},
    error::Result,
    host::{
        cache::scratch::with_scratch,
        nn::tap_range::{PARALLEL_MIN_LEN, PlaneTaps, TapRange, WindowTaps},
        simd::{
            accumulator::{accumulator_len, overwrite_widened, widened},
            dispatch::{SimdKernel, SimdScalar},
            vector::SimdVector,
            vectorized,
        },
        threads::Workers,
    },
    op::Window,
};
use num_traits::{Float, Zero};

/// Largest number of taps along the last axis whose im2col elements the kernel adds to a block of
/// image elements at a time.
const MAX_TAPS: usize = 16;

/// Overwrites each element of the image `x` with the sum of its copies in the im2col matrix
/// `columns`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if the length of `x` or `columns` differs from the
/// number of elements of the image or of the matrix.
pub(crate) fn col2im<T: Element>(
    workers: &Workers,
    window: &Window,
    columns: &[T],
    x: &mut [T],
) -> Result<()> {
    window.check("col2im", ("x", x.len()), ("columns", columns.len()))?;
    if x.is_empty() {
        return Ok(());
    }
    let (window_taps, channel_len) = (WindowTaps::of(window), window.plane_len());
    let (taps, positions) = (window.taps(), window.positions());
    let channels = if columns.len() < PARALLEL_MIN_LEN { window.channels() } else { 1 };
    workers.for_each_chunk(x, channels * channel_len, |i, x| {
        let columns = &columns[i * channels * taps * positions..];
        let columns = &columns[..x.len() / channel_len * taps * positions];
        with_scratch(accumulator_len::<T>(columns.len()), |columns_scratch| {
            let columns = widened(columns, columns_scratch);
            with_scratch(accumulator_len::<T>(x.len()), |x_scratch| {
                overwrite_widened(x, x_scratch, |x| {
                    col2im_accumulate(&Workers::sequential(), &window_taps, columns, positions, x);
                });
            });
        });
    });
    Ok(())
}

/// Runs [`col2im`] for whole channels of an im2col matrix with leading dimension `ld`. Overwrites
/// `x`.
pub(crate) fn col2im_accumulate<A: Element + Float>(
    workers: &Workers,
    window_taps: &WindowTaps,
    columns: &[A],
    ld: usize,
    x: &mut [A],
) {
    let (taps, channel_len) = (window_taps.taps(), window_taps.channel_len());
    if channel_len == 0 || window_taps.positions() == 0 {
        return x.fill(A::zero());
    }
    let channels = if columns.len() < PARALLEL_MIN_LEN { x.len() / channel_len } else { 1 };
    workers.for_each_chunk(x, channels * channel_len, |i, x| {
        let columns = columns[i * channels * taps * ld..].chunks(taps * ld);
        let overwrites = window_taps.is_2d() && window_taps.has_unit_stride();
        if !overwrites {
            x.fill(A::zero());
        }
        for (x, columns) in x.chunks_exact_mut(channel_len).zip(columns) {
            window_taps.visit_planes(|plane| {
                let Some(image) = plane.image else { return };
                let x = &mut x[image..][..plane.rows * plane.row_stride];
                match A::DTYPE {
                    _ if !window_taps.has_unit_stride() => add_taps(plane, columns, ld, x),
                    DType::F64 => add_rows::<A, f64>(plane, columns, ld, overwrites, x),
                    _ => add_rows::<A, f32>(plane, columns, ld, overwrites, x),
                }
            });
        }
    });
}

/// Adds the im2col elements of one tap after another to the image plane `x`, for any stride.
fn add_taps<A: Element + Float>(plane: PlaneTaps, columns: &[A], ld: usize, x: &mut [A]) {
    vectorized(
        #[inline(always)]
        |_| {
            plane.visit(
                #[inline(always)]
                |tap, rows, range| scatter_tap(&plane, rows, range, &columns[tap * ld..], x),
            );
        },
    );
}

/// Adds the im2col elements of one tap, at all positions of a plane, to the image plane `x`.
#[inline(always)]
fn scatter_tap<A: Element + Float>(
    plane: &PlaneTaps,
    rows: TapRange,
    columns: TapRange,
    y: &[A],
    x: &mut [A],
) {
    let (width, len) = (plane.width, columns.end - columns.start);
    if rows.start == rows.end || len == 0 {
        return;
    }
    let y = &y[plane.position..][..plane.height * width];
    let x = &mut x[rows.first * plane.row_stride + columns.first..];
    let y = &y[rows.start * width + columns.start..rows.end * width];
    let step = rows.stride * plane.row_stride;
    for (i, y) in y.chunks(width).enumerate() {
        let x = x[i * step..].iter_mut().step_by(columns.stride);
        x.zip(&y[..len]).for_each(|(x, &y)| *x = *x + y);
    }
}

/// Adds the im2col elements of all taps of `plane` to the image plane `x`, row by row, for stride 1
/// along the last axis. Overwrites `x` if `overwrites` is true. `A` and `S` must be the same type.
fn add_rows<A: Element, S: SimdScalar>(
    plane: PlaneTaps,
    columns: &[A],
    ld: usize,
    overwrites: bool,
    x: &mut [A],
) {
    let taps = plane.row_taps.len() * plane.column_taps.len();
    let end = (plane.tap + taps - 1) * ld + plane.position + plane.height * plane.width;
    assert!(end <= columns.len(), "col2im: columns has {} elements, expected {end}", columns.len());
    assert!(plane.rows * plane.row_stride <= x.len(), "col2im: x is shorter than an image plane");
    let (columns, x) = (cast_slice(columns), cast_slice_mut(x));
    // SAFETY: the assertions show that `columns` holds the elements of all taps at all positions,
    // and that `x` holds all image rows.
    unsafe { S::dispatch(AddRows { plane, columns, ld, overwrites, x }) }
}

struct AddRows<'a, S> {
    plane: PlaneTaps<'a>,
    columns: &'a [S],
    ld: usize,
    overwrites: bool,
    x: &'a mut [S],
}

impl<S: SimdScalar> SimdKernel<S> for AddRows<'_, S> {
    /// # Safety
    /// - The processor supports the vector type `L`.
    /// - For each tap, `columns` holds a row with an element for every position of the plane. The
    ///   rows are `ld` elements apart.
    /// - `x` holds the rows of the image plane.
    #[inline(always)]
    unsafe fn run<L: SimdVector<Scalar = S>>(self) {
        // SAFETY: `add` has the same preconditions as `run`.
        unsafe {
            if self.plane.row_stride <= L::WIDTH {
                self.add::<L, 1>();
            } else {
                self.add::<L, 2>();
            }
        }
    }
}

/// Location and masks of the im2col elements that one tap along the last axis adds to a block of an
/// image row.
#[derive(Clone, Copy)]
struct BlockTap<M, const VECTORS: usize> {
    /// Offset, from the start of a row of positions, of the im2col element that is added to the
    /// block's first image element. A negative offset wraps around; the masks then exclude the
    /// elements before the row.
    offset: usize,
    /// Masks that select the elements of the block to which the tap contributes.
    masks: [M; VECTORS],
}

impl<M: Copy, const VECTORS: usize> BlockTap<M, VECTORS> {
    /// Returns the `BlockTap` of the tap with position range `range`, for the block that starts at
    /// element `block` of an image row.
    ///
    /// # Safety
    /// The processor supports the vector type `L`.
    #[inline(always)]
    unsafe fn new<L: SimdVector<Mask = M>>(range: &TapRange, block: usize) -> Self {
        // SAFETY: the processor supports the vector type `L`.
        let mut masks = [unsafe { L::mask(0, 0) }; VECTORS];
        for (v, mask) in masks.iter_mut().enumerate() {
            let vector_start = block + v * L::WIDTH;
            let start = range.first.saturating_sub(vector_start).min(L::WIDTH);
            let end = range.first + (range.end - range.start);
            let end = end.saturating_sub(vector_start).clamp(start, L::WIDTH);
            // SAFETY: the processor supports the vector type `L`, and `start <= end <= L::WIDTH`.
            *mask = unsafe { L::mask(start, end) };
        }
        Self { offset: range.start.wrapping_sub(range.first).wrapping_add(block), masks }
    }
}

impl<S: SimdScalar> AddRows<'_, S> {
    /// Adds the im2col elements of all taps to the image plane, in blocks of `VECTORS` vectors of
    /// every row.
    ///
    /// # Safety
    /// The requirements of [`SimdKernel::run`] for this type hold.
    #[inline(always)]
    unsafe fn add<L: SimdVector<Scalar = S>, const VECTORS: usize>(mut self) {
        let no_positions = TapRange { start: 0, end: 0, first: 0, stride: 1 };
        for block in (0..self.plane.row_stride).step_by(VECTORS * L::WIDTH) {
            for (part, ranges) in self.plane.column_taps.chunks(MAX_TAPS).enumerate() {
                // SAFETY: the processor supports the vector type `L`. `block` is less than the
                // length of an image row, and `taps` are the block's taps from tap index
                // `part · MAX_TAPS` on, as `add_block` requires.
                unsafe {
                    let mut taps =
                        [BlockTap::<L::Mask, VECTORS>::new::<L>(&no_positions, 0); MAX_TAPS];
                    for (tap, range) in taps.iter_mut().zip(ranges) {
                        *tap = BlockTap::new::<L>(range, block);
                    }
                    let taps = &taps[..ranges.len()];
                    // A constant number of taps lets the compiler keep the masks in registers.
                    match (taps.first_chunk::<3>(), taps.first_chunk::<5>(), taps.len()) {
                        (Some(taps), _, 3) => self.add_block::<L, VECTORS>(block, part, taps),
                        (_, Some(taps), 5) => self.add_block::<L, VECTORS>(block, part, taps),
                        _ => self.add_block::<L, VECTORS>(block, part, taps),
                    }
                }
            }
        }
    }

    /// Adds the im2col elements of `taps` to one block of every image row. The block starts at
    /// element `block` of the row.
    ///
    /// # Safety
    /// - The requirements of [`SimdKernel::run`] for this type hold.
    /// - `block` is less than the length of an image row.
    /// - `taps` are the block's taps along the last axis from tap index `part · MAX_TAPS` on.
    #[inline(always)]
    unsafe fn add_block<L: SimdVector<Scalar = S>, const VECTORS: usize>(
        &mut self,
        block: usize,
        part: usize,
        taps: &[BlockTap<L::Mask, VECTORS>],
    ) {
        let (plane, ld) = (self.plane, self.ld);
        let first_tap = plane.tap + part * MAX_TAPS;
        let columns = self.columns.as_ptr().wrapping_add(plane.position + first_tap * ld);
        for row in 0..plane.rows {
            // SAFETY: `x` holds `plane.rows` image rows, and `count` limits loads and stores to one
            // row. `position_of` returns a position of the plane, so `sum_taps` starts at a row of
            // positions, and `columns` holds the elements of all `taps` at these positions.
            unsafe {
                let rest_len = plane.row_stride - block;
                let x = self.x.as_mut_ptr().add(row * plane.row_stride + block);
                let mut sums = [L::splat(S::zero()); VECTORS];
                if !self.overwrites || part > 0 {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        let count = rest_len.saturating_sub(v * L::WIDTH).min(L::WIDTH);
                        *sum = L::load_first(x.wrapping_add(v * L::WIDTH), count);
                    }
                }
                for (tap, range) in plane.row_taps.iter().enumerate() {
                    let Some(position) = range.position_of(row) else { continue };
                    let offset = tap * plane.column_taps.len() * ld + position * plane.width;
                    let tap_sums = sum_taps::<L, VECTORS>(columns.wrapping_add(offset), ld, taps);
                    for (sum, tap_sum) in sums.iter_mut().zip(tap_sums) {
                        *sum = sum.add(tap_sum);
                    }
                }
                for (v, sum) in sums.into_iter().enumerate() {
                    let count = rest_len.saturating_sub(v * L::WIDTH).min(L::WIDTH);
                    sum.store_first(x.wrapping_add(v * L::WIDTH), count);
                }
            }
        }
    }
}

/// Returns, for each image element of a block, the sum of the im2col elements of all taps in one
/// row of the window. Separate sums for each window row let the additions of different rows
/// overlap.
///
/// # Safety
/// - The processor supports the vector type `L`.
/// - The masked elements of tap `i` are readable from `columns + i·ld + taps[i].offset` on.
#[inline(always)]
unsafe fn sum_taps<L: SimdVector, const VECTORS: usize>(
    mut columns: *const L::Scalar,
    ld: usize,
    taps: &[BlockTap<L::Mask, VECTORS>],
) -> [L; VECTORS] {
    // SAFETY: the processor supports the vector type `L`, and loads read only masked elements,
    // which are readable.
    unsafe {
        let mut sums = [L::splat(L::Scalar::zero()); VECTORS];
        for (i, tap) in taps.iter().enumerate() {
            let block = columns.wrapping_add(tap.offset);
            for (v, sum) in sums.iter_mut().enumerate() {
                let x = L::load_masked(block.wrapping_add(v * L::WIDTH), tap.masks[v]);
                *sum = if i == 0 { x } else { sum.add(x) };
            }
            columns = columns.wrapping_add(ld);
        }
        sums
    }
}

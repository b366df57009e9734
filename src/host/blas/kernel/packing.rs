//! Packing: copies of `op(A)` and `op(B)` in micro-panels, in the order in which the micro-kernel
//! reads them.
//!
//! A panel consists of micro-panels of MR rows of `op(A)`, or NR columns of `op(B)`. A micro-panel
//! holds the MR or NR elements of one step along k contiguously, followed by the elements of the
//! next step. Zeros fill the missing rows or columns of the last micro-panel. Packing widens 16-bit
//! elements to `f32`.

use crate::{
    element::Element,
    host::{
        blas::kernel::blocking::panel_len,
        cache::cache_line::{CACHE_LINE, prefetch},
        simd::{
            accumulator::is_wide,
            dispatch::{SimdKernel, SimdScalar},
            vector::{MAX_LANES, SimdVector},
        },
    },
    op::Transpose,
};
use num_traits::Zero;
use std::ops::Range;

/// Prefetch distance, in rows, for packing by copying. Packing reads too few elements of each row
/// for the hardware prefetcher to detect the access pattern.
const PACK_PREFETCH_ROWS: usize = 6;

/// Number of micro-panels that packing by copying writes at a time. The steps of different
/// micro-panels are in different cache lines. These lines can be a multiple of 4 KiB apart, and
/// then fall in the same set of the L1 cache, which has at least 8 ways on processors with AVX2.
/// The lines of long micro-panels are also on different pages, so each line needs another entry of
/// the TLB.
const COPIED_MICRO_PANELS: usize = 8;

/// Prefetch distance, in bytes, for packing by transposition. Packing a micro-panel reads more rows
/// at a time than the hardware prefetcher tracks.
pub(crate) const PACK_PREFETCH_BYTES: usize = 256;

/// Operand `op(A)` or `op(B)` of a GEMM, as the source of the elements that packing copies into
/// panels.
///
/// `mn` is a range of rows of `op(A)` or of columns of `op(B)`. `k` is a range of steps along k,
/// and `panel_dim` is MR or NR.
pub(crate) trait PackSource<S>: Sync {
    /// Packs the rows or columns `mn` at the steps `k` into micro-panels of `panel_dim` rows or
    /// columns. Implementations may overwrite elements of `panel` past the micro-panels.
    ///
    /// # Panics
    /// Panics if the pack source is too short, or `panel` is shorter than [`panel_len`].
    fn pack(&self, mn: Range<usize>, k: Range<usize>, panel_dim: usize, panel: &mut [S]);
}

/// [`PackSource`] that is a row-major matrix in memory.
pub(crate) struct StridedSource<'a, T> {
    x: &'a [T],
    ld: usize,
    /// Whether the elements of the matrix are contiguous along k, rather than along m or n.
    k_contiguous: bool,
}

impl<'a, T> StridedSource<'a, T> {
    /// Returns `op(A)` as a source for packing.
    pub(crate) fn for_a(trans: Transpose, x: &'a [T], ld: usize) -> Self {
        Self { x, ld, k_contiguous: trans == Transpose::No }
    }

    /// Returns the pack source of `op(B)`.
    pub(crate) fn for_b(trans: Transpose, x: &'a [T], ld: usize) -> Self {
        Self { x, ld, k_contiguous: trans == Transpose::Yes }
    }
}

impl<T: Element<Acc = S>, S: SimdScalar> PackSource<S> for StridedSource<'_, T> {
    fn pack(&self, mn: Range<usize>, k: Range<usize>, panel_dim: usize, panel: &mut [S]) {
        if mn.is_empty() || k.is_empty() {
            return;
        }
        let (rows, columns) = if self.k_contiguous { (&mn, &k) } else { (&k, &mn) };
        let (len, expected) = (self.x.len(), (rows.end - 1) * self.ld + columns.end);
        assert!(len >= expected, "pack source: {len} elements, expected {expected}");
        let x = &self.x[rows.start * self.ld + columns.start..];
        let (ld, k_contiguous, mn, k) = (self.ld, self.k_contiguous, mn.len(), k.len());
        check_panel_len(panel, mn, k, panel_dim);
        // SAFETY: the assertion shows that `x` holds all rows and columns, and `check_panel_len`
        // shows that `panel` holds the micro-panels and the elements written past them.
        unsafe { S::dispatch(StridedPack { x, ld, k_contiguous, mn, k, panel_dim, panel }) };
    }
}

/// Part of a [`PackSource`] that one task packs: the rows of `op(A)`, or the columns of `op(B)`,
/// from index `first` of `source` on.
pub(crate) struct SourceBlock<'a, S> {
    pub(crate) source: &'a dyn PackSource<S>,
    pub(crate) first: usize,
}

impl<S> PackSource<S> for SourceBlock<'_, S> {
    fn pack(&self, mn: Range<usize>, k: Range<usize>, panel_dim: usize, panel: &mut [S]) {
        self.source.pack(mn.start + self.first..mn.end + self.first, k, panel_dim, panel);
    }
}

/// Panics if `panel` has fewer than [`panel_len`] elements.
pub(crate) fn check_panel_len<S>(panel: &[S], mn: usize, k: usize, panel_dim: usize) {
    let (len, expected) = (panel.len(), panel_len(mn, k, panel_dim));
    assert!(len >= expected, "packed panel: {len} elements, expected {expected}");
}

/// Kernel that packs the elements of a [`StridedSource`].
///
/// [`SimdKernel::run`] is safe if `x` holds the `mn`×`k` elements, in rows `ld` elements apart, and
/// [`check_panel_len`] has passed.
struct StridedPack<'a, T, S> {
    x: &'a [T],
    ld: usize,
    k_contiguous: bool,
    mn: usize,
    k: usize,
    panel_dim: usize,
    panel: &'a mut [S],
}

impl<T: Element<Acc = S>, S: SimdScalar> SimdKernel<S> for StridedPack<'_, T, S> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = S>>(self) {
        // SAFETY: the caller meets the requirements of `transpose` and `copy`.
        unsafe { if self.k_contiguous { self.transpose::<V>() } else { self.copy::<V>() } }
    }
}

impl<T: Element<Acc = S>, S: SimdScalar> StridedPack<'_, T, S> {
    /// Packs a matrix whose rows are contiguous along m or n, by copying.
    ///
    /// # Safety
    /// The requirements of [`StridedPack`] hold, and the processor supports the vector type `V`.
    #[inline(always)]
    unsafe fn copy<V: SimdVector<Scalar = S>>(self) {
        let Self { x, ld, mn, panel_dim, k, panel, .. } = self;
        let (x, panel) = (x.as_ptr(), panel.as_mut_ptr());
        let whole = mn / panel_dim * panel_dim;
        for first in (0..whole).step_by(COPIED_MICRO_PANELS * panel_dim) {
            let count = COPIED_MICRO_PANELS.min((whole - first) / panel_dim);
            let (x, panel) = (x.wrapping_add(first), panel.wrapping_add(first * k));
            // SAFETY: `x` holds the columns of `count` micro-panels from `first` on, and `panel`
            // holds these micro-panels.
            unsafe {
                if const { is_wide::<T>() } && panel_dim == 4 {
                    copy_micro_panels_of_4::<S>((x.cast(), ld), k, panel, count);
                } else if panel_dim < V::WIDTH {
                    copy_micro_panels::<T, V, false>((x, ld), k, (panel, panel_dim), count);
                } else {
                    copy_micro_panels::<T, V, true>((x, ld), k, (panel, panel_dim), count);
                }
            }
        }
        if whole < mn {
            for i in 0..k {
                let (x, step) = (x.wrapping_add(i * ld + whole), whole * k + i * panel_dim);
                for j in (0..panel_dim).step_by(V::WIDTH) {
                    // SAFETY: loads end at element `mn` of a source row, and stores end at element
                    // `panel_dim` of a step.
                    unsafe {
                        let count = V::WIDTH.min((mn - whole).saturating_sub(j));
                        let vector = V::load_as(x.wrapping_add(j), count);
                        if panel_dim - j >= V::WIDTH {
                            vector.store(panel.add(step + j));
                        } else {
                            vector.store_first(panel.add(step + j), panel_dim - j);
                        }
                    }
                }
            }
        }
    }

    /// Packs a matrix whose rows are contiguous along k, by transposing.
    ///
    /// # Safety
    /// The requirements of [`StridedPack`] hold, and the processor supports the vector type `V`.
    #[inline(always)]
    unsafe fn transpose<V: SimdVector<Scalar = S>>(self) {
        let Self { x, ld, mn, panel_dim, k, panel, .. } = self;
        let (x, panel) = (x.as_ptr(), panel.as_mut_ptr());
        for first in (0..mn).step_by(panel_dim) {
            let rows = panel_dim.min(mn - first);
            // If elements need no widening, transpose square blocks of `WIDTH`×`WIDTH` elements.
            // Zeros replace missing rows.
            let square_rows =
                if const { is_wide::<T>() } { panel_dim / V::WIDTH * V::WIDTH } else { 0 };
            for start in (0..k).step_by(V::WIDTH) {
                let len = V::WIDTH.min(k - start);
                // SAFETY: the rows from `first` on hold `len` elements from `start` on. The panel
                // can hold `len` steps and the elements that are written past the last step.
                unsafe {
                    let steps = panel.add(first * k + start * panel_dim);
                    pack_transposed::<V>(
                        #[inline(always)]
                        |i| {
                            let x = x.add((first + i) * ld + start);
                            V::prefetch(
                                x.wrapping_add(PACK_PREFETCH_BYTES / size_of::<T>()).cast(),
                            );
                            // Load a constant number of elements for a whole vector, because such a
                            // load needs no mask.
                            match len == V::WIDTH {
                                true => V::load_as(x, V::WIDTH),
                                false => V::load_as(x, len),
                            }
                        },
                        if len == V::WIDTH { square_rows } else { 0 },
                        (rows, len),
                        (steps, panel_dim),
                    );
                }
            }
            for square in (0..square_rows).step_by(V::WIDTH) {
                // SAFETY: `T` and `S` are the same type, because only elements that need no
                // widening are transposed in square blocks. Each source points to `WIDTH`
                // elements: of a row from `start` on, or zeros. The panel can hold `WIDTH` steps
                // with one element of every source.
                unsafe {
                    let zeros = [S::zero(); MAX_LANES];
                    for start in (0..k / V::WIDTH * V::WIDTH).step_by(V::WIDTH) {
                        let mut sources = [zeros.as_ptr(); MAX_LANES];
                        for (i, source) in sources.iter_mut().enumerate().take(V::WIDTH) {
                            let row = square + i;
                            if row < rows {
                                *source = x.add((first + row) * ld + start).cast();
                                V::prefetch(
                                    source.wrapping_add(PACK_PREFETCH_BYTES / size_of::<S>()),
                                );
                            }
                        }
                        let steps = panel.add(first * k + start * panel_dim);
                        V::transpose(sources, steps.add(square), panel_dim);
                    }
                }
            }
        }
    }
}

/// Copies `k` rows of a matrix with rows `ld` elements apart into `count` micro-panels of
/// `panel_dim` columns. `WHOLE_VECTORS` says whether `panel_dim` is at least the vector width.
///
/// # Safety
/// The processor supports the vector type `V`. `x` is valid for reads of `k` rows of
/// `count`·`panel_dim` elements, and `panel` for writes of the micro-panels.
#[inline(always)]
unsafe fn copy_micro_panels<T, V, const WHOLE_VECTORS: bool>(
    (x, ld): (*const T, usize),
    k: usize,
    (panel, panel_dim): (*mut V::Scalar, usize),
    count: usize,
) where
    T: Element<Acc = V::Scalar>,
    V: SimdVector,
{
    // SAFETY: the mask selects only the elements of a step after its last whole vector, so no load
    // and no store exceeds the `panel_dim` elements of a step.
    unsafe {
        let vectors = if WHOLE_VECTORS { panel_dim / V::WIDTH } else { 0 };
        let tail_start = vectors * V::WIDTH;
        let tail = panel_dim - tail_start;
        let tail_mask = V::mask(0, tail);
        for i in 0..k {
            let (mut x, mut step) = (x.add(i * ld), panel.add(i * panel_dim));
            for _ in 0..count {
                for j in 0..vectors {
                    let x = x.wrapping_add(j * V::WIDTH);
                    V::prefetch(x.wrapping_add(PACK_PREFETCH_ROWS * ld).cast());
                    V::load_as(x, V::WIDTH).store(step.add(j * V::WIDTH));
                }
                if tail > 0 {
                    let x = x.wrapping_add(tail_start);
                    V::prefetch(x.wrapping_add(PACK_PREFETCH_ROWS * ld).cast());
                    let vector = if const { is_wide::<T>() } {
                        V::load_masked(x.cast(), tail_mask)
                    } else {
                        V::load_as(x, tail)
                    };
                    vector.store_masked(step.add(tail_start), tail_mask);
                }
                x = x.wrapping_add(panel_dim);
                step = step.wrapping_add(k * panel_dim);
            }
        }
    }
}

/// Like [`copy_micro_panels`], for micro-panels of four columns that need no widening. With
/// masked stores of AVX2, which take many cycles on Zen 4, such a copy would be slower.
///
/// # Safety
/// The requirements of [`copy_micro_panels`] hold.
#[inline(always)]
unsafe fn copy_micro_panels_of_4<S: SimdScalar>(
    (x, ld): (*const S, usize),
    k: usize,
    panel: *mut S,
    count: usize,
) {
    for i in 0..k {
        // SAFETY: each row of `x` has four elements for each of the `count` micro-panels, and each
        // micro-panel has `k` steps of four elements.
        unsafe {
            let x = x.add(i * ld);
            for offset in (0..4 * count).step_by(CACHE_LINE / size_of::<S>()) {
                prefetch(x.wrapping_add(PACK_PREFETCH_ROWS * ld + offset));
            }
            for j in 0..count {
                let step = panel.add(4 * (j * k + i));
                step.cast::<[S; 4]>().write(x.add(4 * j).cast::<[S; 4]>().read());
            }
        }
    }
}

/// Transposes rows `first..panel_dim` into `len` steps of a micro-panel. `load(i)` returns `len`
/// elements of row `i < rows`. Rows `rows..panel_dim` are filled with zeros.
///
/// # Safety
/// The processor supports the vector type `V`. `steps` is valid for writes of `len` + 3 steps of
/// `panel_dim` elements, plus three elements.
#[inline(always)]
pub(crate) unsafe fn pack_transposed<V: SimdVector>(
    load: impl Fn(usize) -> V,
    first: usize,
    (rows, len): (usize, usize),
    (steps, panel_dim): (*mut V::Scalar, usize),
) {
    // Store the last rows first, because the last group of four rows may extend beyond `panel_dim`
    // into the next step. The later stores of the first rows overwrite the excess elements with the
    // right values.
    for row in (first..panel_dim).step_by(4).rev() {
        // SAFETY: a store covers at most `len` + 3 steps, and the last four rows end at most three
        // elements beyond `panel_dim`. The caller guarantees that three steps and three elements
        // past the end of `steps` are valid for writes.
        unsafe {
            let mut vectors = [V::splat(V::Scalar::zero()); 4];
            for (i, vector) in vectors.iter_mut().enumerate() {
                if row + i < rows {
                    *vector = load(row + i);
                }
            }
            V::store_transposed4(vectors, len, steps.add(row), panel_dim);
        }
    }
}

//! Operands of products by lines, wherever these lie: what packed panels are made of.

use crate::{
    element::Element,
    host::{
        blas::gemm::dispatch::{SimdKernel, SimdScalar},
        simd::{
            accumulator::is_wide,
            vector::{MAX_LANES, SimdVector},
        },
    },
    op::Transpose,
};
use num_traits::Zero;
use std::ops::Range;

/// Rows of `op(A)`, or columns of `op(B)`: lines of as many elements as a product has terms.
pub(crate) trait PackSource<S>: Sync {
    /// Copies `terms` of `lines` into panels of `size` lines, in which the elements of all lines
    /// at one place lie side by side; zeros fill the last panel. What `panels` has room for beyond
    /// it may be written too: [`BEYOND`](super::packed::BEYOND) places.
    fn pack(&self, lines: Range<usize>, terms: Range<usize>, size: usize, panels: &mut [S]);
}

/// A matrix, row by row; panels hold its elements widened, where these are narrower.
pub(crate) struct StridedSource<'a, T> {
    x: &'a [T],
    ld: usize,
    /// Whether a line is a row, rather than a column.
    along: bool,
}

impl<'a, T> StridedSource<'a, T> {
    /// Rows of `op(A)`.
    pub(crate) fn rows(trans: Transpose, x: &'a [T], ld: usize) -> Self {
        Self { x, ld, along: trans == Transpose::No }
    }

    /// Columns of `op(B)`.
    pub(crate) fn columns(trans: Transpose, x: &'a [T], ld: usize) -> Self {
        Self { x, ld, along: trans == Transpose::Yes }
    }
}

impl<T: Element<Acc = S>, S: SimdScalar> PackSource<S> for StridedSource<'_, T> {
    fn pack(&self, lines: Range<usize>, terms: Range<usize>, size: usize, panels: &mut [S]) {
        if lines.is_empty() || terms.is_empty() {
            return;
        }
        let (rows, columns) = if self.along { (&lines, &terms) } else { (&terms, &lines) };
        assert!((rows.end - 1) * self.ld + columns.end <= self.x.len(), "{rows:?}×{columns:?}");
        let x = &self.x[rows.start * self.ld + columns.start..];
        let (count, k) = (lines.len(), terms.len());
        check_panel_len(panels, count, k, size);
        // SAFETY: all of these rows and columns can be read, and the panels hold what is written.
        #[allow(unsafe_code)]
        unsafe {
            if self.along {
                S::dispatch(PackTransposed { x, ld: self.ld, count, size, k, panels });
            } else {
                S::dispatch(PackContiguous { x, ld: self.ld, count, size, k, panels });
            }
        }
    }
}

/// The lines of a product's part.
pub(crate) struct SourceBlock<'a, S> {
    pub(crate) lines: &'a dyn PackSource<S>,
    pub(crate) first: usize,
}

impl<S> PackSource<S> for SourceBlock<'_, S> {
    fn pack(&self, lines: Range<usize>, terms: Range<usize>, size: usize, panels: &mut [S]) {
        self.lines.pack(lines.start + self.first..lines.end + self.first, terms, size, panels);
    }
}

/// That panels hold `count` lines, and what is written beyond them.
pub(crate) fn check_panel_len<S>(panels: &[S], count: usize, k: usize, size: usize) {
    let places =
        count.div_ceil(size.max(1)) * k + crate::host::blas::kernel::macro_kernel::PANEL_SLACK;
    assert!(places * size <= panels.len(), "{places} places of {size} in {}", panels.len());
}

/// Rows asked for before they are needed: what is packed of a row ends before processors have seen
/// where it leads.
const PACK_PREFETCH_ROWS: usize = 6;

/// Packs lines that lie side by side: an element of each, then the next `ld` further on.
struct PackContiguous<'a, T, S> {
    x: &'a [T],
    ld: usize,
    count: usize,
    size: usize,
    k: usize,
    panels: &'a mut [S],
}

#[allow(unsafe_code)]
impl<T: Element<Acc = S>, S: SimdScalar> SimdKernel<S> for PackContiguous<'_, T, S> {
    #[inline(always)]
    unsafe fn run<L: SimdVector<Scalar = S>>(self) {
        let Self { x, ld, count, size, k, panels } = self;
        let (x, panels) = (x.as_ptr(), panels.as_mut_ptr());
        // SAFETY: the caller has the instructions.
        let (whole, part) = (size / L::WIDTH, unsafe { L::mask(0, size % L::WIDTH) });
        // Row by row, as memory likes to be read.
        for i in 0..k {
            let x = x.wrapping_add(i * ld);
            for line in (0..count).step_by(size) {
                let (x, panel) = (x.wrapping_add(line), panels.wrapping_add(line * k + i * size));
                // SAFETY: of the vectors only the lines that are there are read, and the panels
                // hold all that is written.
                unsafe {
                    if count - line < size {
                        for j in (0..size).step_by(L::WIDTH) {
                            let there = L::WIDTH.min((count - line).saturating_sub(j));
                            let vector = L::load_as(x.wrapping_add(j), there);
                            vector.store_first(panel.add(j), L::WIDTH.min(size - j));
                        }
                        continue;
                    }
                    for j in 0..whole {
                        let x = x.wrapping_add(j * L::WIDTH);
                        L::prefetch(x.wrapping_add(PACK_PREFETCH_ROWS * ld).cast());
                        L::load_as(x, L::WIDTH).store(panel.add(j * L::WIDTH));
                    }
                    if whole * L::WIDTH < size {
                        let x = x.wrapping_add(whole * L::WIDTH);
                        L::prefetch(x.wrapping_add(PACK_PREFETCH_ROWS * ld).cast());
                        let vector = L::load_as(x, size - whole * L::WIDTH);
                        vector.store_masked(panel.add(whole * L::WIDTH), part);
                    }
                }
            }
        }
    }
}

/// Bytes of a line that are asked for before they are needed: processors do not see where so many
/// lines lead.
pub(crate) const PACK_PREFETCH_BYTES: usize = 256;

/// Packs lines that each lie in memory as they are, `ld` apart, by transposition.
struct PackTransposed<'a, T, S> {
    x: &'a [T],
    ld: usize,
    count: usize,
    size: usize,
    k: usize,
    panels: &'a mut [S],
}

#[allow(unsafe_code)]
impl<T: Element<Acc = S>, S: SimdScalar> SimdKernel<S> for PackTransposed<'_, T, S> {
    #[inline(always)]
    unsafe fn run<L: SimdVector<Scalar = S>>(self) {
        let Self { x, ld, count, size, k, panels } = self;
        let (x, panels) = (x.as_ptr(), panels.as_mut_ptr());
        for line in (0..count).step_by(size) {
            let lines = size.min(count - line);
            // As many lines as a vector has elements, where they are as wide.
            let square = if is_wide::<T>() { lines / L::WIDTH * L::WIDTH } else { 0 };
            for term in (0..k).step_by(L::WIDTH) {
                let len = L::WIDTH.min(k - term);
                // SAFETY: the lines that are there have these elements, and the panels room for
                // places beyond the last.
                unsafe {
                    let panel = panels.add(line * k + term * size);
                    pack_transposed::<L>(
                        #[inline(always)]
                        |i| {
                            let x = x.add((line + i) * ld + term);
                            L::prefetch(
                                x.wrapping_add(PACK_PREFETCH_BYTES / size_of::<T>()).cast(),
                            );
                            // Of a constant length there is no mask.
                            match len == L::WIDTH {
                                true => L::load_as(x, L::WIDTH),
                                false => L::load_as(x, len),
                            }
                        },
                        if len == L::WIDTH { square } else { 0 },
                        (lines, len),
                        (panel, size),
                    );
                }
            }
            for start in (0..square).step_by(L::WIDTH) {
                // SAFETY: as above.
                unsafe {
                    let mut from = [x.cast::<S>(); MAX_LANES];
                    for (i, from) in from.iter_mut().enumerate().take(L::WIDTH) {
                        *from = x.add((line + start + i) * ld).cast();
                    }
                    for term in (0..k / L::WIDTH * L::WIDTH).step_by(L::WIDTH) {
                        let mut there = from;
                        for from in there.iter_mut().take(L::WIDTH) {
                            *from = from.wrapping_add(term);
                            L::prefetch(from.wrapping_add(PACK_PREFETCH_BYTES / size_of::<S>()));
                        }
                        let panel = panels.add(line * k + term * size);
                        L::transpose(there, panel.add(start), size);
                    }
                }
            }
        }
    }
}

/// Writes `len` places of a panel of `size` lines, and up to three more, from those elements of each
/// of the `lines` that are there, of lines from `first` on.
#[allow(unsafe_code)]
#[inline(always)]
pub(crate) unsafe fn pack_transposed<L: SimdVector>(
    load: impl Fn(usize) -> L,
    first: usize,
    (lines, len): (usize, usize),
    (panel, size): (*mut L::Scalar, usize),
) {
    // Backwards: what four lines have beyond the panel's is overwritten.
    for four in (first..size).step_by(4).rev() {
        // SAFETY: the caller's: room for four of each place and for the places beyond the last.
        unsafe {
            let mut vectors = [L::splat(L::Scalar::zero()); 4];
            for (j, vector) in vectors.iter_mut().enumerate() {
                if four + j < lines {
                    *vector = load(four + j);
                }
            }
            L::store_transposed4(vectors, len, panel.add(four), size);
        }
    }
}

//! Packing of matrices that are addressed through tables, such as the im2col matrix of an image.

use crate::{
    element::Storable,
    host::{
        blas::kernel::packing::{
            PACK_PREFETCH_BYTES, PackSource, check_panel_len, pack_transposed,
        },
        simd::{
            dispatch::{SimdKernel, SimdScalar},
            vector::{MAX_LANES, SimdVector},
        },
    },
    op::Transpose,
};
use num_traits::Zero;
use std::ops::Range;

/// Matrix whose element (r, c) is `x[rows[r] + span.from + (c − span.to)]`, where `span` is the
/// span that contains column c.
pub(crate) struct IndirectMatrix<'a, S> {
    x: &'a [S],
    /// Offset in `x` of each row.
    rows: &'a [usize],
    spans: &'a [CopySpan],
    /// Whether `op(B)` is the transpose of the indirect matrix, whose columns are then steps along
    /// k.
    transposed: bool,
}

/// `len` contiguous elements at offset `from` of the source, copied to offset `to` of the
/// destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopySpan {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) len: usize,
}

impl<'a, S> IndirectMatrix<'a, S> {
    /// Returns operand `B` of a GEMM as an indirect matrix, in which `rows` and `spans` give the
    /// offset in `x` of each element. `trans` specifies whether `op(B)` is the transpose of `B`.
    ///
    /// # Panics
    /// Panics if an element of the matrix is outside `x`, or if `spans` are unordered or have gaps.
    pub(crate) fn new(
        trans: Transpose,
        x: &'a [S],
        rows: &'a [usize],
        spans: &'a [CopySpan],
    ) -> Self {
        let last_row = rows.iter().max();
        let end = spans.iter().map(|span| span.from + span.len).max();
        if let (Some(row), Some(end)) = (last_row, end) {
            assert!(
                row + end <= x.len(),
                "indirect matrix: ends at element {}, but x has {} elements",
                row + end,
                x.len()
            );
        }
        let are_adjacent = |pair: &[CopySpan]| pair[0].to + pair[0].len == pair[1].to;
        assert!(
            spans.windows(2).all(are_adjacent),
            "indirect matrix: spans are unordered or not adjacent"
        );
        Self { x, rows, spans, transposed: trans == Transpose::Yes }
    }

    /// Returns the same indirect matrix, with `S` cast to `T`. `S` and `T` must be the same type.
    pub(crate) fn cast<T: Storable>(&self) -> IndirectMatrix<'_, T>
    where
        S: Storable,
    {
        let Self { rows, spans, transposed, .. } = *self;
        IndirectMatrix { x: crate::cast::cast_slice(self.x), rows, spans, transposed }
    }
}

impl<S: SimdScalar> PackSource<S> for IndirectMatrix<'_, S> {
    fn pack(&self, mn: Range<usize>, k: Range<usize>, panel_dim: usize, panel: &mut [S]) {
        check_panel_len(panel, mn.len(), k.len(), panel_dim);
        if mn.is_empty() || k.is_empty() {
            return;
        }
        let Self { x, spans, transposed, .. } = *self;
        let (rows, columns) = if transposed { (mn, k) } else { (k, mn) };
        let rows = &self.rows[rows];
        // SAFETY: `new` checked that `x` holds every span of every row. `check_panel_len` checked
        // that `panel` can hold the micro-panels and the elements written past them.
        unsafe {
            S::dispatch(IndirectPack { x, rows, spans, columns, transposed, panel_dim, panel })
        }
    }
}

/// Evaluates `$body` with up to three `$segments` as an array of constant length, so that the
/// compiler unrolls the loop over the segments.
macro_rules! with_constant_len {
    ($segments:ident, $body:expr) => {
        match $segments.len() {
            1 => {
                let $segments = &[$segments[0]];
                $body
            }
            2 => {
                let $segments = &[$segments[0], $segments[1]];
                $body
            }
            3 => {
                let $segments = &[$segments[0], $segments[1], $segments[2]];
                $body
            }
            _ => $body,
        }
    };
}

/// Kernel that packs the elements of an [`IndirectMatrix`] in the given `rows` and `columns`.
///
/// [`SimdKernel::run`] is safe if `x` holds every span of every row, and [`check_panel_len`] has
/// passed.
struct IndirectPack<'a, S> {
    x: &'a [S],
    rows: &'a [usize],
    spans: &'a [CopySpan],
    columns: Range<usize>,
    transposed: bool,
    panel_dim: usize,
    panel: &'a mut [S],
}

impl<S: SimdScalar> SimdKernel<S> for IndirectPack<'_, S> {
    #[inline(always)]
    unsafe fn run<V: SimdVector<Scalar = S>>(self) {
        // SAFETY: the caller meets the requirements of `transpose` and `copy`.
        unsafe { if self.transposed { self.transpose::<V>() } else { self.copy::<V>() } }
    }
}

impl<S: SimdScalar> IndirectPack<'_, S> {
    /// Packs a matrix whose rows are steps along k, by copying a vector of adjacent columns at a
    /// time.
    ///
    /// # Safety
    /// The requirements of [`IndirectPack`] hold, and the processor supports the vector type `V`.
    #[inline(always)]
    unsafe fn copy<V: SimdVector<Scalar = S>>(self) {
        let Self { x, rows, spans, columns, panel_dim, panel, .. } = self;
        let (x, panel) = (x.as_ptr(), panel.as_mut_ptr());
        for first in columns.clone().step_by(panel_dim) {
            let micro_columns = first..columns.end.min(first + panel_dim);
            // SAFETY: the segments are parts of spans, `x` holds all spans, and the micro-panel has
            // `panel_dim` elements for each row.
            unsafe {
                let micro_panel = panel.add((first - columns.start) * rows.len());
                for_each_vector::<V>(
                    spans,
                    micro_columns.clone(),
                    #[inline(always)]
                    |column, _, segments| {
                        store_rows::<V>(x, rows, segments, (micro_panel, panel_dim), column);
                    },
                );
                let end = micro_columns.len().next_multiple_of(V::WIDTH);
                for column in (end..panel_dim).step_by(V::WIDTH) {
                    store_rows::<V>(x, rows, &[], (micro_panel, panel_dim), column);
                }
            }
        }
    }

    /// Packs a matrix whose columns are steps along k, by transposing blocks that are one vector
    /// wide.
    ///
    /// # Safety
    /// The requirements of [`IndirectPack`] hold, and the processor supports the vector type `V`.
    #[inline(always)]
    unsafe fn transpose<V: SimdVector<Scalar = S>>(self) {
        let Self { x, rows, spans, columns, panel_dim, panel, .. } = self;
        let (x, panel) = (x.as_ptr(), panel.as_mut_ptr());
        for (i, rows) in rows.chunks(panel_dim).enumerate() {
            // SAFETY: the segments are parts of spans, and `x` holds all spans. The panel can hold
            // all steps and the elements that are written past the last step.
            unsafe {
                let micro_panel = panel.add(i * panel_dim * columns.len());
                for_each_vector::<V>(
                    spans,
                    columns.clone(),
                    #[inline(always)]
                    |column, len, segments| {
                        let shape = (rows.len(), len);
                        let steps = (micro_panel.add(column * panel_dim), panel_dim);
                        if let ([segment], true) = (segments, len == V::WIDTH) {
                            // For large images, most vectors lie within one span, so their loads
                            // need no mask.
                            return pack_transposed::<V>(
                                #[inline(always)]
                                |row| {
                                    let x = x.add(rows[row] + segment.offset);
                                    V::prefetch(
                                        x.wrapping_add(PACK_PREFETCH_BYTES / size_of::<S>()),
                                    );
                                    V::load(x)
                                },
                                0,
                                shape,
                                steps,
                            );
                        }
                        with_constant_len!(segments, {
                            pack_transposed::<V>(
                                #[inline(always)]
                                |row| load_segments::<V>(x.add(rows[row]), segments),
                                0,
                                shape,
                                steps,
                            );
                        });
                    },
                );
            }
        }
    }
}

/// Contiguous source elements that are packed into one vector.
#[derive(Clone, Copy)]
struct Segment<M> {
    /// Offset in a source row of the vector's first lane; a negative offset wraps around.
    offset: usize,
    /// Mask of the lanes that belong to the segment.
    mask: M,
}

/// Calls `body(column, len, segments)` for each vector of `columns`. Each vector covers the `len`
/// columns from `columns.start + column` on, and `segments` give the offsets of these columns in a
/// source row.
///
/// # Safety
/// The processor supports the vector type `V`.
#[inline(always)]
unsafe fn for_each_vector<V: SimdVector>(
    spans: &[CopySpan],
    columns: Range<usize>,
    mut body: impl FnMut(usize, usize, &[Segment<V::Mask>]),
) {
    let mut next_span = spans.partition_point(|span| span.to + span.len <= columns.start);
    for column in columns.clone().step_by(V::WIDTH) {
        let len = V::WIDTH.min(columns.end - column);
        // SAFETY: the processor supports the vector type `V`.
        let empty_segment = Segment { offset: 0, mask: unsafe { V::mask(0, 0) } };
        let (mut segments, mut count) = ([empty_segment; MAX_LANES], 0);
        while let Some(&CopySpan { from, to, len: span_len }) = spans.get(next_span)
            && to < column + len
        {
            let end = to + span_len;
            let (first, last) = (to.max(column) - column, end.min(column + len) - column);
            // SAFETY: the processor supports the vector type `V`, and `last` is at most `V::WIDTH`.
            let mask = unsafe { V::mask(first, last) };
            segments[count] = Segment { offset: from.wrapping_add(column).wrapping_sub(to), mask };
            count += 1;
            if end > column + len {
                break;
            }
            next_span += 1;
        }
        body(column - columns.start, len, &segments[..count]);
    }
}

/// Loads the elements of all segments of the source row at `x` into one SIMD vector. Lanes outside
/// the segments are 0.
///
/// # Safety
/// The processor supports the vector type `V`, and the elements of all segments are valid for
/// reads.
#[inline(always)]
unsafe fn load_segments<V: SimdVector>(x: *const V::Scalar, segments: &[Segment<V::Mask>]) -> V {
    let Some((first, others)) = segments.split_first() else {
        // SAFETY: the processor supports the vector type `V`.
        return unsafe { V::splat(V::Scalar::zero()) };
    };
    // SAFETY: the masks select the elements of the segments, which are valid for reads.
    unsafe {
        let mut vector = V::load_masked(x.wrapping_add(first.offset), first.mask);
        for segment in others {
            vector = vector.load_merge(x.wrapping_add(segment.offset), segment.mask);
        }
        vector
    }
}

/// Loads a vector from each source row and stores the vector in the micro-panel: the vector from
/// source row i in row i of the micro-panel, from column `column` of that row on.
///
/// # Safety
/// The processor supports the vector type `V`. Every source row holds all segments, and the
/// micro-panel is valid for writes of `panel_dim` elements for each row.
#[inline(always)]
unsafe fn store_rows<V: SimdVector>(
    x: *const V::Scalar,
    rows: &[usize],
    segments: &[Segment<V::Mask>],
    (micro_panel, panel_dim): (*mut V::Scalar, usize),
    column: usize,
) {
    let (steps, is_whole_vector) =
        (micro_panel.wrapping_add(column), column + V::WIDTH <= panel_dim);
    with_constant_len!(segments, {
        for (i, &row) in rows.iter().enumerate() {
            // SAFETY: the source row holds the segments, and row i of the micro-panel has
            // `panel_dim − column` elements from `column` on.
            unsafe {
                let vector = load_segments::<V>(x.add(row), segments);
                // A whole vector has a constant number of elements, so its store needs no mask.
                match is_whole_vector {
                    true => vector.store(steps.add(i * panel_dim)),
                    false => vector.store_first(steps.add(i * panel_dim), panel_dim - column),
                }
            }
        }
    });
}

//! Products that read their operands where they lie.
//!
//! Packing panels, as large products need, costs more than it saves when an operand is used only
//! a few times or fits a cache. Two kernels read rows as they are stored:
//!
//! - `B` not transposed: a tile of `C` gathers multiples of rows of `B`, terms in the order of k.
//! - `A` not transposed, `B` transposed: a tile of `C` holds dot products of rows of both, each
//!   in as many interleaved sums as a vector has elements.
//!
//! Either way an element of `C` is computed the same wherever it lies in its tile, so that no bit
//! depends on how a product is cut into parts.

use crate::{
    element::Element,
    host::{
        blas::{
            gemm::dispatch::{SimdKernel, SimdScalar},
            kernel::{
                dot_kernel::gemm_dot,
                micro_kernel::{B_MASKED, B_MASKED_TAIL, B_WHOLE_VECTORS, MicroTile, micro_kernel},
            },
        },
        simd::vector::SimdVector,
    },
    op::{Gemm, Transpose},
};

/// Bytes after which addresses share a place in a first-level cache.
pub(crate) const L1_ALIAS_BYTES: usize = 4096;

/// Vectors of a row of `B` from which on it pays to read from the beginning of a line.
const ALIGN_MIN_VECTORS: usize = 16;

/// Elements of `B` that stay in the first-level cache, or nearly.
const L1_B_MAX_LEN: usize = 1 << 14;

/// A product by addresses; strides in elements.
#[derive(Clone, Copy)]
pub(crate) struct RawGemm<S> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: S,
    pub(crate) beta: S,
    pub(crate) a: *const S,
    pub(crate) lda: usize,
    pub(crate) b: *const S,
    pub(crate) ldb: usize,
    pub(crate) c: *mut S,
    pub(crate) ldc: usize,
    /// One element for each row, which is added to all of the row, or null.
    pub(crate) bias: *const S,
}

impl<S: Element<Acc = S>> RawGemm<S> {
    /// The product that `op` describes.
    pub(crate) fn new(op: &Gemm<S>, a: &[S], b: &[S], c: *mut S) -> Self {
        let Gemm { m, n, k, alpha, beta, lda, ldb, ldc, .. } = *op;
        Self {
            m,
            n,
            k,
            alpha,
            beta,
            a: a.as_ptr(),
            lda,
            b: b.as_ptr(),
            ldb,
            c,
            ldc,
            bias: std::ptr::null(),
        }
    }
}

/// Whether the kernels here are faster than packed panels for the whole of `op`.
pub(crate) fn unpacked_is_faster<S: Element>(op: &Gemm<S>) -> bool {
    match (op.trans_a, op.trans_b) {
        (_, Transpose::No) => op.k * op.n < L1_B_MAX_LEN,
        // A few rows of `A`, and many terms for a summation of a vector's elements: to transpose `B`
        // would take longer.
        (Transpose::No, Transpose::Yes) => {
            op.k >= 32 && op.k >= 12 * op.m && (op.m * op.n <= 1024 || op.m <= 16)
        }
        (Transpose::Yes, Transpose::Yes) => false,
    }
}

/// Products of one shape, each operand so many elements after the last.
#[derive(Clone, Copy)]
pub(crate) struct BatchStrides {
    pub(crate) count: usize,
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) c: usize,
}

impl BatchStrides {
    /// A single product.
    pub(crate) const ONE: Self = Self { count: 1, a: 0, b: 0, c: 0 };
}

/// `C ← α·op(A)·op(B) + β·C` where [`suits`] knows a kernel, so many times.
///
/// To run it is safe if all that `p` covers at `a` and `b` can be read and at `c` written,
/// exclusively, each time.
pub(crate) struct UnpackedGemm<'a, S> {
    pub(crate) a: Transpose,
    pub(crate) b: Transpose,
    pub(crate) p: &'a RawGemm<S>,
    pub(crate) times: BatchStrides,
}

#[allow(unsafe_code)]
impl<S: SimdScalar> SimdKernel<S> for UnpackedGemm<'_, S> {
    #[inline(always)]
    unsafe fn run<L: SimdVector<Scalar = S>>(self) {
        let times = self.times;
        for i in 0..times.count {
            let (a, b) = (self.p.a.wrapping_add(i * times.a), self.p.b.wrapping_add(i * times.b));
            let p = &RawGemm { a, b, c: self.p.c.wrapping_add(i * times.c), ..*self.p };
            // SAFETY: handed on.
            unsafe {
                match (self.a, self.b) {
                    (Transpose::No, Transpose::Yes) => gemm_dot::<L>(p),
                    (Transpose::No, _) => outer::<L>(p, (p.lda, 1)),
                    (Transpose::Yes, _) => outer::<L>(p, (1, p.lda)),
                }
            }
        }
    }
}

/// `B` not transposed: tiles of several rows and two vectors; `A`'s strides along m and k.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn outer<L: SimdVector>(p: &RawGemm<L::Scalar>, strides: (usize, usize)) {
    if p.m == 1 {
        // SAFETY: handed on.
        return unsafe { outer_row::<L>(p, strides.1) };
    }
    let sizes: &[usize] = if L::MANY { &[12, 10, 8] } else { &[6, 5, 4] };
    // As few rows computed in vain as possible, then as few tiles.
    let fitting = sizes.iter().copied().filter(|&rows| rows <= p.m);
    let rows = fitting.min_by_key(|&rows| p.m.div_ceil(rows) * rows).unwrap_or(match p.m {
        4.. => 4,
        2.. => 2,
        _ => 1,
    });
    // SAFETY: handed on: a tile has no more rows than there are.
    unsafe {
        match rows {
            12 if L::MANY => outer_of::<L, 12>(p, strides),
            10 if L::MANY => outer_of::<L, 10>(p, strides),
            8 if L::MANY => outer_of::<L, 8>(p, strides),
            6 if !L::MANY => outer_of::<L, 6>(p, strides),
            5 if !L::MANY => outer_of::<L, 5>(p, strides),
            4 => outer_of::<L, 4>(p, strides),
            2 => outer_of::<L, 2>(p, strides),
            _ => outer_of::<L, 1>(p, strides),
        }
    }
}

/// Elements of rows of `B` after the last place before them at which whole vectors lie in lines of a
/// cache; 0 if that is not the same for all rows.
pub(crate) fn unaligned_prefix<L: SimdVector>(p: &RawGemm<L::Scalar>) -> usize {
    let size = size_of::<L::Scalar>();
    let vector = L::WIDTH * size;
    if (p.ldb * size).is_multiple_of(vector) { p.b.addr() % vector / size } else { 0 }
}

/// A row times a matrix of short rows.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn outer_row<L: SimdVector>(p: &RawGemm<L::Scalar>, along_k: usize) {
    let before = if p.n >= ALIGN_MIN_VECTORS * L::WIDTH { unaligned_prefix::<L>(p) } else { 0 };
    let end = before + p.n;
    let vectors = end.div_ceil(L::WIDTH);
    // As many vectors as there are, or nearly: a sum of few waits for itself.
    let most = vectors.div_ceil(vectors.div_ceil(8));
    let (b, c) = (p.b.wrapping_sub(before), p.c.wrapping_sub(before));
    let p = &RawGemm { b, c, ..*p };
    for vector in (0..vectors).step_by(most) {
        let column = vector * L::WIDTH;
        let columns = before.saturating_sub(column)..(end - column).min(most * L::WIDTH);
        let count = columns.end.div_ceil(L::WIDTH);
        let whole = columns == (0..count * L::WIDTH);
        let tile = MicroTile { row: 0, rows: 0..1, column, columns };
        let strides = (0, along_k);
        macro_rules! tile {
            ($($count:pat => $vectors:literal),*) => {
                match count {
                    $(
                        $count if whole => micro_kernel::<L, 1, $vectors, B_WHOLE_VECTORS>(p, strides, tile),
                        $count => micro_kernel::<L, 1, $vectors, B_MASKED>(p, strides, tile),
                    )*
                }
            };
        }
        // SAFETY: the columns of the tile are within those of the product.
        unsafe { tile!(1 => 1, 2 => 2, 3 => 3, 4 => 4, 5 => 5, 6 => 6, 7 => 7, _ => 8) }
    }
}

/// In tiles of `ROWS` rows; there are at least as many.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn outer_of<L: SimdVector, const ROWS: usize>(
    p: &RawGemm<L::Scalar>,
    strides: (usize, usize),
) {
    for column in (0..p.n).step_by(2 * L::WIDTH) {
        let columns = (p.n - column).min(2 * L::WIDTH);
        for row in (0..p.m).step_by(ROWS) {
            // The last tile ends at the last row; what it has in common with the one before it
            // is not written twice.
            let start = row.min(p.m - ROWS);
            let tile =
                MicroTile { row: start, rows: row - start..ROWS, column, columns: 0..columns };
            // SAFETY: rows and columns of the tile are within those of the product.
            unsafe {
                if columns == 2 * L::WIDTH {
                    micro_kernel::<L, ROWS, 2, B_WHOLE_VECTORS>(p, strides, tile);
                } else if columns > L::WIDTH {
                    micro_kernel::<L, ROWS, 2, B_MASKED_TAIL>(p, strides, tile);
                } else {
                    micro_kernel::<L, ROWS, 1, B_MASKED_TAIL>(p, strides, tile);
                }
            }
        }
    }
}

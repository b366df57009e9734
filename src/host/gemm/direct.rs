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

use super::{
    lanes::Lanes,
    native::{Job, Native},
    tile::{PARTIAL, Tile, WHOLE, outer_tile},
};
use crate::{
    element::Element,
    op::{Gemm, Transpose},
};
use num_traits::{One, Zero};

/// Bytes of a row between one summation of a vector's elements and the next: rows of a tile stay in
/// the first-level cache.
const DEPTH: usize = 4096;

/// Bytes after which addresses share a place in a first-level cache.
pub(super) const PAGE: usize = 4096;

/// Elements of `B` that stay in the first-level cache, or nearly.
const SMALL: usize = 1 << 14;

/// Elements of `B`'s rows that stay in the second-level cache while `A` passes by.
const RESIDENT: usize = 1 << 16;

/// A product by addresses; strides in elements.
#[derive(Clone, Copy)]
pub(super) struct Product<S> {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) alpha: S,
    pub(super) beta: S,
    pub(super) a: *const S,
    pub(super) lda: usize,
    pub(super) b: *const S,
    pub(super) ldb: usize,
    pub(super) c: *mut S,
    pub(super) ldc: usize,
    /// One element for each row, which is added to all of the row, or null.
    pub(super) bias: *const S,
}

impl<S: Element<Acc = S>> Product<S> {
    /// The product that `op` describes.
    pub(super) fn new(op: &Gemm<S>, a: &[S], b: &[S], c: *mut S) -> Self {
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
pub(super) fn suits<S: Element>(op: &Gemm<S>) -> bool {
    match (op.trans_a, op.trans_b) {
        (_, Transpose::No) => op.k * op.n < SMALL,
        // A few rows of `A`, and many terms for a summation of a vector's elements: to transpose `B`
        // would take longer.
        (Transpose::No, Transpose::Yes) => {
            op.k >= 32 && op.k >= 12 * op.m && (op.m * op.n <= 1024 || op.m <= 16)
        }
        (Transpose::Yes, Transpose::Yes) => false,
    }
}

/// `C ← α·op(A)·op(B) + β·C` where [`suits`] knows a kernel.
///
/// To run it is safe if all that `p` covers at `a` and `b` can be read and at `c` written,
/// exclusively.
pub(super) struct Multiply<'a, S> {
    pub(super) a: Transpose,
    pub(super) b: Transpose,
    pub(super) p: &'a Product<S>,
}

#[allow(unsafe_code)]
impl<S: Native> Job<S> for Multiply<'_, S> {
    #[inline(always)]
    unsafe fn run<L: Lanes<Scalar = S>>(self) {
        let p = self.p;
        // SAFETY: handed on.
        unsafe {
            match (self.a, self.b) {
                (Transpose::No, Transpose::Yes) => dot::<L>(p),
                (Transpose::No, _) => outer::<L>(p, (p.lda, 1)),
                (Transpose::Yes, _) => outer::<L>(p, (1, p.lda)),
            }
        }
    }
}

/// `B` not transposed: tiles of several rows and two vectors; `A`'s strides along m and k.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn outer<L: Lanes>(p: &Product<L::Scalar>, strides: (usize, usize)) {
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

/// A row times a matrix of short rows.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn outer_row<L: Lanes>(p: &Product<L::Scalar>, along_k: usize) {
    let mut column = 0;
    while column < p.n {
        // As many vectors as there are whole ones: a sum of few waits for itself.
        let whole = (p.n - column) / L::WIDTH;
        let step = match whole {
            8.. => 8 * L::WIDTH,
            4.. => 4 * L::WIDTH,
            2.. => 2 * L::WIDTH,
            _ => L::WIDTH.min(p.n - column),
        };
        let tile = Tile { row: 0, rows: 0..1, column, columns: step };
        // SAFETY: the columns of the tile are within those of the product.
        unsafe {
            match whole {
                8.. => outer_tile::<L, 1, 8, WHOLE>(p, (0, along_k), tile),
                4.. => outer_tile::<L, 1, 4, WHOLE>(p, (0, along_k), tile),
                2.. => outer_tile::<L, 1, 2, WHOLE>(p, (0, along_k), tile),
                _ => outer_tile::<L, 1, 1, PARTIAL>(p, (0, along_k), tile),
            }
        }
        column += step;
    }
}

/// In tiles of `ROWS` rows; there are at least as many.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn outer_of<L: Lanes, const ROWS: usize>(p: &Product<L::Scalar>, strides: (usize, usize)) {
    for column in (0..p.n).step_by(2 * L::WIDTH) {
        let columns = (p.n - column).min(2 * L::WIDTH);
        for row in (0..p.m).step_by(ROWS) {
            // The last tile ends at the last row; what it has in common with the one before it
            // is not written twice.
            let start = row.min(p.m - ROWS);
            let tile = Tile { row: start, rows: row - start..ROWS, column, columns };
            // SAFETY: rows and columns of the tile are within those of the product.
            unsafe {
                if columns == 2 * L::WIDTH {
                    outer_tile::<L, ROWS, 2, WHOLE>(p, strides, tile);
                } else if columns > L::WIDTH {
                    outer_tile::<L, ROWS, 2, PARTIAL>(p, strides, tile);
                } else {
                    outer_tile::<L, ROWS, 1, PARTIAL>(p, strides, tile);
                }
            }
        }
    }
}

/// `A` not transposed, `B` transposed.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn dot<L: Lanes>(p: &Product<L::Scalar>) {
    // One row stays in a cache without being cut.
    let cuts = if p.m == 1 { 1 } else { p.k.div_ceil(DEPTH / size_of::<L::Scalar>()) };
    let deepest = p.k.div_ceil(cuts.max(1)).max(1);
    for start in (0..p.k).step_by(deepest) {
        let depth = deepest.min(p.k - start);
        let resident = (RESIDENT / depth + 1).next_multiple_of(64);
        for column in (0..p.n).step_by(resident) {
            // SAFETY: a range of the columns and of k: offsets stay within the operands.
            unsafe {
                let part = Product {
                    n: resident.min(p.n - column),
                    k: depth,
                    beta: if start == 0 { p.beta } else { L::Scalar::one() },
                    a: p.a.add(start),
                    b: p.b.add(column * p.ldb + start),
                    c: p.c.add(column),
                    ..*p
                };
                match (L::MANY, part.m, part.n) {
                    (true, 4.., 4..) => dot_of::<L, 4, 4>(&part),
                    (true, 1, 8..) => dot_of::<L, 1, 8>(&part),
                    (false, 2.., 4..) => dot_of::<L, 2, 4>(&part),
                    (_, _, 4..) => dot_of::<L, 1, 4>(&part),
                    (_, 4.., _) => dot_of::<L, 4, 1>(&part),
                    _ => dot_of::<L, 1, 1>(&part),
                }
            }
        }
    }
}

/// In tiles of `ROWS` rows and `COLUMNS` columns; there are at least as many.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn dot_of<L: Lanes, const ROWS: usize, const COLUMNS: usize>(p: &Product<L::Scalar>) {
    for row in (0..p.m).step_by(ROWS) {
        let first_row = row.min(p.m - ROWS);
        for column in (0..p.n).step_by(COLUMNS) {
            let first_column = column.min(p.n - COLUMNS);
            // SAFETY: rows and columns of the tile are within those of the product.
            unsafe {
                let sums = dot_tile::<L, ROWS, COLUMNS>(p, first_row, first_column);
                for (i, sums) in sums.iter().enumerate().skip(row - first_row) {
                    for (j, &sum) in sums.iter().enumerate().skip(column - first_column) {
                        let c = p.c.add((first_row + i) * p.ldc + first_column + j);
                        let old = if p.beta.is_zero() { L::Scalar::zero() } else { p.beta * *c };
                        *c = p.alpha * sum + old;
                    }
                }
            }
        }
    }
}

/// Dot products of `ROWS` rows of `A` with `COLUMNS` rows of `B`.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn dot_tile<L: Lanes, const ROWS: usize, const COLUMNS: usize>(
    p: &Product<L::Scalar>,
    row: usize,
    column: usize,
) -> [[L::Scalar; COLUMNS]; ROWS] {
    // SAFETY: the caller's: k elements in each of these rows; the last load of a row ends with it.
    unsafe {
        let mut a = p.a.add(row * p.lda);
        let mut b = p.b.add(column * p.ldb);
        let mut lanes = [[L::splat(L::Scalar::zero()); COLUMNS]; ROWS];
        let whole = p.k / L::WIDTH;
        for _ in 0..whole {
            let mut y = [L::splat(L::Scalar::zero()); COLUMNS];
            for (j, y) in y.iter_mut().enumerate() {
                *y = L::load(b.add(j * p.ldb));
                // Of the next tile: it may come from memory, where rows lead anew each time.
                L::prefetch(b.wrapping_add((j + COLUMNS) * p.ldb));
            }
            for (i, lanes) in lanes.iter_mut().enumerate() {
                let x = L::load(a.add(i * p.lda));
                for (lane, y) in lanes.iter_mut().zip(&y) {
                    *lane = x.mul_add(*y, *lane);
                }
            }
            a = a.wrapping_add(L::WIDTH);
            b = b.wrapping_add(L::WIDTH);
        }
        let rest = p.k % L::WIDTH;
        if rest > 0 {
            for (i, lanes) in lanes.iter_mut().enumerate() {
                let x = L::load_first(a.add(i * p.lda), rest);
                for (j, lane) in lanes.iter_mut().enumerate() {
                    *lane = x.mul_add(L::load_first(b.add(j * p.ldb), rest), *lane);
                }
            }
        }
        let mut sums = [[L::Scalar::zero(); COLUMNS]; ROWS];
        for (sums, lanes) in sums.iter_mut().zip(lanes) {
            // Indices are constants, so that the sums stay in registers.
            for (i, sums) in sums.chunks_mut(4).enumerate() {
                let lane = |j: usize| lanes[(4 * i + j) % COLUMNS];
                sums.copy_from_slice(&L::sums([lane(0), lane(1), lane(2), lane(3)])[..sums.len()]);
            }
        }
        sums
    }
}

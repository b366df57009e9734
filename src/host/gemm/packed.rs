//! Large products: panels of both operands are copied, so that tiles read them in order.
//!
//! `C` is computed in tiles that stay in registers. A block of `B` stays in the second-level
//! cache, a panel of `A` in the first-level one, while every tile of both is computed; k is cut
//! at multiples of [`depth`], whatever part of a product this is, so that no bit depends on how
//! products are shared among threads. Source of the scheme: Goto, van de Geijn 2008.

use super::{
    direct::{PAGE, Product, Tile, outer_tile},
    lanes::Lanes,
};
use crate::op::Transpose;
use num_traits::{One, Zero};

/// Bytes of a block of `B`: what a second-level cache holds beside the rest.
const BLOCK: usize = 576 << 10;

/// Bytes of a line of a cache, at which panels begin.
const LINE: usize = 64;

/// Rows of `A` copied at a time.
const HEIGHT: usize = 1536;

/// Terms of a sum between two writes to `C`: a panel of `A` takes half of a first-level cache.
fn depth<S>() -> usize {
    if size_of::<S>() == 4 { 384 } else { 256 }
}

/// Elements needed for panels of a product of this extent.
pub(super) fn room<S>(m: usize, n: usize, k: usize) -> usize {
    // Panels of any size fit: of up to 12 rows, of 24 or 32 columns or fewer.
    let depth = depth::<S>().min(k);
    let width = (n.next_multiple_of(96) * depth).min(BLOCK / size_of::<S>());
    HEIGHT.min(m + 12) * depth + width + LINE / size_of::<S>()
}

/// `C ← α·op(A)·op(B) + β·C`; `room` is for panels.
///
/// # Safety
/// As the kernels of [`Lanes`] `L`; all that `p` covers at `a` and `b` can be read and at `c`
/// written, exclusively.
#[allow(unsafe_code)]
#[inline(always)]
pub(super) unsafe fn product<L: Lanes>(
    trans_a: Transpose,
    trans_b: Transpose,
    p: &Product<L::Scalar>,
    room: &mut [L::Scalar],
) {
    // SAFETY: handed on.
    unsafe {
        match rows::<L>(p.m) {
            12 if L::MANY => product_of::<L, 12, 2>(trans_a, trans_b, p, room),
            10 if L::MANY => product_of::<L, 10, 2>(trans_a, trans_b, p, room),
            8 if L::MANY => product_of::<L, 8, 2>(trans_a, trans_b, p, room),
            _ if L::MANY => product_of::<L, 4, 2>(trans_a, trans_b, p, room),
            _ => product_of::<L, 4, 3>(trans_a, trans_b, p, room),
        }
    }
}

/// Rows of a tile.
fn rows<L: Lanes>(m: usize) -> usize {
    let sizes: &[usize] = if L::MANY && m > 4 { &[12, 10, 8] } else { &[4] };
    // As few rows computed in vain as possible; a small tile reads more for what it computes.
    let cost = |&rows: &usize| m.div_ceil(rows) * (rows + 1);
    sizes.iter().copied().min_by_key(cost).unwrap_or(4)
}

/// In tiles of `ROWS` rows and `VECTORS` vectors.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn product_of<L: Lanes, const ROWS: usize, const VECTORS: usize>(
    trans_a: Transpose,
    trans_b: Transpose,
    p: &Product<L::Scalar>,
    room: &mut [L::Scalar],
) {
    let (depth, columns) = (depth::<L::Scalar>().min(p.k), VECTORS * L::WIDTH);
    let width = (BLOCK / size_of::<L::Scalar>() / depth / columns * columns)
        .min(p.n.next_multiple_of(columns));
    let height = HEIGHT / ROWS * ROWS;
    // Rows of `A` are as good as a panel, unless they push each other out of the cache.
    let in_place = trans_a == Transpose::No
        && p.m % height >= ROWS
        && !(p.lda * size_of::<L::Scalar>()).is_multiple_of(PAGE);
    let start = room.as_ptr().align_offset(LINE).min(LINE / size_of::<L::Scalar>());
    let (panels_b, panels_a) = room[start..].split_at_mut(width * depth);
    let (panels_a, panels_b) = (panels_a.as_mut_ptr(), panels_b.as_mut_ptr());
    for row in (0..p.m).step_by(height) {
        let m = height.min(p.m - row);
        for term in (0..p.k).step_by(depth) {
            let k = depth.min(p.k - term);
            let beta = if term == 0 { p.beta } else { L::Scalar::one() };
            // SAFETY: rows, columns and terms are within those of the product; the room
            // holds as many panels as are written.
            unsafe {
                let mut a = at(trans_a, p.a, p.lda, row, term);
                if !in_place {
                    pack::<L>(trans_a == Transpose::No, (a, p.lda), (m, ROWS), k, panels_a);
                    a = panels_a;
                }
                for column in (0..p.n).step_by(width) {
                    let n = width.min(p.n - column);
                    let b = at(trans_b, p.b, p.ldb, term, column);
                    pack::<L>(trans_b == Transpose::Yes, (b, p.ldb), (n, columns), k, panels_b);
                    let c = p.c.add(row * p.ldc + column);
                    let block = Product { m, n, k, beta, a, b: panels_b, c, ..*p };
                    if in_place {
                        tiles::<L, ROWS, VECTORS>(&block, (p.lda, 1));
                    } else {
                        tiles::<L, ROWS, VECTORS>(&block, (1, ROWS));
                    }
                }
            }
        }
    }
}

/// The element of `op(X)` at `row` and `column`.
fn at<S>(trans: Transpose, x: *const S, ld: usize, row: usize, column: usize) -> *const S {
    let (row, column) = if trans == Transpose::No { (row, column) } else { (column, row) };
    x.wrapping_add(row * ld + column)
}

/// Every tile; `A`'s strides along m and k.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn tiles<L: Lanes, const ROWS: usize, const VECTORS: usize>(
    p: &Product<L::Scalar>,
    strides: (usize, usize),
) {
    let (columns, panels) = (VECTORS * L::WIDTH, strides.0 == 1);
    for row in (0..p.m).step_by(ROWS) {
        // A panel is filled up with zeros; without panels the last tile ends with the last row,
        // and has rows in common with the one before it.
        let start = if panels { row } else { row.min(p.m - ROWS) };
        let rows = row - start..ROWS.min(p.m - start);
        for column in (0..p.n).step_by(columns) {
            let left = columns.min(p.n - column);
            // SAFETY: the caller's: all panels are there, and all of `c`.
            unsafe {
                let tile = Product {
                    a: p.a.add(if panels { row * p.k } else { start * p.lda }),
                    b: p.b.add(column * p.k),
                    ldb: columns,
                    c: p.c.add(start * p.ldc + column),
                    ..*p
                };
                for i in 0..rows.end {
                    for line in (0..left).step_by(LINE / size_of::<L::Scalar>()) {
                        L::prefetch(tile.c.wrapping_add(i * p.ldc + line));
                    }
                }
                if left == columns {
                    let rows = rows.clone();
                    let whole = Tile { row: 0, rows, column: 0, columns: L::WIDTH };
                    outer_tile::<L, ROWS, VECTORS>(&tile, strides, whole);
                } else {
                    for column in (0..left).step_by(L::WIDTH) {
                        let columns = L::WIDTH.min(left - column);
                        let part = Tile { row: 0, rows: rows.clone(), column, columns };
                        outer_tile::<L, ROWS, 1>(&tile, strides, part);
                    }
                }
            }
        }
    }
}

/// Copies `count` lines of `k` elements into panels of `size` lines, in which the elements of all
/// lines at one place lie side by side; zeros fill the last panel. If `along`, a line lies in
/// memory as it is and lines are `ld` apart; else its elements are `ld` apart and lines lie side
/// by side.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn pack<L: Lanes>(
    along: bool,
    (x, ld): (*const L::Scalar, usize),
    (count, size): (usize, usize),
    k: usize,
    panels: *mut L::Scalar,
) {
    // SAFETY: the caller's: all lines can be read, and the panels hold what is written.
    unsafe {
        if along {
            for line in (0..count).step_by(size) {
                let lines = size.min(count - line);
                transpose::<L>((x.add(line * ld), ld), (lines, size), k, panels.add(line * k));
            }
        } else {
            // Row by row, as memory likes to be read.
            for i in 0..k {
                for line in (0..count).step_by(size) {
                    let panel = panels.add(line * k + i * size);
                    for j in (0..size).step_by(L::WIDTH) {
                        let there = L::WIDTH.min((count - line).saturating_sub(j));
                        let vector = L::load_first(x.wrapping_add(i * ld + line + j), there);
                        vector.store_first(panel.add(j), L::WIDTH.min(size - j));
                    }
                }
            }
        }
    }
}

/// One panel of `size` lines, of which `lines` are there.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn transpose<L: Lanes>(
    (x, ld): (*const L::Scalar, usize),
    (lines, size): (usize, usize),
    k: usize,
    panel: *mut L::Scalar,
) {
    for i in (0..k).step_by(L::WIDTH) {
        let count = L::WIDTH.min(k - i);
        // Backwards: what a group of four has beyond the panel's lines is overwritten.
        for line in (0..size).step_by(4).rev() {
            // SAFETY: the caller's: `lines` lines of `k` elements, and room for a panel.
            unsafe {
                let mut four = [L::splat(L::Scalar::zero()); 4];
                for (j, vector) in four.iter_mut().enumerate() {
                    if line + j < lines {
                        let x = x.add((line + j) * ld + i);
                        *vector =
                            if count == L::WIDTH { L::load(x) } else { L::load_first(x, count) };
                    }
                }
                L::interleave(four, count, panel.add(i * size + line), size);
            }
        }
    }
}

//! Polyphase layout of a plane for overlapping tiles: the elements at one position of all tiles are
//! contiguous.
//!
//! Neighbouring tiles of `SIDE`×`SIDE` elements overlap, because they are 2 rows and 2 columns apart.
//! The element in row `r` and column `c` of the tile in row `i` and column `j` is the plane's element
//! in row `2·i + r` and column `2·j + c`. For each parity of the row and for each column `c`, the
//! layout has a *region*: for each row of that parity, the elements in the columns `2·j + c` for all
//! `j`. Row `r / 2` of the region for `r mod 2` and `c` therefore contains the element in row `r` and
//! column `c` of the first row of tiles. The following rows of the region contain this element of the
//! following rows of tiles, so one load of [`LANES`] elements can span several rows of tiles.

use crate::host::{
    cache::scratch::with_scratch,
    nn::convolution::winograd::{
        lanes,
        transform::{LANES, Lanes},
    },
};

/// Layout of one plane for tiles of `SIDE`×`SIDE` elements, and a buffer in this layout. `SIDE` is
/// even.
pub(crate) struct ShiftedPhases<'a, const SIDE: usize> {
    shape: Shape,
    /// Rows of the plane.
    rows: &'a mut [f32],
    /// Even columns of all rows, and then the odd columns.
    phases: &'a mut [f32],
    regions: &'a mut [f32],
}

/// Extents of the buffers of [`ShiftedPhases`].
#[derive(Clone, Copy)]
struct Shape {
    /// Number of tiles in one row.
    columns: usize,
    /// Number of rows of the plane.
    rows: usize,
    /// Number of even columns in a row of the plane, rounded up to a multiple of [`LANES`].
    phase_len: usize,
    /// Number of elements from one region to the next.
    region_len: usize,
}

impl Shape {
    fn new(side: usize, rows: usize, columns: usize) -> Self {
        Self {
            columns,
            rows: 2 * rows + side - 2,
            phase_len: (columns + side / 2 - 1).next_multiple_of(LANES),
            // Loads and stores of LANES elements reach past the last row.
            region_len: ((rows + side / 2 - 1) * columns + LANES).next_multiple_of(LANES),
        }
    }
}

impl<const SIDE: usize> ShiftedPhases<'_, SIDE> {
    /// Calls `body` with buffers for at most `rows` rows of `columns` tiles.
    pub(crate) fn with(rows: usize, columns: usize, body: impl FnOnce(ShiftedPhases<SIDE>)) {
        let shape = Shape::new(SIDE, rows, columns);
        let rows_len = shape.rows * 2 * shape.phase_len;
        let regions_len = 2 * SIDE * shape.region_len;
        with_scratch(2 * rows_len + LANES + regions_len, |scratch: &mut [f32]| {
            let (rows, rest) = scratch.split_at_mut(rows_len);
            let (phases, regions) = rest.split_at_mut(rows_len + LANES);
            // The columns of the padding are never written.
            rows.fill(0.0);
            body(ShiftedPhases { shape, rows, phases, regions });
        });
    }

    /// Returns the start of row `row` of the plane in the region for column `c` of the tiles.
    #[inline(always)]
    fn start(&self, row: usize, c: usize) -> usize {
        (row % 2 * SIDE + c) * self.shape.region_len + row / 2 * self.shape.columns
    }

    /// Writes the first `rows` rows of a plane to the regions. Row `r` consists of `pad` zeros, the
    /// elements `row(r)` and zeros. All calls must have the same `pad`, and rows of the same length
    /// or empty rows.
    ///
    /// Each loop finishes all rows before the next loop reads them. A load that overlaps several
    /// recent stores cannot take its elements from the store queue, so it waits until the stores have
    /// reached the cache.
    #[inline(always)]
    pub(crate) fn write<'x>(&mut self, rows: usize, pad: usize, row: impl Fn(usize) -> &'x [f32]) {
        let phase_len = self.shape.phase_len;
        for (r, to) in self.rows.chunks_exact_mut(2 * phase_len).take(rows).enumerate() {
            match row(r) {
                [] => to.fill(0.0),
                row => to[pad..pad + row.len()].copy_from_slice(row),
            }
        }
        let (even, odd) = self.phases.split_at_mut(self.shape.rows * phase_len);
        let phases = even.as_chunks_mut().0.iter_mut().zip(odd.as_chunks_mut().0);
        let pairs = self.rows.as_chunks().0[..rows * phase_len / LANES].iter();
        for (pairs, phases) in pairs.zip(phases) {
            (*phases.0, *phases.1) = split_pairs(pairs);
        }
        for r in 0..rows {
            for column in (0..self.shape.columns).step_by(LANES) {
                for c in 0..SIDE {
                    let phase = (c % 2 * self.shape.rows + r) * phase_len;
                    let from = lanes(self.phases, phase + column + c / 2);
                    let to = self.start(r, c) + column;
                    self.regions[to..to + LANES].copy_from_slice(from);
                }
            }
        }
    }

    /// Returns the elements of [`LANES`] tiles, of which the first has the index `tile`.
    #[inline(always)]
    pub(crate) fn tiles(&self, tile: usize) -> [[&Lanes; SIDE]; SIDE] {
        let mut tiles = [[lanes(self.regions, 0); SIDE]; SIDE];
        for (r, tiles) in tiles.iter_mut().enumerate() {
            for (c, tiles) in tiles.iter_mut().enumerate() {
                *tiles = lanes(self.regions, self.start(r, c) + tile);
            }
        }
        tiles
    }
}

/// Returns the elements of `pairs` with even and with odd indices.
///
/// The function reads pairs of elements as integers, because the compiler does not vectorize a loop
/// that reads every other element.
#[inline(always)]
fn split_pairs(pairs: &[f32; 2 * LANES]) -> (Lanes, Lanes) {
    let (mut even, mut odd) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let [low, high] = [pairs[2 * lane], pairs[2 * lane + 1]].map(|x| u64::from(x.to_bits()));
        let pair = high << 32 | low;
        even[lane] = f32::from_bits(pair as u32);
        odd[lane] = f32::from_bits((pair >> 32) as u32);
    }
    (even, odd)
}

//! Reordering of axes.

use crate::{
    element::Element,
    error::{Result, check_len},
    host::threads::Workers,
    op::Permute,
};

/// Elements of one task, in whole rows.
const GRAIN: usize = 1 << 16;

/// Extent of the tiles that are transposed at a time: their rows and columns are cache lines.
const TILE: usize = 16;

/// `y[j₀, j₁, …] ← x[i₀, i₁, …]` where `jₐ = i_order[a]`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) names the operand.
pub fn permute<T: Element>(workers: &Workers, op: &Permute, x: &[T], y: &mut [T]) -> Result<()> {
    check_len("permute", "x", op.shape().count(), x.len())?;
    check_len("permute", "y", op.shape().count(), y.len())?;
    if x.is_empty() {
        return Ok(());
    }
    let axes = Axes::of(op);
    let last = axes.extents.len() - 1;
    // The axis of the result along which the source is contiguous; after merging there is one.
    let unit = axes.strides.iter().position(|&stride| stride == 1).unwrap_or(last);
    // A row is what lies inside of that axis, or the axis itself if nothing does. A task is some
    // rows, however those are numbered.
    let row: usize = axes.extents[unit + 1..].iter().product();
    if unit == last {
        let len = axes.extents[last];
        let per = (GRAIN / len).max(1);
        workers.for_each_chunk(y, per * len, |task, y| axes.copy_runs(x, task * per, y));
    } else {
        let per = (GRAIN / row).max(TILE);
        workers.for_each_chunk(y, per * row, |task, y| axes.transpose(unit, x, task * per, y));
    }
    Ok(())
}

/// The result's axes, outermost first, with the source's step along each.
pub(crate) struct Axes {
    pub(crate) extents: Vec<usize>,
    pub(crate) strides: Vec<usize>,
}

impl Axes {
    /// Leaves out axes of one element, and merges those that follow each other in the source as
    /// well. At least one remains; the shape is not empty.
    pub(crate) fn of(op: &Permute) -> Self {
        let shape = op.shape();
        let mut axes = Self { extents: Vec::new(), strides: Vec::new() };
        for &axis in op.order() {
            let (extent, stride) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
            if extent == 1 {
                continue;
            }
            match (axes.extents.last_mut(), axes.strides.last_mut()) {
                (Some(outer), Some(step)) if *step == extent * stride => {
                    (*outer, *step) = (*outer * extent, stride);
                }
                _ => {
                    axes.extents.push(extent);
                    axes.strides.push(stride);
                }
            }
        }
        if axes.extents.is_empty() {
            (axes.extents, axes.strides) = (vec![1], vec![1]);
        }
        axes
    }

    /// Position in the source of position `at` in the axes `range` of the result.
    fn offset(&self, range: std::ops::Range<usize>, mut at: usize) -> usize {
        let mut offset = 0;
        for axis in range.rev() {
            offset += at % self.extents[axis] * self.strides[axis];
            at /= self.extents[axis];
        }
        offset
    }

    /// Copies runs along the last axis, from number `first` on.
    fn copy_runs<T: Element>(&self, x: &[T], first: usize, y: &mut [T]) {
        let last = self.extents.len() - 1;
        let len = self.extents[last];
        for (run, y) in y.chunks_exact_mut(len).enumerate() {
            y.copy_from_slice(&x[self.offset(0..last, first + run)..][..len]);
        }
    }

    /// Writes rows from number `first` on, which axis `unit` counts innermost. Along the last
    /// axis the result is contiguous, along `unit` the source is.
    fn transpose<T: Element>(&self, unit: usize, x: &[T], first: usize, y: &mut [T]) {
        let last = self.extents.len() - 1;
        let (extent, columns) = (self.extents[unit], self.extents[last]);
        let between: usize = self.extents[unit + 1..last].iter().product();
        let ldy = between * columns;
        let rows = y.len() / ldy;
        let mut row = 0;
        while row < rows {
            let (outer, start) = ((first + row) / extent, (first + row) % extent);
            let height = (extent - start).min(rows - row);
            let x = &x[self.offset(0..unit, outer) + start..];
            let y = &mut y[row * ldy..];
            for middle in 0..between {
                let x = &x[self.offset(unit + 1..last, middle)..];
                let y = &mut y[middle * columns..];
                transpose(x, self.strides[last], y, ldy, height, columns);
            }
            row += height;
        }
    }
}

/// `y[r·ldy + c] ← x[c·ldx + r]` for `rows` × `columns`.
fn transpose<T: Element>(
    x: &[T],
    ldx: usize,
    y: &mut [T],
    ldy: usize,
    rows: usize,
    columns: usize,
) {
    for r in (0..rows).step_by(TILE) {
        for c in (0..columns).step_by(TILE) {
            let (height, width) = (TILE.min(rows - r), TILE.min(columns - c));
            let (x, y) = (&x[c * ldx + r..], &mut y[r * ldy + c..]);
            // Through a buffer: reads and writes both go along cache lines, and a step of a
            // power of two does not evict what is still needed.
            let mut tile = [[T::default(); TILE]; TILE];
            for (c, line) in tile[..width].iter_mut().enumerate() {
                line[..height].copy_from_slice(&x[c * ldx..][..height]);
            }
            for r in 0..height {
                let y = &mut y[r * ldy..][..width];
                y.iter_mut().zip(&tile).for_each(|(y, line)| *y = line[r]);
            }
        }
    }
}

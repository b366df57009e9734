//! Permutation of the axes of an array.

use crate::{element::Element, error::Result, host::threads::Workers, op::Permute};

/// Approximate number of elements that one task of an `indexing` kernel copies; a task copies whole
/// rows.
pub(crate) const GRAIN: usize = 1 << 16;

/// Number of rows, and of columns, in a block that is transposed at a time. One row of a block of
/// `f32` fills a cache line.
const TILE: usize = 16;

/// `y[j₀, j₁, …] ← x[i₀, i₁, …]` where `jₐ = i_order[a]`.
///
/// # Errors
/// [`Error::Length`](crate::Error::Length) if an operand has the wrong length.
pub(crate) fn permute<T: Element>(
    workers: &Workers,
    op: &Permute,
    x: &[T],
    y: &mut [T],
) -> Result<()> {
    op.check(x.len(), y.len())?;
    if x.is_empty() {
        return Ok(());
    }
    let axes = Axes::new(op);
    let last_axis = axes.extents.len() - 1;
    // Axis of the result along which the source is contiguous. After axes are merged, at most one
    // axis has a source stride of 1.
    let contiguous_axis = axes.strides.iter().position(|&stride| stride == 1).unwrap_or(last_axis);
    // A row of the result spans the axes after `contiguous_axis`, or the last axis if that is
    // `contiguous_axis`.
    let row_len: usize = axes.extents[contiguous_axis + 1..].iter().product();
    if contiguous_axis == last_axis {
        let len = axes.extents[last_axis];
        let rows = (GRAIN / len).max(1);
        workers.for_each_chunk(y, rows * len, |task, y| axes.copy_runs(x, task * rows, y));
    } else {
        let rows = (GRAIN / row_len).max(TILE);
        workers.for_each_chunk(y, rows * row_len, |task, y| {
            axes.transpose(contiguous_axis, x, task * rows, y)
        });
    }
    Ok(())
}

/// Extents of the axes of the result, outermost first, and the strides of the source along these
/// axes.
pub(crate) struct Axes {
    pub(crate) extents: Vec<usize>,
    pub(crate) strides: Vec<usize>,
}

impl Axes {
    /// Returns the axes of `op`, whose shape must have at least one element. Omits axes of extent
    /// 1, and merges neighbouring axes of the result that are neighbours in the source as well. At
    /// least one axis remains after merging.
    pub(crate) fn new(op: &Permute) -> Self {
        let shape = op.shape();
        let mut axes = Self { extents: Vec::new(), strides: Vec::new() };
        for &axis in op.order() {
            let (extent, stride) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
            if extent == 1 {
                continue;
            }
            match (axes.extents.last_mut(), axes.strides.last_mut()) {
                (Some(last_extent), Some(last_stride)) if *last_stride == extent * stride => {
                    (*last_extent, *last_stride) = (*last_extent * extent, stride);
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

    /// Returns the source offset of the element whose row-major index over the axes `range` is
    /// `index`.
    fn offset(&self, range: std::ops::Range<usize>, mut index: usize) -> usize {
        let mut offset = 0;
        for axis in range.rev() {
            offset += index % self.extents[axis] * self.strides[axis];
            index /= self.extents[axis];
        }
        offset
    }

    /// Copies runs of elements that are contiguous along the last axis of source and result,
    /// starting with run number `first`.
    fn copy_runs<T: Element>(&self, x: &[T], first: usize, y: &mut [T]) {
        let last_axis = self.extents.len() - 1;
        let len = self.extents[last_axis];
        for (run, y) in y.chunks_exact_mut(len).enumerate() {
            y.copy_from_slice(&x[self.offset(0..last_axis, first + run)..][..len]);
        }
    }

    /// Writes the rows of the result, starting with row `first`, to `y`. The index along
    /// `contiguous_axis` varies fastest from one row to the next. The result is contiguous along
    /// the last axis, and the source is contiguous along `contiguous_axis`.
    fn transpose<T: Element>(&self, contiguous_axis: usize, x: &[T], first: usize, y: &mut [T]) {
        let last_axis = self.extents.len() - 1;
        let (extent, columns) = (self.extents[contiguous_axis], self.extents[last_axis]);
        let middle_count: usize = self.extents[contiguous_axis + 1..last_axis].iter().product();
        let ldy = middle_count * columns;
        let rows = y.len() / ldy;
        let mut row = 0;
        while row < rows {
            let (outer, start) = ((first + row) / extent, (first + row) % extent);
            let height = (extent - start).min(rows - row);
            let x = &x[self.offset(0..contiguous_axis, outer) + start..];
            let y = &mut y[row * ldy..];
            for middle in 0..middle_count {
                let x = &x[self.offset(contiguous_axis + 1..last_axis, middle)..];
                let y = &mut y[middle * columns..];
                transpose(x, self.strides[last_axis], y, ldy, height, columns);
            }
            row += height;
        }
    }
}

/// `y[r·ldy + c] ← x[c·ldx + r]` for every `r < rows` and `c < columns`.
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
            // Copy through a buffer, so that both reads and writes use whole cache lines. Without a
            // buffer, a power-of-two stride would cause conflict misses: cache lines would be
            // evicted before all their elements are used.
            let mut tile = [[T::default(); TILE]; TILE];
            for (c, column) in tile[..width].iter_mut().enumerate() {
                column[..height].copy_from_slice(&x[c * ldx..][..height]);
            }
            for r in 0..height {
                let y = &mut y[r * ldy..][..width];
                y.iter_mut().zip(&tile).for_each(|(y, column)| *y = column[r]);
            }
        }
    }
}

//! Descriptors of copy kernels: block copies, row gathers and scatters, axis permutations and
//! tiling.

use crate::{
    error::{Error, Result, check_len, check_min_len},
    shape::Shape,
};

/// Copy of a `rows × columns` block between row-major matrices, to concatenate, slice or crop.
///
/// The example copies a block to the last two columns of a 2 × 3 matrix:
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::Copy2d};
///
/// let block = Copy2d { rows: 2, columns: 2, ldx: 2, ldy: 3 };
/// let mut y = [0.0f32; 6];
/// slices::copy_2d(Workers::global(), &block, &[1.0, 2.0, 3.0, 4.0], &mut y[1..])?;
/// assert_eq!(y, [0.0, 1.0, 2.0, 0.0, 3.0, 4.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy2d {
    /// Number of rows of the copied block.
    pub rows: usize,
    /// Number of columns of the copied block.
    pub columns: usize,
    /// Leading dimension of the source: distance in elements from one row to the next.
    pub ldx: usize,
    /// Leading dimension of the destination: distance in elements from one row to the next.
    pub ldy: usize,
}

impl Copy2d {
    /// Fails if a source of `x` elements, or a destination of `y` elements, is too short for the
    /// block.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand is too short. Returns
    /// [`Error::InvalidInput`] if `ldx` or `ldy` is too small.
    pub fn check(&self, x: usize, y: usize) -> Result<()> {
        if self.rows == 0 || self.columns == 0 {
            return Ok(());
        }
        for (name, ld, operand, len) in [("ldx", self.ldx, "x", x), ("ldy", self.ldy, "y", y)] {
            if self.rows > 1 && ld < self.columns {
                let reason =
                    format!("{name} {ld} is shorter than a row of {} elements", self.columns);
                return Err(Error::invalid_input("copy_2d", reason));
            }
            let last_row_start = (self.rows - 1).checked_mul(ld);
            let required_len = last_row_start.and_then(|start| start.checked_add(self.columns));
            check_min_len("copy_2d", operand, required_len.unwrap_or(usize::MAX), len)?;
        }
        Ok(())
    }
}

/// Gather from, or scatter-add to, the rows of a `table × width` matrix, selected by `count` row
/// indices.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::RowIndexing};
///
/// let embeddings = [0.0f32, 0.5, 1.0, 1.5, 2.0, 2.5]; // two numbers for each of three words
/// let op = RowIndexing { table: 3, width: 2, count: 2 };
/// let mut sentence = [0.0; 4];
/// slices::gather(Workers::global(), &op, &embeddings, &[2, 0], &mut sentence)?;
/// assert_eq!(sentence, [2.0, 2.5, 0.0, 0.5]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowIndexing {
    /// Number of rows of the table.
    pub table: usize,
    /// Number of elements in a row of the table.
    pub width: usize,
    /// Number of indices, each of which selects a row of the table.
    pub count: usize,
}

impl RowIndexing {
    /// Fails unless the lengths of the table, the indices and the selected rows match the
    /// descriptor.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    /// Returns [`Error::ShapeOverflow`] if an element count overflows.
    pub fn check(
        &self,
        op: &'static str,
        table: (&'static str, usize),
        indices: (&'static str, usize),
        rows: (&'static str, usize),
    ) -> Result<()> {
        check_len(op, table.0, Shape::new(&[self.table, self.width])?.count(), table.1)?;
        check_len(op, indices.0, self.count, indices.1)?;
        check_len(op, rows.0, Shape::new(&[self.count, self.width])?.count(), rows.1)
    }
}

/// Permutation of axes: axis `i` of the result is axis `order[i]` of the source.
///
/// ```
/// use cortado::{Shape, host::Workers, kernel::slices, op::Permute};
///
/// let planes = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]; // red, green and blue of two pixels
/// let op = Permute::new(Shape::new(&[3, 2])?, &[1, 0])?;
/// let mut pixels = [0.0; 6];
/// slices::permute(Workers::global(), &op, &planes, &mut pixels)?;
/// assert_eq!((op.output(), pixels), (vec![2, 3], [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permute {
    shape: Shape,
    order: Vec<usize>,
}

impl Permute {
    /// Creates the descriptor of a permutation of the axes of `shape`.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] unless `order` contains each axis once.
    pub fn new(shape: Shape, order: &[usize]) -> Result<Self> {
        let mut sorted_order = order.to_vec();
        sorted_order.sort_unstable();
        if !sorted_order.into_iter().eq(0..shape.len()) {
            let reason = format!("{order:?} does not contain each axis of shape {shape} once");
            return Err(Error::Shape(reason));
        }
        Ok(Self { shape, order: order.to_vec() })
    }

    /// Returns the shape of the source operand.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the index of the source axis for each axis of the permuted result.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Fails unless the source and the result have the number of elements of the shape.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    pub fn check(&self, x: usize, y: usize) -> Result<()> {
        check_len("permute", "x", self.shape.count(), x)?;
        check_len("permute", "y", self.shape.count(), y)
    }

    /// Returns the extents of the permuted result.
    pub fn output(&self) -> Vec<usize> {
        self.order.iter().map(|&axis| self.shape[axis]).collect()
    }
}

/// Repetition along one axis: each of `outer` contiguous blocks of `inner` elements is repeated
/// `tiles` times.
///
/// ```
/// use cortado::{host::Workers, kernel::slices, op::Tile};
///
/// let op = Tile { outer: 2, inner: 2, tiles: 2 };
/// let mut y = [0.0f32; 8];
/// slices::tile(Workers::global(), &op, &[1.0, 2.0, 3.0, 4.0], &mut y)?;
/// assert_eq!(y, [1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Product of the extents of all axes before the repeated axis.
    pub outer: usize,
    /// Product of the extents of the repeated axis and of all axes after it.
    pub inner: usize,
    /// Number of repetitions of each block.
    pub tiles: usize,
}

impl Tile {
    /// Fails unless the lengths of the source and the result match the descriptor.
    ///
    /// # Errors
    /// Returns [`Error::Length`], which names the operand, if an operand has the wrong length.
    /// Returns [`Error::ShapeOverflow`] if an element count overflows.
    pub fn check(
        &self,
        op: &'static str,
        x: (&'static str, usize),
        y: (&'static str, usize),
    ) -> Result<()> {
        check_len(op, x.0, Shape::new(&[self.outer, self.inner])?.count(), x.1)?;
        check_len(op, y.0, Shape::new(&[self.outer, self.tiles, self.inner])?.count(), y.1)
    }
}

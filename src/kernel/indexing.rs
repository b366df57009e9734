//! Kernels that copy elements: blocks, rows by index, permutations and repetitions.

use crate::{
    element::Element,
    op::{Copy2d, Permute, RowIndexing, Tile},
};

macro_rules! kernels {
    ($then:ident) => {
        $then! {
            /// Kernels that copy elements (blocks, rows by index, permutations, repetitions), and
            /// the gradients of these kernels. The [module page](crate::kernel) lists the rules
            /// that all kernels share.
            ///
            /// ```
            /// use cortado::{kernel::Indexing, op::RowIndexing, prelude::*};
            ///
            /// let device = CpuDevice::new();
            /// let rows = Blob::from_slice(&device, &[3, 1], &[1.0f32, 20.0, 300.0])?;
            /// let indices = Blob::from_slice(&device, &[3], &[2u32, 0, 2])?;
            /// let table = Blob::zeros(&device, &[4, 1])?;
            /// let op = RowIndexing { table: 4, width: 1, count: 3 };
            /// let (rows, indices, mut sums) = (rows.data()?, indices.data()?, table.data_mut()?);
            /// device.scatter_add(&op, rows.view(), indices.view(), sums.view_mut())?;
            /// assert_eq!(sums.host_mut()?, [20.0, 0.0, 301.0, 0.0]);
            /// # Ok::<(), cortado::Error>(())
            /// ```
            trait Indexing {}

            /// `y[r·ldy + c] ← x[r·ldx + c]` for each row r and column c of a block; elements of
            /// `y` outside the block are unchanged. With one row, any leading dimension is valid.
            ///
            /// Lengths: `x` has at least `(rows − 1)·ldx + columns` elements and `y` at least
            /// `(rows − 1)·ldy + columns`. If the block is empty, `x` and `y` may have any length.
            fn copy_2d<T: Element>(op: &Copy2d, x: read T, y: update T) { op.check(x, y) }

            /// `y[i] ← table[indices[i]]`, row by row. An index may occur several times. An index
            /// beyond the end of the table is an error, which the device may report in a later
            /// call.
            ///
            /// Lengths: `table` has `op.table · op.width` elements, `indices` has `op.count`, and
            /// `y` has `op.count · op.width`.
            fn gather<T: Element>(
                op: &RowIndexing, table: read T, indices: read u32, y: overwrite T
            ) { op.check("gather", ("table", table), ("indices", indices), ("y", y)) }

            /// `table[indices[i]] ← table[indices[i]] + y[i]`, row by row, in the order of `i`.
            /// Each sum is rounded to `T` before the next term is added. Rows that no index selects
            /// are unchanged. An index beyond the end of the table is an error, which the device
            /// may report in a later call.
            ///
            /// Lengths: `y` has `op.count · op.width` elements, `indices` has `op.count`, and
            /// `table` has `op.table · op.width`.
            fn scatter_add<T: Element>(
                op: &RowIndexing, y: read T, indices: read u32, table: update T
            ) { op.check("scatter_add", ("table", table), ("indices", indices), ("y", y)) }

            /// `y ← x`, with the axes of `x` permuted. An operand without axes has one element.
            ///
            /// Lengths: `x` and `y` have `op.shape().count()` elements.
            fn permute<T: Element>(op: &Permute, x: read T, y: overwrite T) { op.check(x, y) }

            /// `y ← x`, repeated `op.tiles` times along an axis.
            ///
            /// Lengths: `x` has `op.outer · op.inner` elements, and `y` has `op.tiles` times as
            /// many.
            fn tile<T: Element>(op: &Tile, x: read T, y: overwrite T) {
                op.check("tile", ("x", x), ("y", y))
            }

            /// `dx ← the sum of dy over the repetitions`, the gradient of `tile`; 0 if `op.tiles`
            /// is 0.
            ///
            /// Lengths: `dx` has `op.outer · op.inner` elements, and `dy` has `op.tiles` times as
            /// many.
            fn tile_backward<T: Element>(op: &Tile, dy: read T, dx: overwrite T) {
                op.check("tile_backward", ("dx", dx), ("dy", dy))
            }

            /// `yᵢ ← xᵢ`, converted to `u32`, where `xᵢ` is an integer below `bound` that is stored
            /// as a floating-point element. A negative number, a fraction, NaN, an infinity and a
            /// number of at least `bound` are errors, which the device may report in a later call.
            ///
            /// Lengths: `y` has as many elements as `x`.
            fn to_indices<T: Element>(bound: u32, x: read T, y: overwrite u32) {
                check_len("to_indices", "y", x, y)
            }
        }
    };
}
kernels!(declare_family);
pub(crate) use kernels;

//! Launches of the gather, scatter, copy, permute and tile kernels.

use crate::{
    device::{CudaDevice, cuda::kernel_errors::KernelError},
    element::Element,
    error::{Result, check_len},
    host::Axes,
    kernel::{Indexing, fallback},
    memory::{View, ViewMut},
    op::{Copy2d, Permute, RowIndexing, Tile},
};

/// Largest number of axes that the kernel `permute` supports.
const MAX_AXES: usize = 8;

/// Number of rows, and of columns, in a tile that one thread block transposes.
const TRANSPOSE_TILE: usize = 32;

/// Returns the extents (batch, rows, columns) of the result if the permutation transposes a batch
/// of matrices, else `None`.
fn transpose_extents(axes: &Axes) -> Option<[usize; 3]> {
    match (&axes.extents[..], &axes.strides[..]) {
        (&[rows, columns], &[1, stride]) if stride == rows => Some([1, rows, columns]),
        (&[batch, rows, columns], &[batch_stride, 1, stride])
            if stride == rows && batch_stride == rows * columns =>
        {
            Some([batch, rows, columns])
        }
        _ => None,
    }
}

impl Indexing for CudaDevice {
    fn copy_2d<T: Element>(
        &self,
        op: &Copy2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check(x.len(), y.len())?;
        let &Copy2d { rows, columns, ldx, ldy } = op;
        let launch = self.kernel::<T>("copy_2d")?.sizes([rows, columns]).read(x.device()?);
        let launch = launch.size(ldx).write(y.device_mut()?).size(ldy);
        launch.grid_2d_packs::<T>(rows, columns)
    }

    fn gather<T: Element>(
        &self,
        op: &RowIndexing,
        table: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let lens = (table.len(), indices.len(), y.len());
        op.check("gather", ("table", lens.0), ("indices", lens.1), ("y", lens.2))?;
        let &RowIndexing { table: rows, width, count } = op;
        let launch = self.kernel::<T>("gather")?.sizes([rows, width, count]);
        let launch = launch.read(table.device()?).read(indices.device()?);
        let launch = launch.error_flag(KernelError::Index)?.write(y.device_write_only()?);
        launch.grid_2d(count, width)
    }

    fn scatter_add<T: Element>(
        &self,
        op: &RowIndexing,
        y: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        mut table: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let lens = (table.len(), indices.len(), y.len());
        op.check("scatter_add", ("table", lens.0), ("indices", lens.1), ("y", lens.2))?;
        let &RowIndexing { table: rows, width, count } = op;
        let launch = self.kernel::<T>("scatter_add")?.sizes([rows, width, count]);
        let launch = launch.read(y.device()?).read(indices.device()?);
        launch.error_flag(KernelError::Index)?.write(table.device_mut()?).blocks(count, 256)
    }

    fn permute<T: Element>(
        &self,
        op: &Permute,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let n = op.shape().count();
        check_len("permute", "x", n, x.len())?;
        check_len("permute", "y", n, y.len())?;
        if n == 0 {
            return Ok(());
        }
        let axes = Axes::new(op);
        if let Some([batch, rows, columns]) = transpose_extents(&axes) {
            let launch = self.variant::<T>("permute", "transpose")?.sizes([batch, rows, columns]);
            let launch = launch.read(x.device()?).write(y.device_write_only()?);
            return launch.blocks(
                batch * rows.div_ceil(TRANSPOSE_TILE) * columns.div_ceil(TRANSPOSE_TILE),
                256,
            );
        }
        let count = axes.extents.len();
        if count > MAX_AXES {
            return fallback::permute(self, op, x, y);
        }
        // Fields of the struct `Axes` in `kernels/indexing.cu`: axis count, extents and source
        // strides.
        let mut words = [0; 1 + 2 * MAX_AXES];
        words[0] = count as u64;
        let (extents, strides) = words[1..].split_at_mut(MAX_AXES);
        extents.iter_mut().zip(&axes.extents).for_each(|(to, extent)| *to = *extent as u64);
        strides.iter_mut().zip(&axes.strides).for_each(|(to, stride)| *to = *stride as u64);
        let launch = self.kernel::<T>("permute")?.size(n).arg(words);
        launch.read(x.device()?).write(y.device_write_only()?).grid_1d(n)
    }

    fn tile<T: Element>(
        &self,
        op: &Tile,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("tile", ("x", x.len()), ("y", y.len()))?;
        let &Tile { outer, inner, tiles } = op;
        let launch = self.kernel::<T>("tile")?.sizes([outer, inner, tiles]);
        launch.read(x.device()?).write(y.device_write_only()?).grid_2d(outer * tiles, inner)
    }

    fn tile_backward<T: Element>(
        &self,
        op: &Tile,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check("tile_backward", ("dx", dx.len()), ("dy", dy.len()))?;
        let (&Tile { outer, inner, tiles }, n) = (op, dx.len());
        let launch = self.kernel::<T>("tile_backward")?.sizes([outer, inner, tiles]);
        launch.read(dy.device()?).write(dx.device_write_only()?).grid_1d(n)
    }

    fn to_indices<T: Element>(
        &self,
        bound: u32,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        check_len("to_indices", "y", x.len(), y.len())?;
        let n = y.len();
        let launch = self.kernel::<T>("to_indices")?.size(n).arg(bound).read(x.device()?);
        launch.error_flag(KernelError::Number)?.write(y.device_write_only()?).grid_1d(n)
    }
}

//! Indexing kernels: 2-D copies, tiling, gather, scatter-add and permutation.

use super::reduce_launch::{Layout, ReductionShape, reduce, sum_reducer};
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
    kernel_errors::KernelError,
};
use cortado::{
    Element, Result, View, ViewMut,
    error::check_len,
    kernel::{Indexing, fallback},
    op::{Copy2d, Permute, RowIndexing, Tile},
};
use std::fmt::Write;

const COPY_2D: Kernel = Kernel {
    name: "copy_2d",
    reads: &["x: u32"],
    writes: &["y: u32"],
    scalars: &["columns", "ldx", "ldy"],
    body: &[
        "fn each(i: u32) {
    let row = i / p.columns;
    let column = i % p.columns;
    y[p.y + row * p.ldy + column] = x[p.x + row * p.ldx + column];
}",
        EACH,
    ],
};

const TILE: Kernel = Kernel {
    name: "tile",
    reads: &["x: u32"],
    writes: &["y: u32"],
    scalars: &["inner", "tiles"],
    body: &[
        "fn each(i: u32) {
    y[p.y + i] = x[p.x + i / p.inner / p.tiles * p.inner + i % p.inner];
}",
        EACH,
    ],
};

/// Kernel that checks the indices of a gather or scatter-add, and reports indices outside the
/// table. If this kernel reports an invalid index, the gather or scatter-add that follows does
/// nothing.
const INDICES: Kernel = Kernel {
    name: "indices",
    reads: &["indices: u32"],
    writes: &["error_flags: atomic<u32>"],
    scalars: &["table_rows"],
    body: &[
        "fn each(i: u32) {
    if indices[p.indices + i] >= p.table_rows {
        atomicMax(&error_flags[p.error_flags], ~i);
    }
}",
        EACH,
    ],
};

const GATHER: Kernel = Kernel {
    name: "gather",
    reads: &["table: u32", "indices: u32", "error_flags: u32"],
    writes: &["y: u32"],
    scalars: &["width"],
    body: &[
        "fn each(i: u32) {
    if error_flags[p.error_flags] == 0u {
        let row = indices[p.indices + i / p.width];
        y[p.y + i] = table[p.table + row * p.width + i % p.width];
    }
}",
        EACH,
    ],
};

/// Kernel that runs one thread per column of the table, so that a single thread adds the terms of
/// an element, in the order of the indices. An iteration adds 16 terms, because Mesa's llvmpipe
/// silently ends a thread's loops after 65,535 iterations.
const SCATTER_ADD: Kernel = Kernel {
    name: "scatter_add",
    reads: &["y", "indices: u32", "error_flags: u32"],
    writes: &["table"],
    scalars: &["width", "count"],
    body: &[
        "fn add(column: u32, i: u32) {
    if i < p.count {
        let at = p.table + indices[p.indices + i] * p.width + column;
        table[at] = table[at] + y[p.y + i * p.width + column];
    }
}
fn add_4(column: u32, i: u32) {
    add(column, i);
    add(column, i + 1u);
    add(column, i + 2u);
    add(column, i + 3u);
}
fn each(column: u32) {
    if error_flags[p.error_flags] != 0u {
        return;
    }
    for (var i = 0u; i < p.count; i += 16u) {
        add_4(column, i);
        add_4(column, i + 4u);
        add_4(column, i + 8u);
        add_4(column, i + 12u);
    }
}",
        EACH,
    ],
};

const PERMUTE: Kernel = Kernel {
    name: "permute",
    reads: &["x: u32"],
    writes: &["y: u32"],
    scalars: &[],
    body: &["fn each(i: u32) { y[p.y + i] = x[p.x + place(i)]; }", EACH],
};

/// Returns the WGSL code of the function `place(i)`, which returns the index in the source of
/// element `i` of the permuted result.
fn place_function(op: &Permute) -> String {
    let mut body = String::new();
    for &axis in op.order().iter().rev() {
        let (extent, step) = (op.shape()[axis], op.shape()[axis + 1..].iter().product::<usize>());
        let _ = write!(body, "at += q % {extent}u * {step}u; q /= {extent}u;\n    ");
    }
    format!("fn place(i: u32) -> u32 {{\n    var q = i; var at = 0u;\n    {body}return at;\n}}\n")
}

impl WgpuDevice {
    /// Queues a kernel that checks the indices of a gather or scatter-add. If an index is invalid,
    /// the next wait for the stream returns an error.
    fn check_indices(&self, op: &RowIndexing, indices: View<'_, u32, Self>) -> Result<()> {
        let launch = INDICES.on(self).read(indices.device()?).error_flag(KernelError::Index);
        launch.sizes([op.table]).each(op.count)
    }
}

impl Indexing for WgpuDevice {
    fn copy_2d<T: Element>(
        &self,
        op: &Copy2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("copy_2d") else {
            return fallback::copy_2d(self, op, x, y);
        };
        op.check(x.len(), y.len())?;
        let launch = COPY_2D.on(self).read(x.device()?).write(y.device_mut()?);
        launch.sizes([op.columns, op.ldx, op.ldy]).each(op.rows * op.columns)
    }

    fn tile<T: Element>(
        &self,
        op: &Tile,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("tile") else {
            return fallback::tile(self, op, x, y);
        };
        op.check("tile", ("x", x.len()), ("y", y.len()))?;
        let n = y.len();
        let launch = TILE.on(self).read(x.device()?).write(y.device_write_only()?);
        launch.sizes([op.inner, op.tiles]).each(n)
    }

    fn tile_backward<T: Element>(
        &self,
        op: &Tile,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("tile_backward") else {
            return fallback::tile_backward(self, op, dy, dx);
        };
        op.check("tile_backward", ("dx", dx.len()), ("dy", dy.len()))?;
        let &Tile { inner, tiles, .. } = op;
        let shape = ReductionShape {
            outputs: dx.len(),
            items: tiles,
            q: Layout { run: inner, stride: tiles * inner },
            t: Layout::strided(inner),
        };
        let dy = dy.device()?;
        let dx = dx.device_write_only()?;
        let dx = (&*dx.buffer, dx.offset / 4);
        reduce(self, sum_reducer("sum", "x"), shape, dy, None, [0.0; 2], dx)
    }

    fn gather<T: Element>(
        &self,
        op: &RowIndexing,
        table: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("gather") else {
            return fallback::gather(self, op, table, indices, y);
        };
        let lens = (table.len(), indices.len(), y.len());
        op.check("gather", ("table", lens.0), ("indices", lens.1), ("y", lens.2))?;
        self.check_indices(op, indices)?;
        let launch = GATHER.on(self).read(table.device()?).read(indices.device()?);
        let launch = launch.error_flag(KernelError::Index).write(y.device_write_only()?);
        launch.sizes([op.width]).each(lens.2)
    }

    fn scatter_add<T: Element>(
        &self,
        op: &RowIndexing,
        y: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        mut table: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("scatter_add") else {
            return fallback::scatter_add(self, op, y, indices, table);
        };
        let lens = (table.len(), indices.len(), y.len());
        op.check("scatter_add", ("table", lens.0), ("indices", lens.1), ("y", lens.2))?;
        self.check_indices(op, indices)?;
        let launch = SCATTER_ADD.on(self).read(y.device()?).read(indices.device()?);
        let launch = launch.error_flag(KernelError::Index).write(table.device_mut()?);
        launch.sizes([op.width, op.count]).each(op.width)
    }

    fn permute<T: Element>(
        &self,
        op: &Permute,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("permute") else {
            return fallback::permute(self, op, x, y);
        };
        let n = op.shape().count();
        check_len("permute", "x", n, x.len())?;
        check_len("permute", "y", n, y.len())?;
        if n == 0 {
            return Ok(());
        }
        let source = place_function(op);
        let launch = PERMUTE.variant(self, &source, || source.clone());
        launch.read(x.device()?).write(y.device_write_only()?).each(n)
    }
}

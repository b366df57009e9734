//! Mutants with bugs in the indexing kernels.

use crate::{
    bug::Bug,
    device::Mutant,
    sizes::{BITS_16, BITS_20, stop, wrap},
};
use cortado::{
    DType, Element, Result, View, ViewMut,
    kernel::{Indexing, fallback},
    op::{Copy2d, Permute, RowIndexing, Tile},
};

/// Flushes subnormal elements to 0, like the arithmetic of many devices.
fn flush<T: Element>(y: &mut [T]) {
    let smallest_normal = match T::DTYPE {
        DType::F16 => 2.0f64.powi(-14),
        DType::Bf16 | DType::F32 => f32::MIN_POSITIVE.into(),
        _ => f64::MIN_POSITIVE,
    };
    let subnormals =
        y.iter_mut().filter(|y| y.to_f64() != 0.0 && y.to_f64().abs() < smallest_normal);
    subnormals.for_each(|y| *y = T::default());
}

impl Indexing for Mutant {
    fn copy_2d<T: Element>(
        &self,
        op: &Copy2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        op.check(x.len(), y.len())?;
        if self.is(Bug::CopiesWholeRows) && op.ldx == op.ldy && op.rows > 1 && op.columns > 0 {
            let len = (op.rows - 1) * op.ldx + op.columns;
            return fallback::copy(self, x.slice(0..len)?, y.slice_mut(0..len)?);
        }
        let ldy = if self.is(Bug::CopyPacks) { op.ldy.min(op.columns) } else { op.ldy };
        if self.is(Bug::BlocksFlushSubnormals) {
            fallback::copy_2d(self, op, x, y.reborrow())?;
            flush(y.host_mut()?);
            return Ok(());
        }
        let rows = if self.is(Bug::CopyStopsAtRow) { op.rows.min(BITS_16) } else { op.rows };
        fallback::copy_2d(self, &Copy2d { rows, ldy, ..*op }, x, y)
    }

    fn gather<T: Element>(
        &self,
        op: &RowIndexing,
        table: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::GatherNarrow) {
            let narrow_indices: Vec<_> =
                indices.host()?.iter().map(|&i| u32::from(i as u16)).collect();
            let is_valid = indices.host()?.iter().all(|&i| (i as usize) < op.table);
            let narrow_indices = self.scratch(&narrow_indices)?;
            let narrow_indices = View::new(&narrow_indices, indices.len())?;
            return fallback::gather(
                self,
                op,
                table,
                if is_valid { narrow_indices } else { indices },
                y,
            );
        }
        if self.is(Bug::GatherStops) || self.is(Bug::GatherFlushesSubnormals) {
            let (mut y, old) = (y, vec![T::default(); op.count * op.width]);
            fallback::gather(self, op, table, indices, y.reborrow())?;
            match self.bug {
                Bug::GatherStops => stop(y.host_mut()?, &old, BITS_16 * op.width),
                _ => flush(y.host_mut()?),
            }
            return Ok(());
        }
        let last_row = op.table.saturating_sub(1) as u32;
        let clamped_indices: Vec<_> =
            indices.host()?.iter().map(|&index| index.min(last_row)).collect();
        let clamped_indices = self.scratch(&clamped_indices)?;
        let indices = match self.bug {
            Bug::GatherClamps => View::new(&clamped_indices, indices.len())?,
            _ => indices,
        };
        fallback::gather(self, op, table, indices, y)
    }

    fn scatter_add<T: Element>(
        &self,
        op: &RowIndexing,
        y: View<'_, T, Self>,
        indices: View<'_, u32, Self>,
        mut table: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::ScatterStops) && op.count > BITS_16 {
            let (y, indices) = (y.slice(0..BITS_16 * op.width)?, indices.slice(0..BITS_16)?);
            let op = RowIndexing { count: BITS_16, ..*op };
            return fallback::scatter_add(self, &op, y, indices, table);
        }
        fallback::scatter_add(self, op, y, indices, table.reborrow())?;
        if self.is(Bug::ScatterOverwrites) && op.width > 0 {
            let table = table.host_mut()?;
            for (row, &index) in y.host()?.chunks(op.width).zip(indices.host()?) {
                table[index as usize * op.width..][..op.width].copy_from_slice(row);
            }
        }
        Ok(())
    }

    fn permute<T: Element>(
        &self,
        op: &Permute,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let mut inverse = vec![0; op.order().len()];
        op.order().iter().enumerate().for_each(|(i, &axis)| inverse[axis] = i);
        let inverse = Permute::new(op.shape().clone(), &inverse)?;
        if matches!(self.bug, Bug::PermuteWraps | Bug::PermuteFlushesSubnormals) {
            let mut y = y;
            fallback::permute(self, op, x, y.reborrow())?;
            match self.bug {
                Bug::PermuteWraps => wrap(y.host_mut()?, BITS_20),
                _ => flush(y.host_mut()?),
            }
            return Ok(());
        }
        fallback::permute(self, if self.is(Bug::PermuteInverse) { &inverse } else { op }, x, y)
    }

    fn tile<T: Element>(
        &self,
        op: &Tile,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Tile { outer, inner, tiles } = *op;
        let op = match self.bug {
            Bug::TileInner => Tile { outer: outer * inner, inner: 1, tiles },
            _ => *op,
        };
        let mut y = y;
        fallback::tile(self, &op, x, y.reborrow())?;
        match self.bug {
            Bug::TileWraps => wrap(y.host_mut()?, BITS_20),
            Bug::TileFlushesSubnormals => flush(y.host_mut()?),
            _ => {}
        }
        Ok(())
    }

    fn to_indices<T: Element>(
        &self,
        bound: u32,
        x: View<'_, T, Self>,
        y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        let truncated_indices = x.host()?.iter().map(|x| T::from_f64(x.to_f64().trunc()));
        let truncated_indices = self.scratch(&truncated_indices.collect::<Vec<_>>())?;
        let x = if self.is(Bug::IndicesTruncated) {
            View::new(&truncated_indices, x.len())?
        } else {
            x
        };
        fallback::to_indices(self, bound, x, y)
    }
}

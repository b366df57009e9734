//! Cropping of blobs along several axes.

use super::prelude::*;
use crate::{
    memory::{View, ViewMut},
    op::Copy2d,
};

/// The crop of one axis of a blob.
pub(super) struct AxisCrop {
    /// Extent of the axis before the crop.
    pub(super) extent: usize,
    /// Extent of the axis after the crop.
    pub(super) cropped_extent: usize,
    /// Index, along the axis before the crop, at which the region starts.
    pub(super) offset: usize,
}

/// The region of a bottom that becomes the top. The region consists of 2-D blocks, one for
/// each combination of indices along the axes in `outer`.
#[derive(Default)]
pub(super) struct CropRegion {
    outer: Vec<AxisCrop>,
    rows: Option<AxisCrop>,
    columns: Option<AxisCrop>,
}

impl CropRegion {
    /// Merges every uncropped axis into the preceding axis, so that the region consists of fewer
    /// blocks with longer rows.
    pub(super) fn new(axes: impl IntoIterator<Item = AxisCrop>) -> Self {
        let mut outer: Vec<AxisCrop> = Vec::new();
        for axis in axes {
            match outer.last_mut() {
                Some(last) if axis.extent == axis.cropped_extent => {
                    last.extent *= axis.extent;
                    last.cropped_extent *= axis.extent;
                    last.offset *= axis.extent;
                }
                _ => outer.push(axis),
            }
        }
        let columns = outer.pop();
        let rows = outer.pop();
        Self { outer, rows, columns }
    }

    /// Calls `copy` for each 2-D block, with the block's offset in the bottom, its offset in the
    /// top, and its [`Copy2d`] descriptor.
    fn blocks(&self, mut copy: impl FnMut(usize, usize, Copy2d) -> Result<()>) -> Result<()> {
        let unit_axis = AxisCrop { extent: 1, cropped_extent: 1, offset: 0 };
        let columns = self.columns.as_ref().unwrap_or(&unit_axis);
        let rows = self.rows.as_ref().unwrap_or(&unit_axis);
        let op = Copy2d {
            rows: rows.cropped_extent,
            columns: columns.cropped_extent,
            ldx: columns.extent,
            ldy: columns.cropped_extent,
        };
        let blocks: usize = self.outer.iter().map(|crop| crop.cropped_extent).product();
        if op.rows * op.columns == 0 {
            return Ok(());
        }
        for block in 0..blocks {
            // Convert the block number to indices of the outer axes, innermost axis first.
            let (mut block_index, mut offset, mut stride) =
                (block, 0, rows.extent * columns.extent);
            for crop in self.outer.iter().rev() {
                offset += (block_index % crop.cropped_extent + crop.offset) * stride;
                block_index /= crop.cropped_extent;
                stride *= crop.extent;
            }
            let bottom_offset = offset + rows.offset * columns.extent + columns.offset;
            copy(bottom_offset, block * op.rows * op.columns, op)?;
        }
        Ok(())
    }

    /// `y ← the region of x`
    pub(super) fn crop<T: Element>(
        &self,
        device: &AnyDevice,
        x: View<'_, T, AnyDevice>,
        mut y: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        self.blocks(|bottom_offset, top_offset, op| {
            let (x, range) =
                (x.slice(bottom_offset..x.len())?, top_offset..top_offset + op.rows * op.columns);
            device.copy_2d(&op, x, y.slice_mut(range)?)
        })
    }

    /// `the region of dx ← dy`; sets the rest of `dx` to 0.
    pub(super) fn crop_backward<T: Element>(
        &self,
        device: &AnyDevice,
        dy: View<'_, T, AnyDevice>,
        mut dx: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        device.fill(T::default(), dx.reborrow())?;
        self.blocks(|bottom_offset, top_offset, op| {
            let (dy, end) = (dy.slice(top_offset..top_offset + op.rows * op.columns)?, dx.len());
            let op = Copy2d { ldx: op.ldy, ldy: op.ldx, ..op };
            device.copy_2d(&op, dy, dx.slice_mut(bottom_offset..end)?)
        })
    }
}

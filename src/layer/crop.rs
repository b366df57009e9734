//! The Crop layer, which cuts a region out of a blob.

use super::prelude::*;
use crate::{op::Copy2d, shape::Shape};

/// Crops each axis of the first bottom, from `axis` on, to the extent of the same axis in the
/// second bottom. The field `offset` holds the first index that the layer keeps, as one value for
/// all cropped axes or one value per cropped axis. The layer ignores the values of the second
/// bottom, so the gradient of this bottom is zero.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 3 } } }
///     layer { type: "Input" top: "like" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } } }
///     layer { type: "Crop" bottom: "x" bottom: "like" top: "y"
///       crop_param { axis: 3 offset: 1 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("x").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().to_vec()?, [1.0, 2.0, 4.0, 5.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct CropLayer {
    axis: isize,
    offsets: Vec<usize>,
    region: CropRegion,
}

struct AxisCrop {
    /// Extent of the cropped axis in the first bottom.
    extent: usize,
    /// Extent of the cropped axis in the top.
    cropped_extent: usize,
    /// Index, along the axis of the first bottom, at which the region starts.
    offset: usize,
}

/// The region of the first bottom that becomes the top. The region consists of 2-D blocks, one for
/// each combination of indices along the axes in `outer`.
#[derive(Default)]
struct CropRegion {
    outer: Vec<AxisCrop>,
    rows: Option<AxisCrop>,
    columns: Option<AxisCrop>,
}

impl CropRegion {
    /// Merges every uncropped axis into the preceding axis, so that the region consists of fewer
    /// blocks with longer rows.
    fn new(axes: impl IntoIterator<Item = AxisCrop>) -> Self {
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
}

impl CropLayer {
    /// Creates the layer.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.crop_param.clone().unwrap_or_default();
        let offsets = param.offset.iter().map(|&offset| offset as usize).collect();
        Ok(Self { axis: param.axis() as isize, offsets, region: CropRegion::default() })
    }

    /// Returns the crop of each axis of `shape` to the extent of the same axis in `like`.
    fn axis_crops(&self, shape: &Shape, like: &Shape) -> Result<Vec<AxisCrop>> {
        let axis = shape.canonical_axis(self.axis)?;
        let (axes, offsets) = (shape.len() - axis, self.offsets.len());
        if offsets > 1 && offsets != axes {
            return wrong_shape(format!(
                "offset: expected 1 or {axes} values for shape {shape}, found {offsets}"
            ));
        }
        if like.len() != shape.len() {
            return wrong_shape(format!(
                "bottoms of shapes {shape} and {like} differ in their number of axes"
            ));
        }
        let crop = |(i, (&extent, &cropped_extent)): (usize, (&usize, &usize))| {
            let Some(index) = i.checked_sub(axis) else {
                return Ok(AxisCrop { extent, cropped_extent: extent, offset: 0 });
            };
            let offset = self.offsets.get(index).or(self.offsets.first()).copied().unwrap_or(0);
            if offset.checked_add(cropped_extent).is_none_or(|end| end > extent) {
                return wrong_shape(format!(
                    "axis {i} of shape {shape} does not have {cropped_extent} indices from {offset} \
                     on"
                ));
            }
            Ok(AxisCrop { extent, cropped_extent, offset })
        };
        shape.iter().zip(like.iter()).enumerate().map(crop).collect()
    }
}

impl<T: Element> Layer<T> for CropLayer {
    fn kind(&self) -> &'static str {
        "Crop"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(2, 1)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let crops = self.axis_crops(bottom[0].shape(), bottom[1].shape())?;
        top[0].reshape(&crops.iter().map(|crop| crop.cropped_extent).collect::<Vec<_>>())?;
        self.region = CropRegion::new(crops);
        Ok(())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (x, mut y) = (bottom[0].data()?, top[0].data_mut()?);
        let (x, mut y) = (x.view(), y.view_mut());
        self.region.blocks(|bottom_offset, top_offset, op| {
            let (x, range) =
                (x.slice(bottom_offset..x.len())?, top_offset..top_offset + op.rows * op.columns);
            device.copy_2d(&op, x, y.slice_mut(range)?)
        })
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        if propagate.bottom[1] {
            device.fill(T::default(), bottom[1].diff_mut()?.view_mut())?;
        }
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (dy, mut dx) = (top[0].diff()?, bottom[0].diff_mut()?);
        let (dy, mut dx) = (dy.view(), dx.view_mut());
        device.fill(T::default(), dx.reborrow())?;
        self.region.blocks(|bottom_offset, top_offset, op| {
            let (dy, end) = (dy.slice(top_offset..top_offset + op.rows * op.columns)?, dx.len());
            let op = Copy2d { ldx: op.ldy, ldy: op.ldx, ..op };
            device.copy_2d(&op, dy, dx.slice_mut(bottom_offset..end)?)
        })
    }
}

//! Export of layers that rearrange, repeat or reduce elements, and of layers without bottoms.

use super::{layer_export::LayerExport, tensors::extents};
use crate::{
    error::Result,
    filler::Filler,
    layer::PriorBoxes,
    proto::{onnx::tensor_proto::DataType, reduction_parameter::ReductionOp},
};

impl LayerExport<'_> {
    /// Converts a value to `f32`.
    pub(super) fn cast_to_float(&mut self, value: &str) -> String {
        self.node("Cast", &[value]).int("to", DataType::Float as i64).value()
    }

    /// Converts an `f32` value to integers, towards zero as Caffe does.
    pub(super) fn cast_to_integer(&mut self, value: &str) -> String {
        self.node("Cast", &[value]).int("to", DataType::Int64 as i64).value()
    }

    /// Concatenates values along `axis`.
    pub(super) fn concat(&mut self, values: &[String], axis: i64) -> String {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        self.node("Concat", &values).int("axis", axis).value()
    }
}

/// Exports Reshape and Flatten. The shape of the top is the net's, so that `axis`, `num_axes`, 0 and
/// −1 in the definition are resolved.
pub(super) fn reshape(cx: &mut LayerExport<'_>) -> Result<()> {
    let shape = cx.tops[0].shape.clone();
    let x = cx.bottom(0);
    let y = cx.reshape(&x, &shape);
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn concat(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.concat_param.unwrap_or_default();
    let axis = param.axis.unwrap_or_else(|| param.concat_dim() as i32);
    let axis = cx.shape(0)?.canonical_axis(axis as isize)?;
    let bottoms: Vec<String> = (0..cx.bottoms.len()).map(|i| cx.bottom(i)).collect();
    let y = cx.concat(&bottoms, axis as i64);
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn slice(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.slice_param.clone().unwrap_or_default();
    let axis = param.axis.unwrap_or_else(|| param.slice_dim() as i32);
    let axis = cx.shape(0)?.canonical_axis(axis as isize)?;
    let x = cx.bottom(0);
    if cx.tops.len() == 1 {
        cx.set_top(0, &x);
        return Ok(());
    }
    let lengths: Vec<i64> = cx.tops.iter().map(|top| top.shape[axis] as i64).collect();
    for (i, part) in split(cx, &x, axis, &lengths).iter().enumerate() {
        cx.set_top(i, part);
    }
    Ok(())
}

/// Splits a value along `axis` into parts of the given lengths.
pub(super) fn split(
    cx: &mut LayerExport<'_>,
    x: &str,
    axis: usize,
    lengths: &[i64],
) -> Vec<String> {
    let parts = cx.integers(lengths);
    cx.node("Split", &[x, &parts]).int("axis", axis as i64).values(lengths.len())
}

/// Exports Crop as `Slice`, along the axes that Crop shortens.
pub(super) fn crop(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.crop_param.clone().unwrap_or_default();
    let shape = cx.shape(0)?;
    let first = shape.canonical_axis(param.axis() as isize)?;
    let (mut starts, mut ends, mut axes) = (Vec::new(), Vec::new(), Vec::new());
    for axis in first..shape.len() {
        let offset = param.offset.get(axis - first).or(param.offset.first());
        let (offset, length) =
            (offset.map_or(0, |&offset| offset as usize), cx.tops[0].shape[axis]);
        if length != shape[axis] {
            starts.push(offset);
            ends.push(offset + length);
            axes.push(axis);
        }
    }
    slice_axes(cx, [starts, ends, axes]);
    Ok(())
}

pub(super) fn crop_center(cx: &mut LayerExport<'_>) -> Result<()> {
    let (shape, param) = (cx.shape(0)?, cx.param.crop_center_param.clone().unwrap_or_default());
    let (mut starts, mut ends, mut axes) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, (extent, &crop)) in shape.iter().zip(&param.crop_size).enumerate() {
        if crop > 0 {
            starts.push(crop as usize);
            ends.push(extent - crop as usize);
            axes.push(axis);
        }
    }
    slice_axes(cx, [starts, ends, axes]);
    Ok(())
}

/// Makes the top a part of the bottom: along each axis in the third list, the elements from the
/// corresponding index in the first list up to, but not including, the index in the second list.
fn slice_axes(cx: &mut LayerExport<'_>, ranges: [Vec<usize>; 3]) {
    let mut y = cx.bottom(0);
    if !ranges[2].is_empty() {
        let [starts, ends, axes] = ranges.map(|values| cx.integers(&extents(&values)));
        y = cx.node("Slice", &[&y, &starts, &ends, &axes]).value();
    }
    cx.set_top(0, &y);
}

/// Exports Permute as `Transpose`.
pub(super) fn permute(cx: &mut LayerExport<'_>) -> Result<()> {
    let order = cx.param.permute_param.clone().unwrap_or_default().order;
    let mut order: Vec<i64> = order.into_iter().map(i64::from).collect();
    let other_axes = (0..cx.bottoms[0].shape.len() as i64).filter(|axis| !order.contains(axis));
    order.extend(other_axes.collect::<Vec<_>>());
    let x = cx.bottom(0);
    let y = cx.node("Transpose", &[&x]).ints("perm", &order).value();
    cx.set_top(0, &y);
    Ok(())
}

/// Exports PriorBox as a constant, because its values depend only on shapes.
pub(super) fn prior_box(cx: &mut LayerExport<'_>) -> Result<()> {
    let boxes = PriorBoxes::new(&cx.param.prior_box_param.clone().unwrap_or_default())?;
    let image = (cx.bottoms.len() > 1).then(|| cx.shape(1)).transpose()?;
    let values = boxes.values(&cx.shape(0)?, image.as_ref())?;
    let shape = cx.tops[0].shape.clone();
    let y = cx.floats(&shape, &values);
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn tile(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.tile_param.unwrap_or_default();
    let shape = cx.shape(0)?;
    let mut repeats = vec![1; shape.len()];
    repeats[shape.canonical_axis(param.axis() as isize)?] = i64::from(param.tiles());
    let (x, repeats) = (cx.bottom(0), cx.integers(&repeats));
    let y = cx.node("Tile", &[&x, &repeats]).value();
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn reduction(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.reduction_param.unwrap_or_default();
    let shape = cx.shape(0)?;
    let first = shape.canonical_axis(param.axis() as isize)?;
    let axes: Vec<i64> = (first as i64..shape.len() as i64).collect();
    let x = cx.bottom(0);
    // In operator set 13, ReduceSum takes the axes as an input, and the other reductions take them
    // as an attribute.
    let mut y = match param.operation() {
        ReductionOp::Sum => {
            let axes = cx.integers(&axes);
            cx.node("ReduceSum", &[&x, &axes]).int("keepdims", 0).value()
        }
        operation => {
            let operator = match operation {
                ReductionOp::Asum => "ReduceL1",
                ReductionOp::Sumsq => "ReduceSumSquare",
                _ => "ReduceMean",
            };
            cx.node(operator, &[&x]).ints("axes", &axes).int("keepdims", 0).value()
        }
    };
    if param.coeff() != 1.0 {
        y = cx.with_scalar("Mul", &y, param.coeff());
    }
    cx.set_top(0, &y);
    Ok(())
}

/// Exports DummyData with constant values.
pub(super) fn dummy_data(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.dummy_data_param.clone().unwrap_or_default();
    for i in 0..cx.tops.len() {
        let filler = param.data_filler.get(i).or(param.data_filler.first());
        let filler = filler.map(Filler::from_proto).transpose()?.unwrap_or_default();
        let Filler::Constant { value } = filler else {
            return cx.refuse("its values are random; replace the layer by an Input layer");
        };
        let shape = extents(&cx.tops[i].shape);
        let (shape, value) = (cx.integers(&shape), cx.scalar(value as f32));
        let y = cx.node("Expand", &[&value, &shape]).value();
        cx.set_top(i, &y);
    }
    Ok(())
}

pub(super) fn parameter(cx: &mut LayerExport<'_>) -> Result<()> {
    let value = cx.parameter(0)?;
    cx.set_top(0, &value);
    Ok(())
}

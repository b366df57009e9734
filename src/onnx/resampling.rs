//! Export of layers that reorder, enlarge or pool images: Interp, Reorg, ROIPooling, ShuffleChannel
//! and Upsample.

use super::{layer_export::LayerExport, tensors::extents};
use crate::{
    error::Result,
    layer::{interpolated_extents, interpolation_weights, reorganization},
    op::Permute,
    shape::Shape,
};

/// Exports Interp as a matrix product with the interpolation weights along each axis.
pub(super) fn interp(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.interp_param.unwrap_or_default();
    let shape = cx.shape(0)?;
    let (begin, remaining, output) = interpolated_extents(&param, &shape)?;
    let matrix = |axis: usize| {
        let input = shape[2 + axis];
        let mut matrix = vec![0.0; output[axis] * input];
        let rows = interpolation_weights(begin, remaining[axis], output[axis]);
        for (row, (lower, upper, weight)) in matrix.chunks_exact_mut(input).zip(rows) {
            row[lower as usize] += 1.0 - weight;
            row[upper as usize] += weight;
        }
        matrix
    };
    let (rows, columns) = (matrix(0), matrix(1));
    let (height, width) = (shape[2], shape[3]);
    let mut transposed = vec![0.0; columns.len()];
    for (i, value) in columns.iter().enumerate() {
        transposed[i % width * output[1] + i / width] = *value;
    }
    let rows = cx.floats(&[output[0], height], &rows);
    let columns = cx.floats(&[width, output[1]], &transposed);
    let x = cx.bottom(0);
    let y = cx.node("MatMul", &[&x, &columns]).value();
    let y = cx.node("MatMul", &[&rows, &y]).value();
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn reorg(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.reorg_param.unwrap_or_default();
    let op = reorganization(param.stride() as usize, param.reverse(), &cx.shape(0)?)?;
    permute(cx, &op);
    Ok(())
}

pub(super) fn shuffle_channel(cx: &mut LayerExport<'_>) -> Result<()> {
    let groups = cx.param.shuffle_channel_param.unwrap_or_default().group() as usize;
    let shape = cx.shape(0)?;
    let parts = [shape[0], groups, shape[1] / groups, shape.count_range(2, shape.len())?];
    let op = Permute::new(Shape::new(&parts)?, &[0, 2, 1, 3])?;
    permute(cx, &op);
    Ok(())
}

/// Adds nodes that read the bottom as an array of the shape of `op`, permute its axes, and give it the
/// shape of the top.
fn permute(cx: &mut LayerExport<'_>, op: &Permute) {
    let (x, top) = (cx.bottom(0), cx.tops[0].shape.clone());
    let x = cx.reshape(&x, op.shape());
    let y = cx.node("Transpose", &[&x]).ints("perm", &extents(op.order())).value();
    let y = cx.reshape(&y, &top);
    cx.set_top(0, &y);
}

pub(super) fn roi_pooling(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.roi_pooling_param.unwrap_or_default();
    let (x, mut rois) = (cx.bottom(0), cx.bottom(1));
    if cx.bottoms[1].shape.len() != 2 {
        let count = cx.bottoms[1].shape[0];
        rois = cx.reshape(&rois, &[count, 5]);
    }
    let pooled = [param.pooled_h(), param.pooled_w()].map(i64::from);
    let y = cx
        .node("MaxRoiPool", &[&x, &rois])
        .ints("pooled_shape", &pooled)
        .float("spatial_scale", param.spatial_scale())
        .value();
    cx.set_top(0, &y);
    Ok(())
}

/// Exports Upsample as a scatter of the elements of each plane to their positions, or, for a layer
/// with one bottom, as a repetition.
pub(super) fn upsample(cx: &mut LayerExport<'_>) -> Result<()> {
    let (x, from, to) = (cx.bottom(0), cx.bottoms[0].shape.clone(), cx.tops[0].shape.clone());
    let [num, channels, height, width] = [from[0], from[1], from[2], from[3]];
    if cx.bottoms.len() == 1 {
        let x = cx.reshape(&x, &[num, channels, height, 1, width, 1]);
        let repeats = extents(&[1, 1, 1, to[2] / height, 1, to[3] / width]);
        let repeats = cx.integers(&repeats);
        let y = cx.node("Expand", &[&x, &repeats]).value();
        let y = cx.reshape(&y, &to);
        cx.set_top(0, &y);
        return Ok(());
    }
    let positions = cx.bottom(1);
    let positions = cx.cast_to_integer(&positions);
    let positions = cx.reshape(&positions, &[num, channels, height * width]);
    let updates = cx.reshape(&x, &[num, channels, height * width]);
    // Read the number of images at run time, because the batch size of the model may be dynamic.
    let shape = cx.node("Shape", &[&x]).value();
    let (start, end) = (cx.integers(&[0]), cx.integers(&[2]));
    let batch = cx.node("Slice", &[&shape, &start, &end]).value();
    let plane = cx.integers(&[(to[2] * to[3]) as i64]);
    let shape = cx.concat(&[batch, plane], 0);
    let zeros = cx.node("ConstantOfShape", &[&shape]).value();
    let y = cx.node("ScatterElements", &[&zeros, &positions, &updates]).int("axis", 2).value();
    let y = cx.reshape(&y, &to);
    cx.set_top(0, &y);
    Ok(())
}

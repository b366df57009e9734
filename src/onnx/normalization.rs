//! Export of BatchNorm, Scale, Bias, LRN, MVN, Normalize and Softmax.

use super::{layer_export::LayerExport, tensors::extents};
use crate::{
    error::Result,
    layer::{Statistics, batch_norm_epsilon, bn_form},
    proto::{Phase, lrn_parameter::NormRegion},
    shape::Shape,
};

/// Exports BatchNorm with stored statistics as `BatchNormalization`. The third parameter divides
/// the two sums of statistics; if it is 0, the mean and the variance are 0, as in Caffe. The scale
/// and the bias of NVIDIA's fork are the fourth and the fifth parameter.
pub(super) fn batch_norm(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.batch_norm_param.clone().unwrap_or_default();
    let (x, epsilon, has_scale) = (cx.bottom(0), batch_norm_epsilon(&param), cx.params.len() > 3);
    if !param.use_global_stats.unwrap_or(cx.param.phase() == Phase::Test) {
        let axes: Vec<i64> =
            (0..cx.bottoms[0].shape.len() as i64).filter(|&axis| axis != 1).collect();
        let centered = centered(cx, &x, &axes);
        let variance = mean_square(cx, &centered, &axes);
        let variance = cx.with_scalar("Add", &variance, epsilon);
        let deviation = cx.node("Sqrt", &[&variance]).value();
        let mut y = cx.node("Div", &[&centered, &deviation]).value();
        if has_scale {
            y = scaled(cx, &y, [3, 4])?;
        }
        cx.set_top(0, &y);
        return Ok(());
    }
    let channels = cx.params[0].count();
    let divisor = cx.params[2].to_vec()?[0];
    let mut statistics = Vec::new();
    for index in 0..2 {
        let sums = cx.params[index].to_vec()?;
        let quotient = |sum: &f32| if divisor == 0.0 { 0.0 } else { sum / divisor };
        let values: Vec<f32> = sums.iter().map(quotient).collect();
        statistics.push(cx.floats(&[channels], &values));
    }
    let [scale, bias] = match has_scale {
        true => [cx.parameter_as(3, &[channels])?, cx.parameter_as(4, &[channels])?],
        false => [1.0, 0.0].map(|value| cx.floats(&[channels], &vec![value; channels])),
    };
    let y = cx
        .node("BatchNormalization", &[&x, &scale, &bias, &statistics[0], &statistics[1]])
        .float("epsilon", epsilon)
        .value();
    cx.set_top(0, &y);
    Ok(())
}

/// Exports BN. A net for inference normalizes with the stored statistics. In the form of SegNet,
/// the net normalizes with the statistics of the batch or not at all.
pub(super) fn bn(cx: &mut LayerExport<'_>) -> Result<()> {
    let (_, statistics, epsilon) = bn_form(cx.param, Phase::Test)?;
    if cx.tops.len() > 1 {
        return cx.refuse("the tops for the mean and the variance have no operator");
    }
    let (mut x, channels) = (cx.bottom(0), cx.params[0].count());
    if statistics == Statistics::Stored {
        let mut operands = vec![x];
        for i in 0..4 {
            operands.push(cx.parameter_as(i, &[channels])?);
        }
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        let epsilon = epsilon as f32;
        let y = cx.node("BatchNormalization", &operands).float("epsilon", epsilon).value();
        cx.set_top(0, &y);
        return Ok(());
    }
    let axes = cx.bottoms[0].shape.len();
    if statistics == Statistics::Batch {
        let others: Vec<i64> = (0..axes as i64).filter(|&axis| axis != 1).collect();
        let centered = centered(cx, &x, &others);
        let variance = mean_square(cx, &centered, &others);
        let variance = cx.with_scalar("Add", &variance, epsilon as f32);
        let deviation = cx.node("Sqrt", &[&variance]).value();
        x = cx.node("Div", &[&centered, &deviation]).value();
    }
    let y = scaled(cx, &x, [0, 1])?;
    cx.set_top(0, &y);
    Ok(())
}

/// Returns `x · scale + shift`, where `x` has the shape of the first bottom, and `params` are the
/// indices of the parameters that hold the scale and the shift. The scale and the shift have one
/// value per channel.
fn scaled(cx: &mut LayerExport<'_>, x: &str, params: [usize; 2]) -> Result<String> {
    let mut shape = vec![cx.params[params[0]].count()];
    shape.resize(cx.bottoms[0].shape.len() - 1, 1);
    let [scale, shift] = params.map(|index| cx.parameter_as(index, &shape));
    let y = cx.node("Mul", &[x, &scale?]).value();
    Ok(cx.node("Add", &[&y, &shift?]).value())
}

pub(super) fn axpy(cx: &mut LayerExport<'_>) -> Result<()> {
    let (mut a, x, b) = (cx.bottom(0), cx.bottom(1), cx.bottom(2));
    let mut shape = cx.bottoms[1].shape[..2].to_vec();
    shape.resize(cx.bottoms[1].shape.len(), 1);
    if shape != cx.bottoms[0].shape {
        a = cx.reshape(&a, &shape);
    }
    let y = cx.node("Mul", &[&x, &a]).value();
    let y = cx.node("Add", &[&y, &b]).value();
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn scale(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.scale_param.clone().unwrap_or_default();
    let x = cx.bottom(0);
    let scale = operand(cx, param.axis())?;
    let mut y = cx.node("Mul", &[&x, &scale]).value();
    if param.bias_term() {
        let index = cx.params.len() - 1;
        let shape = aligned(&cx.shape(0)?, param.axis(), cx.params[index].shape())?;
        let bias = cx.parameter_as(index, &shape)?;
        y = cx.node("Add", &[&y, &bias]).value();
    }
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn bias(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.bias_param.clone().unwrap_or_default();
    let x = cx.bottom(0);
    let bias = operand(cx, param.axis())?;
    let y = cx.node("Add", &[&x, &bias]).value();
    cx.set_top(0, &y);
    Ok(())
}

/// Returns the operand of Scale or Bias, the second bottom or the first parameter, in a shape that
/// ONNX broadcasts along the axes from `axis` on.
fn operand(cx: &mut LayerExport<'_>, axis: i32) -> Result<String> {
    let x = cx.shape(0)?;
    let Some(operand) = cx.bottoms.get(1).cloned() else {
        let shape = aligned(&x, axis, cx.params[0].shape())?;
        return cx.parameter_as(0, &shape);
    };
    let shape = aligned(&x, axis, &Shape::new(&operand.shape)?)?;
    match shape == operand.shape {
        true => Ok(operand.name),
        false => Ok(cx.reshape(&operand.name, &shape)),
    }
}

/// Returns the shape `operand`, whose first axis is axis `axis` of `x`, with an extent of 1 for
/// each later axis of `x`.
fn aligned(x: &Shape, axis: i32, operand: &Shape) -> Result<Vec<usize>> {
    let mut shape = operand.to_vec();
    if !shape.is_empty() {
        shape.resize(x.len() - x.canonical_axis(axis as isize)?, 1);
    }
    Ok(shape)
}

/// Exports LRN. ONNX has no operator for regions within a channel, which the export composes from
/// average pooling of the squares.
pub(super) fn lrn(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.lrn_param.unwrap_or_default();
    let (x, size) = (cx.bottom(0), param.local_size() as usize);
    if param.norm_region() == NormRegion::AcrossChannels {
        let y = cx
            .node("LRN", &[&x])
            .int("size", size as i64)
            .float("alpha", param.alpha())
            .float("beta", param.beta())
            .float("bias", param.k())
            .value();
        cx.set_top(0, &y);
        return Ok(());
    }
    let squares = cx.node("Mul", &[&x, &x]).value();
    let means = cx
        .node("AveragePool", &[&squares])
        .ints("kernel_shape", &extents(&[size; 2]))
        .ints("strides", &[1, 1])
        .ints("pads", &extents(&[size / 2; 4]))
        .int("count_include_pad", 1)
        .value();
    let scaled = cx.with_scalar("Mul", &means, param.alpha());
    let base = cx.with_scalar("Add", &scaled, 1.0);
    let factor = cx.with_scalar("Pow", &base, -param.beta());
    let y = cx.node("Mul", &[&x, &factor]).value();
    cx.set_top(0, &y);
    Ok(())
}

/// Exports MVN, whose top has four axes.
pub(super) fn mvn(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.mvn_param.unwrap_or_default();
    let mut x = cx.bottom(0);
    if cx.bottoms[0].shape != cx.tops[0].shape {
        let shape = cx.tops[0].shape.clone();
        x = cx.reshape(&x, &shape);
    }
    let axes: &[i64] = if param.across_channels() { &[1, 2, 3] } else { &[2, 3] };
    let mut y = centered(cx, &x, axes);
    if param.normalize_variance() {
        let variance = mean_square(cx, &y, axes);
        let deviation = cx.node("Sqrt", &[&variance]).value();
        let deviation = cx.with_scalar("Add", &deviation, param.eps());
        y = cx.node("Div", &[&y, &deviation]).value();
    }
    cx.set_top(0, &y);
    Ok(())
}

/// Exports Normalize as the quotient of `x` and its norm, times the learned factors.
pub(super) fn normalize(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.norm_param.clone().unwrap_or_default();
    let (x, rank) = (cx.bottom(0), cx.bottoms[0].shape.len());
    let axes: Vec<i64> = (1..if param.across_spatial() { rank as i64 } else { 2 }).collect();
    let axes = cx.integers(&axes);
    let squares = cx.node("Mul", &[&x, &x]).value();
    let sum = cx.node("ReduceSum", &[&squares, &axes]).value();
    let sum = cx.with_scalar("Add", &sum, param.eps());
    let norm = cx.node("Sqrt", &[&sum]).value();
    let quotient = cx.node("Div", &[&x, &norm]).value();
    let mut shape = vec![1; rank];
    shape[1] = cx.params[0].count();
    let scale = cx.parameter_as(0, &shape)?;
    let y = cx.node("Mul", &[&quotient, &scale]).value();
    cx.set_top(0, &y);
    Ok(())
}

/// Adds nodes that compute `x` minus the mean of `x` along `axes`.
fn centered(cx: &mut LayerExport<'_>, x: &str, axes: &[i64]) -> String {
    let mean = cx.node("ReduceMean", &[x]).ints("axes", axes).value();
    cx.node("Sub", &[x, &mean]).value()
}

/// Adds nodes that compute the mean of the squares of `x` along `axes`.
fn mean_square(cx: &mut LayerExport<'_>, x: &str, axes: &[i64]) -> String {
    let squares = cx.node("Mul", &[x, x]).value();
    cx.node("ReduceMean", &[&squares]).ints("axes", axes).value()
}

pub(super) fn softmax(cx: &mut LayerExport<'_>) -> Result<()> {
    let axis = cx.param.softmax_param.unwrap_or_default().axis();
    let axis = cx.shape(0)?.canonical_axis(axis as isize)?;
    let x = cx.bottom(0);
    let y = cx.node("Softmax", &[&x]).int("axis", axis as i64).value();
    cx.set_top(0, &y);
    Ok(())
}

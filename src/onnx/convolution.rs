//! Export of Convolution, Deconvolution and Im2col.

use super::{layer_export::LayerExport, tensors::extents};
use crate::{
    error::Result, layer::spatial_axes, limits, op::SpatialAxis, proto::ConvolutionParameter,
    shape::Shape,
};

/// The channel axis of a convolution's bottom and the window along each spatial axis.
struct Geometry {
    channel_axis: usize,
    axes: Vec<SpatialAxis>,
}

fn geometry(cx: &LayerExport<'_>, param: &ConvolutionParameter) -> Result<Geometry> {
    let shape = cx.shape(0)?;
    let channel_axis = shape.canonical_axis(param.axis() as isize)?;
    let axes = spatial_axes(param, &shape[channel_axis + 1..])?;
    if axes.is_empty() {
        return cx.refuse("a convolution without spatial axes has no operator");
    }
    Ok(Geometry { channel_axis, axes })
}

/// Exports `operator`, which is `Conv` or `ConvTranspose`, for each pair of a bottom and a top. The
/// weights have the same order of axes in Caffe and ONNX: outputs of the convolution first.
pub(super) fn convolution(cx: &mut LayerExport<'_>, operator: &str) -> Result<()> {
    let param = cx.param.convolution_param.clone().unwrap_or_default();
    let geometry = geometry(cx, &param)?;
    let mut operands = vec![cx.parameter(0)?];
    if param.bias_term() {
        operands.push(cx.parameter(1)?);
    }
    let groups = match cx.param.r#type() {
        "DepthwiseConvolution" | "ConvolutionDepthwise" => {
            cx.bottoms[0].shape[geometry.channel_axis]
        }
        _ => param.group() as usize,
    };
    for i in 0..cx.bottoms.len() {
        apply(cx, operator, i, &geometry, groups as i64, &operands);
    }
    Ok(())
}

/// Exports Im2col as a convolution whose filters each select one tap of one channel.
pub(super) fn im2col(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.convolution_param.clone().unwrap_or_default();
    let geometry = geometry(cx, &param)?;
    let channels = cx.bottoms[0].shape[geometry.channel_axis];
    let taps = geometry.axes.iter().map(|axis| axis.kernel).product::<usize>();
    let mut shape = vec![channels * taps, 1];
    shape.extend(geometry.axes.iter().map(|axis| axis.kernel));
    let count = Shape::new(&shape)?.count();
    let limit = limits::SELECTION_FILTERS;
    if count > limit {
        return cx
            .refuse(&format!("its filters would have {count} elements, but the limit is {limit}"));
    }
    let mut filters = vec![0.0; count];
    for (i, filter) in filters.chunks_exact_mut(taps).enumerate() {
        filter[i % taps] = 1.0;
    }
    let filters = cx.floats(&shape, &filters);
    apply(cx, "Conv", 0, &geometry, channels as i64, &[filters]);
    Ok(())
}

/// Adds the node for the bottom and the top with index `index`. ONNX's operators need exactly one
/// batch axis, so other bottoms are reshaped.
fn apply(
    cx: &mut LayerExport<'_>,
    operator: &str,
    index: usize,
    geometry: &Geometry,
    groups: i64,
    operands: &[String],
) {
    let Geometry { channel_axis, axes } = geometry;
    let mut x = cx.bottom(index);
    if *channel_axis != 1 {
        let shape = [&[1], &cx.bottoms[index].shape[*channel_axis..]].concat();
        x = cx.reshape(&x, &shape);
    }
    let of_axes = |value: fn(&SpatialAxis) -> usize| -> Vec<i64> {
        axes.iter().map(|axis| value(axis) as i64).collect()
    };
    let pads = of_axes(|axis| axis.pad);
    let inputs: Vec<&str> = [&x].into_iter().chain(operands).map(String::as_str).collect();
    let mut y = cx
        .node(operator, &inputs)
        .ints("kernel_shape", &of_axes(|axis| axis.kernel))
        .ints("strides", &of_axes(|axis| axis.stride))
        .ints("pads", &[&pads[..], &pads].concat())
        .ints("dilations", &of_axes(|axis| axis.dilation))
        .int("group", groups)
        .value();
    if *channel_axis != 1 {
        let shape = cx.tops[index].shape.clone();
        y = cx.reshape(&y, &shape);
    }
    cx.set_top(index, &y);
}

/// Returns the attribute `pads`: the padding at the start of each axis, then the padding at the end
/// of each axis.
pub(super) fn pads(begin: &[usize], end: &[usize]) -> Vec<i64> {
    [extents(begin), extents(end)].concat()
}

//! Export of Pooling and SPP.
//!
//! With `ceil_mode`, ONNX computes other numbers of windows than Caffe, and runtimes divide
//! averages by different numbers. The export therefore states the padding at the end of each axis
//! explicitly.

use super::{convolution::pads, layer_export::LayerExport, tensors::extents};
use crate::{
    error::Result,
    layer::{excludes_padding, pooling_windows, pyramid_windows},
    op::Pool2d,
    proto::{pooling_parameter::PoolMethod, spp_parameter},
};

/// Pooling windows, and the padding at the end of each axis that gives as many windows as in Caffe.
struct Windows {
    op: Pool2d,
    end: [usize; 2],
}

impl Windows {
    fn new(cx: &LayerExport<'_>, op: Pool2d) -> Result<Self> {
        let end = [0, 1].map(|axis| {
            let covered = (op.output()[axis] - 1) * op.stride[axis] + op.kernel[axis];
            covered.saturating_sub(op.input[axis] + op.pad[axis])
        });
        if [0, 1].iter().any(|&axis| end[axis] >= op.kernel[axis]) {
            return cx.refuse("a window lies outside the bottom");
        }
        Ok(Self { op, end })
    }

    /// Adds a node with the pooling operator `operator`, which has `outputs` outputs.
    fn pool(
        &self,
        cx: &mut LayerExport<'_>,
        operator: &str,
        x: &str,
        outputs: usize,
        include_padding: bool,
    ) -> Vec<String> {
        let mut node = cx
            .node(operator, &[x])
            .ints("kernel_shape", &extents(&self.op.kernel))
            .ints("strides", &extents(&self.op.stride))
            .ints("pads", &pads(&self.op.pad, &self.end));
        if include_padding {
            node = node.int("count_include_pad", 1);
        }
        node.values(outputs)
    }

    /// Adds nodes that compute average pooling with Caffe's divisor: the number of elements of the
    /// window that lie in the bottom or in the padding of the definition, but not beyond it.
    fn average(&self, cx: &mut LayerExport<'_>, x: &str, excludes_padding: bool) -> String {
        let Pool2d { input, kernel, stride, pad, .. } = self.op;
        if kernel == input && self.op.output() == [1, 1] && pad == [0, 0] {
            return cx.node("GlobalAveragePool", &[x]).value();
        }
        let ends_in_padding = [0, 1].iter().all(|&axis| self.end[axis] <= pad[axis]);
        let include_padding = pad != [0, 0] && !excludes_padding;
        let y = self.pool(cx, "AveragePool", x, 1, include_padding).swap_remove(0);
        if !include_padding || ends_in_padding {
            return y;
        }
        // ONNX divides each sum by the number of elements of the kernel, but Caffe excludes
        // elements beyond the padding. Replace ONNX's divisor by Caffe's.
        let divisor = |axis: usize, window: usize| {
            let start = window * stride[axis];
            (start + kernel[axis]).min(input[axis] + 2 * pad[axis]) - start
        };
        let [rows, columns] = self.op.output();
        let area = (kernel[0] * kernel[1]) as f32;
        let factors: Vec<f32> = (0..rows * columns)
            .map(|i| area / (divisor(0, i / columns) * divisor(1, i % columns)) as f32)
            .collect();
        let factors = cx.floats(&[1, 1, rows, columns], &factors);
        cx.node("Mul", &[&y, &factors]).value()
    }

    /// Adds nodes that compute the weighted mean `Σ max(x, 0)² / Σ max(x, 0)` of each window, with
    /// 0 for a window without positive elements.
    fn weighted_mean(&self, cx: &mut LayerExport<'_>, x: &str) -> String {
        let positive = cx.node("Relu", &[x]).value();
        let squares = cx.node("Mul", &[&positive, &positive]).value();
        let numerator = self.pool(cx, "AveragePool", &squares, 1, false).swap_remove(0);
        let denominator = self.pool(cx, "AveragePool", &positive, 1, false).swap_remove(0);
        let smallest = cx.scalar(f32::MIN_POSITIVE);
        let denominator = cx.node("Max", &[&denominator, &smallest]).value();
        cx.node("Div", &[&numerator, &denominator]).value()
    }
}

pub(super) fn pooling(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.pooling_param.unwrap_or_default();
    let windows = Windows::new(cx, pooling_windows(&param, &cx.shape(0)?)?)?;
    let x = cx.bottom(0);
    match param.pool() {
        PoolMethod::Ave | PoolMethod::AveExcPad => {
            let y = windows.average(cx, &x, excludes_padding(&param));
            cx.set_top(0, &y);
        }
        PoolMethod::Stochastic => {
            let y = windows.weighted_mean(cx, &x);
            cx.set_top(0, &y);
        }
        PoolMethod::Max => {
            let outputs = windows.pool(cx, "MaxPool", &x, cx.tops.len(), false);
            cx.set_top(0, &outputs[0]);
            if let Some(indices) = outputs.get(1) {
                // ONNX's indices count the elements of the whole bottom, Caffe's those of a plane.
                let [height, width] = windows.op.input;
                let plane = cx.integers(&[(height * width) as i64]);
                let indices = cx.node("Mod", &[indices, &plane]).value();
                let positions = cx.cast_to_float(&indices);
                cx.set_top(1, &positions);
            }
        }
    }
    Ok(())
}

/// Exports SPP as one pooling per level of the pyramid, flattened and concatenated.
pub(super) fn spp(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.spp_param.unwrap_or_default();
    let levels = param.pyramid_height();
    let x = cx.bottom(0);
    let mut parts = Vec::new();
    for level in 0..levels {
        let windows = Windows::new(cx, pyramid_windows(level, &cx.shape(0)?)?)?;
        let pooled = match param.pool() {
            spp_parameter::PoolMethod::Ave => windows.average(cx, &x, false),
            _ => windows.pool(cx, "MaxPool", &x, 1, false).swap_remove(0),
        };
        let flat = match levels {
            1 => pooled,
            _ => cx.node("Flatten", &[&pooled]).int("axis", 1).value(),
        };
        parts.push(flat);
    }
    let y = match &parts[..] {
        [only] => only.clone(),
        _ => cx.concat(&parts, 1),
    };
    cx.set_top(0, &y);
    Ok(())
}

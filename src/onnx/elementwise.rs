//! Export of layers that compute each element of the top from one element of each bottom.

use super::layer_export::LayerExport;
use crate::{
    error::Result,
    layer::{PythonParam, spatial_dropout_settings},
    proto::{LayerParameter, eltwise_parameter::EltwiseOp},
};

/// Exports a layer that is the operator `operator` without attributes.
pub(super) fn unary(cx: &mut LayerExport<'_>, operator: &str) -> Result<()> {
    let x = cx.bottom(0);
    let y = cx.node(operator, &[&x]).value();
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn relu(cx: &mut LayerExport<'_>) -> Result<()> {
    let slope = cx.param.relu_param.unwrap_or_default().negative_slope();
    let x = cx.bottom(0);
    let y = match slope {
        0.0 => cx.node("Relu", &[&x]).value(),
        _ => cx.node("LeakyRelu", &[&x]).float("alpha", slope).value(),
    };
    cx.set_top(0, &y);
    Ok(())
}

/// Exports PReLU. ONNX aligns the slopes with the last axes of the bottom, so the shape of the
/// slopes gets an extent of 1 for each axis after the channels.
pub(super) fn prelu(cx: &mut LayerExport<'_>) -> Result<()> {
    let (x, axes) = (cx.bottom(0), cx.bottoms[0].shape.len());
    let count = cx.params[0].count();
    let mut shape = vec![count];
    if count > 1 {
        shape.resize(axes - 1, 1);
    }
    let slopes = cx.parameter_as(0, &shape)?;
    let y = cx.node("PRelu", &[&x, &slopes]).value();
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn elu(cx: &mut LayerExport<'_>) -> Result<()> {
    let alpha = cx.param.elu_param.unwrap_or_default().alpha();
    let x = cx.bottom(0);
    let y = cx.node("Elu", &[&x]).float("alpha", alpha).value();
    cx.set_top(0, &y);
    Ok(())
}

/// Returns whether the top of a Dropout layer equals its bottom in a net for inference.
pub(super) fn keeps_its_bottom(param: &LayerParameter) -> bool {
    let param = param.dropout_param.unwrap_or_default();
    param.scale_train() && !param.sample_weights_test()
}

/// Exports a Dropout layer whose top differs from its bottom.
pub(super) fn dropout(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.dropout_param.unwrap_or_default();
    if param.sample_weights_test() {
        return cx.refuse("sample_weights_test makes the results random");
    }
    let x = cx.bottom(0);
    let y = cx.with_scalar("Mul", &x, 1.0 - param.dropout_ratio());
    cx.set_top(0, &y);
    Ok(())
}

/// Exports the Python layer SpatialDropoutLayer as a multiplication by `1/(1 − p)`. Refuses a layer
/// with the phase TRAIN, which drops random channels.
pub(super) fn spatial_dropout(cx: &mut LayerExport<'_>, python: &PythonParam) -> Result<()> {
    let (is_training, keep) = spatial_dropout_settings(python)?;
    if is_training {
        return cx.refuse("the phase TRAIN in param_str makes the results random");
    }
    let x = cx.bottom(0);
    let y = cx.with_scalar("Mul", &x, (1.0 / keep) as f32);
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn swish(cx: &mut LayerExport<'_>) -> Result<()> {
    let beta = cx.param.swish_param.unwrap_or_default().beta();
    let x = cx.bottom(0);
    let scaled = affine(cx, &x, beta, 0.0);
    let gate = cx.node("Sigmoid", &[&scaled]).value();
    let y = cx.node("Mul", &[&x, &gate]).value();
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn relu6(cx: &mut LayerExport<'_>) -> Result<()> {
    let (low, high) = (cx.scalar(0.0), cx.scalar(6.0));
    let x = cx.bottom(0);
    let y = cx.node("Clip", &[&x, &low, &high]).value();
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn clip(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.clip_param.unwrap_or_default();
    let (low, high) = (cx.scalar(param.min), cx.scalar(param.max));
    let x = cx.bottom(0);
    let y = cx.node("Clip", &[&x, &low, &high]).value();
    cx.set_top(0, &y);
    Ok(())
}

pub(super) fn threshold(cx: &mut LayerExport<'_>) -> Result<()> {
    let threshold = cx.param.threshold_param.unwrap_or_default().threshold();
    let x = cx.bottom(0);
    let exceeds = cx.with_scalar("Greater", &x, threshold);
    let y = cx.cast_to_float(&exceeds);
    cx.set_top(0, &y);
    Ok(())
}

/// Exports Power, `y = (scale·x + shift)^power`.
pub(super) fn power(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.power_param.unwrap_or_default();
    let x = cx.bottom(0);
    let mut y = affine(cx, &x, param.scale(), param.shift());
    if param.power() != 1.0 {
        y = cx.with_scalar("Pow", &y, param.power());
    }
    cx.set_top(0, &y);
    Ok(())
}

/// Exports Exp, `y = base^(scale·x + shift)`, where a base of −1 stands for e.
pub(super) fn exp(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.exp_param.unwrap_or_default();
    let ln_base = if param.base() == -1.0 { 1.0 } else { f64::from(param.base()).ln() };
    let [scale, shift] = [param.scale(), param.shift()].map(|value| ln_base * f64::from(value));
    let x = cx.bottom(0);
    let exponent = affine(cx, &x, scale as f32, shift as f32);
    let y = cx.node("Exp", &[&exponent]).value();
    cx.set_top(0, &y);
    Ok(())
}

/// Exports Log, `y = log_base(scale·x + shift)`, where a base of −1 stands for e.
pub(super) fn log(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.log_param.unwrap_or_default();
    let x = cx.bottom(0);
    let argument = affine(cx, &x, param.scale(), param.shift());
    let mut y = cx.node("Log", &[&argument]).value();
    if param.base() != -1.0 {
        y = cx.with_scalar("Mul", &y, (1.0 / f64::from(param.base()).ln()) as f32);
    }
    cx.set_top(0, &y);
    Ok(())
}

/// Adds nodes that compute `scale·x + shift`. A scale of 1 or a shift of 0 needs no node.
fn affine(cx: &mut LayerExport<'_>, x: &str, scale: f32, shift: f32) -> String {
    let mut y = x.to_owned();
    if scale != 1.0 {
        y = cx.with_scalar("Mul", &y, scale);
    }
    if shift != 0.0 {
        y = cx.with_scalar("Add", &y, shift);
    }
    y
}

pub(super) fn eltwise(cx: &mut LayerExport<'_>) -> Result<()> {
    let param = cx.param.eltwise_param.clone().unwrap_or_default();
    let mut bottoms: Vec<String> = (0..cx.bottoms.len()).map(|i| cx.bottom(i)).collect();
    for (bottom, &coeff) in bottoms.iter_mut().zip(&param.coeff) {
        if param.operation() == EltwiseOp::Sum && coeff != 1.0 {
            *bottom = cx.with_scalar("Mul", bottom, coeff);
        }
    }
    let operands: Vec<&str> = bottoms.iter().map(String::as_str).collect();
    let y = match param.operation() {
        EltwiseOp::Sum => cx.node("Sum", &operands).value(),
        EltwiseOp::Max => cx.node("Max", &operands).value(),
        EltwiseOp::Prod => {
            let mut product = bottoms[0].clone();
            for factor in &operands[1..] {
                product = cx.node("Mul", &[&product, factor]).value();
            }
            product
        }
    };
    cx.set_top(0, &y);
    Ok(())
}

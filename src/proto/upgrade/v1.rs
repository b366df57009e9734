//! The upgrade of layers from the V1 format to the current format.

use super::change::Change;
use crate::{
    error::Result,
    proto::messages::{
        LayerParameter, NetParameter, ParamSpec, V1LayerParameter, v1_layer_parameter::LayerType,
    },
};
use std::mem;

#[doc(alias = "UpgradeV1Net")]
pub(super) fn upgrade(net: &mut NetParameter) -> Result<Vec<Change>> {
    if net.layers.is_empty() {
        return Ok(Vec::new());
    }
    let mut changes = vec![Change::V1];
    for old in mem::take(&mut net.layers) {
        let has_type = old.r#type.is_some();
        let layer = to_current(old);
        if has_type && layer.r#type.is_none() {
            changes.push(Change::Dropped { layer: layer.name().to_owned(), field: "type" });
        }
        net.layer.push(layer);
    }
    Ok(changes)
}

/// Moves the fields of a V1 layer to a layer of the current format. The fields listed in the macro
/// call have the same name and type in both formats.
///
/// The pattern that destructures the V1 layer has no `..`, so the compiler reports a field that the
/// macro call omits.
macro_rules! move_layer_fields {
    ($old:ident: $($same:ident)*) => {{
        let V1LayerParameter {
            layer: _, r#type, param, blob_share_mode, blobs_lr, weight_decay, $($same),*
        } = $old;
        LayerParameter {
            // A layer type number that only a fork of Caffe declares has no name, so `type` stays
            // unset. Trained layers do not need a type, because nets match trained layers by name.
            r#type: r#type.and_then(type_name).map(str::to_owned),
            param: param_specs(param, blob_share_mode, blobs_lr, weight_decay),
            $($same,)*
            ..Default::default()
        }
    }};
}

#[doc(alias = "UpgradeV1LayerParameter")]
fn to_current(old: V1LayerParameter) -> LayerParameter {
    move_layer_fields! { old:
        name bottom top include exclude blobs loss_weight
        accuracy_param argmax_param concat_param contrastive_loss_param convolution_param
        data_param dropout_param dummy_data_param eltwise_param exp_param hdf5_data_param
        hdf5_output_param hinge_loss_param image_data_param infogain_loss_param
        inner_product_param loss_param lrn_param memory_data_param mvn_param pooling_param
        power_param relu_param sigmoid_param slice_param softmax_param tanh_param
        threshold_param transform_param window_data_param
    }
}

/// Combines the names, share modes, learning rates and weight decays of learnable blobs into one
/// `param` entry per blob. A definition may omit entries at the end of each list, so the four lists
/// may differ in length.
fn param_specs(
    names: Vec<String>,
    share_modes: Vec<i32>,
    lr_mults: Vec<f32>,
    decay_mults: Vec<f32>,
) -> Vec<ParamSpec> {
    let lengths = [names.len(), share_modes.len(), lr_mults.len(), decay_mults.len()];
    let mut specs = vec![ParamSpec::default(); lengths.into_iter().max().unwrap_or(0)];
    specs.iter_mut().zip(names).for_each(|(spec, name)| spec.name = Some(name));
    // The enum of share modes has the same numbers in the V1 format and the current format.
    specs.iter_mut().zip(share_modes).for_each(|(spec, mode)| spec.share_mode = Some(mode));
    specs.iter_mut().zip(lr_mults).for_each(|(spec, mult)| spec.lr_mult = Some(mult));
    specs.iter_mut().zip(decay_mults).for_each(|(spec, mult)| spec.decay_mult = Some(mult));
    specs
}

/// Returns the type name in the current format for the number of a V1 layer type.
#[doc(alias = "UpgradeV1LayerType")]
fn type_name(number: i32) -> Option<&'static str> {
    Some(match LayerType::try_from(number).ok()? {
        LayerType::None => "",
        LayerType::Absval => "AbsVal",
        LayerType::Accuracy => "Accuracy",
        LayerType::Argmax => "ArgMax",
        LayerType::Bnll => "BNLL",
        LayerType::Concat => "Concat",
        LayerType::ContrastiveLoss => "ContrastiveLoss",
        LayerType::Convolution => "Convolution",
        LayerType::Data => "Data",
        LayerType::Deconvolution => "Deconvolution",
        LayerType::Dropout => "Dropout",
        LayerType::DummyData => "DummyData",
        LayerType::EuclideanLoss => "EuclideanLoss",
        LayerType::Eltwise => "Eltwise",
        LayerType::Exp => "Exp",
        LayerType::Flatten => "Flatten",
        LayerType::Hdf5Data => "HDF5Data",
        LayerType::Hdf5Output => "HDF5Output",
        LayerType::HingeLoss => "HingeLoss",
        LayerType::Im2col => "Im2col",
        LayerType::ImageData => "ImageData",
        LayerType::InfogainLoss => "InfogainLoss",
        LayerType::InnerProduct => "InnerProduct",
        LayerType::Lrn => "LRN",
        LayerType::MemoryData => "MemoryData",
        LayerType::MultinomialLogisticLoss => "MultinomialLogisticLoss",
        LayerType::Mvn => "MVN",
        LayerType::Pooling => "Pooling",
        LayerType::Power => "Power",
        LayerType::Relu => "ReLU",
        LayerType::Sigmoid => "Sigmoid",
        LayerType::SigmoidCrossEntropyLoss => "SigmoidCrossEntropyLoss",
        LayerType::Silence => "Silence",
        LayerType::Softmax => "Softmax",
        LayerType::SoftmaxLoss => "SoftmaxWithLoss",
        LayerType::Split => "Split",
        LayerType::Slice => "Slice",
        LayerType::Tanh => "TanH",
        LayerType::WindowData => "WindowData",
        LayerType::Threshold => "Threshold",
    })
}

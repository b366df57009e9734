//! The export function of each layer type.

use super::{
    convolution, elementwise, layer_export::LayerExport, lookup, matrix, normalization, pooling,
    recurrent, resampling, shapes,
};
use crate::{error::Result, layer::PythonParam, proto::LayerParameter};

/// How the export treats a layer.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    /// The tops are inputs of the model.
    Input,
    /// The tops are the bottom under other names.
    Alias,
    /// The layer becomes one or more nodes of the graph.
    Nodes,
    /// The layer is left out, and its bottoms may be outputs of the model.
    LeftOut,
    /// The layer is left out, and its bottoms are not outputs of the model.
    Silence,
}

/// Returns how the export treats a layer; `is_loss` tells whether it is a loss layer.
pub(super) fn role(param: &LayerParameter, is_loss: bool) -> Role {
    match param.r#type() {
        "Input" | "AnnotatedData" | "Data" | "DenseImageData" | "ImageData" | "HDF5Data"
        | "MemoryData" | "WindowData" => Role::Input,
        "Split" => Role::Alias,
        "Dropout" if elementwise::keeps_its_bottom(param) => Role::Alias,
        // The number of boxes that these layers return depends on the values of their bottoms.
        "DetectionOutput" | "YoloDetectionOutput" | "Yolov3DetectionOutput" => Role::LeftOut,
        "Accuracy" | "DetectionEvaluate" | "HDF5Output" => Role::LeftOut,
        "Silence" => Role::Silence,
        _ if is_loss => Role::LeftOut,
        _ => Role::Nodes,
    }
}

/// Returns the error for a layer for which ONNX or the export has no operators.
fn without_operators(cx: &LayerExport<'_>, reason: &str) -> Result<()> {
    let remedy = "split the definition before and after this layer, with an Input layer for its \
                  tops, export both parts, and compute the layer in the program that runs them";
    cx.refuse(&format!("{reason}; {remedy}"))
}

/// Adds the nodes of a Python layer that a Rust layer has replaced.
fn python(cx: &mut LayerExport<'_>) -> Result<()> {
    let python = PythonParam::of(cx.param);
    match (&python.module[..], &python.layer[..]) {
        ("spatial_dropout", "SpatialDropoutLayer") => elementwise::spatial_dropout(cx, &python),
        (_, "ProposalLayer") => {
            without_operators(cx, "the number of regions of ProposalLayer depends on values")
        }
        (module, layer) => {
            let reason = format!("the export knows no operators for the class {module}.{layer}");
            without_operators(cx, &reason)
        }
    }
}

/// Adds the nodes of a layer of the role [`Role::Nodes`].
pub(super) fn add_nodes(cx: &mut LayerExport<'_>) -> Result<()> {
    match cx.param.r#type() {
        "AbsVal" => elementwise::unary(cx, "Abs"),
        "ArgMax" => lookup::arg_max(cx),
        "Axpy" => normalization::axpy(cx),
        "BatchNorm" => normalization::batch_norm(cx),
        "BatchReindex" => lookup::batch_reindex(cx),
        "Bias" => normalization::bias(cx),
        "BN" => normalization::bn(cx),
        "BNLL" => elementwise::unary(cx, "Softplus"),
        "Clip" => elementwise::clip(cx),
        "Concat" => shapes::concat(cx),
        "Convolution" | "DepthwiseConvolution" | "ConvolutionDepthwise" => {
            convolution::convolution(cx, "Conv")
        }
        "Crop" => shapes::crop(cx),
        "CropCenter" => shapes::crop_center(cx),
        "Deconvolution" => convolution::convolution(cx, "ConvTranspose"),
        "Dropout" => elementwise::dropout(cx),
        "DummyData" => shapes::dummy_data(cx),
        "Eltwise" => elementwise::eltwise(cx),
        "ELU" => elementwise::elu(cx),
        "Embed" => lookup::embed(cx),
        "Exp" => elementwise::exp(cx),
        "BoxAnnotatorOHEM" => {
            cx.refuse("it is a layer for training; export the definition for inference")
        }
        "Filter" | "Proposal" => without_operators(cx, "the shapes of its tops depend on values"),
        "PSROIPooling" => without_operators(cx, "operator set 13 has no such operator"),
        "Python" => python(cx),
        "Flatten" | "Reshape" => shapes::reshape(cx),
        "Im2col" => convolution::im2col(cx),
        "InnerProduct" => matrix::inner_product(cx),
        "Log" => elementwise::log(cx),
        "Interp" => resampling::interp(cx),
        "LRN" => normalization::lrn(cx),
        "LSTM" => recurrent::lstm(cx),
        "LSTMUnit" => recurrent::lstm_unit(cx),
        "MVN" => normalization::mvn(cx),
        "Normalize" => normalization::normalize(cx),
        "Parameter" => shapes::parameter(cx),
        "Permute" => shapes::permute(cx),
        "Pooling" => pooling::pooling(cx),
        "Power" => elementwise::power(cx),
        "PReLU" => elementwise::prelu(cx),
        "PriorBox" | "PriorBoxClustered" => shapes::prior_box(cx),
        "Reduction" => shapes::reduction(cx),
        "ReLU" => elementwise::relu(cx),
        "ReLU6" => elementwise::relu6(cx),
        "Reorg" => resampling::reorg(cx),
        "ROIPooling" => resampling::roi_pooling(cx),
        "RNN" => recurrent::rnn(cx),
        "Scale" => normalization::scale(cx),
        "ShuffleChannel" => resampling::shuffle_channel(cx),
        "Sigmoid" => elementwise::unary(cx, "Sigmoid"),
        "Slice" => shapes::slice(cx),
        "Softmax" => normalization::softmax(cx),
        "SPP" => pooling::spp(cx),
        "Swish" => elementwise::swish(cx),
        "Upsample" => resampling::upsample(cx),
        "TanH" => elementwise::unary(cx, "Tanh"),
        "Threshold" => elementwise::threshold(cx),
        "Tile" => shapes::tile(cx),
        _ => without_operators(cx, "the export does not know this layer type"),
    }
}

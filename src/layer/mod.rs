//! Neural network layers, of which nets are composed.
//!
//! Layers call the kernels of an [`AnyDevice`](crate::AnyDevice) and are generic over the element
//! type. Only the following layers read the values of blobs on the host. The top shapes of
//! [`FilterLayer`], [`DetectionOutputLayer`], [`Yolov3DetectionOutputLayer`],
//! [`DetectionEvaluateLayer`] and [`ProposalLayer`] depend on values. No kernel computes
//! [`MultiBoxLossLayer`], [`RoiPoolingLayer`], [`PsroiPoolingLayer`], [`BoxAnnotatorOhemLayer`],
//! and the losses of single regions in [`SoftmaxLossLayer`] and [`SmoothL1LossLayer`].
//! [`Hdf5OutputLayer`] writes a file. [`LayerRegistry`] maps the `type` of a layer's definition to
//! the constructor of the layer. Other crates can register further layer types.

mod layer_trait;
mod checked_layer;
mod common;
mod prelude;
mod loss_common;
mod proto_shape;
mod position;
mod conv_geometry;
mod crop_region;
mod concat_layout;
mod axis_operand;
mod shared_top;
mod saved_input;
mod weight_bias;
mod roi;
mod linear;
mod base_convolution;
mod recurrent;
mod detection_boxes;
mod detection_loss;
mod labelled_boxes;
mod box_matching;
mod hard_examples;
mod image_sizes;

mod accuracy;
mod annotated_data;
mod arg_max;
mod axpy;
mod batch_norm;
mod batch_reindex;
mod bias;
mod bn;
mod box_annotator_ohem;
mod class_loss;
mod concat;
mod contrastive_loss;
mod convolution;
mod crop;
mod crop_center;
mod data;
mod deconvolution;
mod dense_image_data;
mod detection_evaluate;
mod detection_output;
mod dropout;
mod dummy_data;
mod eltwise;
mod embed;
mod euclidean_loss;
mod filter;
mod flatten;
mod hdf5_data;
mod hdf5_output;
mod im2col;
mod infogain_loss;
mod inner_product;
mod input;
mod interp;
mod lrn;
mod lstm;
mod lstm_unit;
mod memory_data;
mod multi_box_loss;
mod mvn;
mod neuron;
mod neuron_layers;
mod normalize;
mod parameter;
mod permute;
mod pooling;
mod prelu;
mod prior_box;
mod proposal;
mod psroi_pooling;
mod python;
mod record_batches;
mod reduction;
mod relu6;
mod reorg;
mod reshape;
mod rnn;
mod roi_pooling;
mod scale;
mod shard;
mod shuffle_channel;
mod sigmoid_cross_entropy_loss;
mod silence;
mod slice;
mod smooth_l1_loss;
mod softmax;
mod softmax_loss;
mod spatial_dropout;
mod split;
mod spp;
mod stochastic_pooling;
mod tile;
mod upsample;
mod yolov3_detection_output;

mod registry;

pub use accuracy::AccuracyLayer;
pub use annotated_data::AnnotatedDataLayer;
pub use arg_max::ArgMaxLayer;
pub use axpy::AxpyLayer;
pub use batch_norm::BatchNormLayer;
pub use batch_reindex::BatchReindexLayer;
pub use bias::BiasLayer;
pub use bn::BnLayer;
pub use box_annotator_ohem::BoxAnnotatorOhemLayer;
pub use class_loss::ClassLossLayer;
pub use concat::ConcatLayer;
pub use contrastive_loss::ContrastiveLossLayer;
pub use convolution::ConvolutionLayer;
pub use crop::CropLayer;
pub use crop_center::CropCenterLayer;
pub use data::DataLayer;
pub use deconvolution::DeconvolutionLayer;
pub use dense_image_data::DenseImageDataLayer;
pub use detection_evaluate::DetectionEvaluateLayer;
pub use detection_output::DetectionOutputLayer;
pub use dropout::DropoutLayer;
pub use dummy_data::DummyDataLayer;
pub use eltwise::EltwiseLayer;
pub use embed::EmbedLayer;
pub use euclidean_loss::EuclideanLossLayer;
pub use filter::FilterLayer;
pub use flatten::FlattenLayer;
pub use hdf5_data::Hdf5DataLayer;
pub use hdf5_output::Hdf5OutputLayer;
pub use im2col::Im2colLayer;
pub use infogain_loss::InfogainLossLayer;
pub use inner_product::InnerProductLayer;
pub use input::InputLayer;
pub use interp::InterpLayer;
pub use layer_trait::{Arity, Layer, LayerContext, PropagateDown};
pub use lrn::LrnLayer;
pub use lstm::LstmLayer;
pub use lstm_unit::LstmUnitLayer;
pub use memory_data::MemoryDataLayer;
pub use multi_box_loss::MultiBoxLossLayer;
pub use mvn::MvnLayer;
pub use neuron::{Neuron, NeuronGradient, NeuronLayer};
pub use neuron_layers::{
    AbsVal, Bnll, Clip, Elu, Exp, Log, Power, Relu, Sigmoid, Swish, Tanh, Threshold,
};
pub use normalize::NormalizeLayer;
pub use parameter::ParameterLayer;
pub use permute::PermuteLayer;
pub use pooling::PoolingLayer;
pub use prelu::PreluLayer;
pub use prior_box::PriorBoxLayer;
pub use proposal::ProposalLayer;
pub use psroi_pooling::PsroiPoolingLayer;
pub use python::PythonParam;
pub use reduction::ReductionLayer;
pub use registry::LayerRegistry;
pub use relu6::Relu6Layer;
pub use reorg::ReorgLayer;
pub use reshape::ReshapeLayer;
pub use rnn::RnnLayer;
pub use roi_pooling::RoiPoolingLayer;
pub use scale::ScaleLayer;
pub use shard::Shard;
pub use shuffle_channel::ShuffleChannelLayer;
pub use sigmoid_cross_entropy_loss::SigmoidCrossEntropyLossLayer;
pub use silence::SilenceLayer;
pub use slice::SliceLayer;
pub use smooth_l1_loss::SmoothL1LossLayer;
pub use softmax::SoftmaxLayer;
pub use softmax_loss::SoftmaxLossLayer;
pub use spatial_dropout::SpatialDropoutLayer;
pub use split::SplitLayer;
pub use spp::SppLayer;
pub use tile::TileLayer;
pub use upsample::UpsampleLayer;
pub use yolov3_detection_output::Yolov3DetectionOutputLayer;

#[cfg(feature = "onnx")]
pub(crate) use {
    batch_norm::epsilon as batch_norm_epsilon,
    bn::{Statistics, bn_form},
    conv_geometry::spatial_axes,
    interp::{interpolated_extents, interpolation_weights},
    pooling::{excludes_padding, pooling_windows},
    prior_box::PriorBoxes,
    reorg::reorganization,
    spatial_dropout::spatial_dropout_settings,
    spp::pyramid_windows,
};

use crate::element::{Element, compiled_for};

impl<T: Element> LayerRegistry<T> {
    /// Creates a registry of the Caffe layers that this crate implements.
    pub fn standard() -> Self {
        compiled_for!(T, fn() -> LayerRegistry<T> = LayerRegistry::caffe_layers)()
    }

    fn caffe_layers() -> Self {
        Self::empty()
            .with("Accuracy", AccuracyLayer::new)
            .with("ArgMax", ArgMaxLayer::new)
            .with("BatchNorm", BatchNormLayer::new)
            .with("BatchReindex", BatchReindexLayer::new)
            .with("Bias", BiasLayer::new)
            .with("Concat", ConcatLayer::new)
            .with("ContrastiveLoss", ContrastiveLossLayer::new)
            .with("Convolution", ConvolutionLayer::new)
            .with("Crop", CropLayer::new)
            .with("Data", DataLayer::new)
            .with("Deconvolution", DeconvolutionLayer::new)
            .with("DetectionEvaluate", DetectionEvaluateLayer::new)
            .with("DetectionOutput", DetectionOutputLayer::new)
            .with("Dropout", DropoutLayer::new)
            .with("DummyData", DummyDataLayer::new)
            .with("Eltwise", EltwiseLayer::new)
            .with("Embed", EmbedLayer::new)
            .with("EuclideanLoss", EuclideanLossLayer::new)
            .with("Filter", FilterLayer::new)
            .with("Flatten", FlattenLayer::new)
            .with("HDF5Data", Hdf5DataLayer::new)
            .with("HDF5Output", Hdf5OutputLayer::new)
            .with("HingeLoss", ClassLossLayer::hinge)
            .with("Im2col", Im2colLayer::new)
            .with("ImageData", DataLayer::of_images)
            .with("InfogainLoss", InfogainLossLayer::new)
            .with("InnerProduct", InnerProductLayer::new)
            .with("Input", InputLayer::new)
            .with("LRN", LrnLayer::new)
            .with("LSTM", LstmLayer::new)
            .with("LSTMUnit", LstmUnitLayer::new)
            .with("MemoryData", MemoryDataLayer::new)
            .with("MultinomialLogisticLoss", ClassLossLayer::multinomial_logistic)
            .with("MVN", MvnLayer::new)
            .with("Normalize", NormalizeLayer::new)
            .with("Parameter", ParameterLayer::new)
            .with("Permute", PermuteLayer::new)
            .with("Pooling", PoolingLayer::new)
            .with("PReLU", PreluLayer::new)
            .with("PriorBox", PriorBoxLayer::new)
            .with("PriorBoxClustered", PriorBoxLayer::clustered)
            .with("Reduction", ReductionLayer::new)
            .with("Reshape", ReshapeLayer::new)
            .with("RNN", RnnLayer::new)
            .with("Scale", ScaleLayer::new)
            .with("SigmoidCrossEntropyLoss", SigmoidCrossEntropyLossLayer::new)
            .with("Silence", SilenceLayer::new)
            .with("Slice", SliceLayer::new)
            .with("Softmax", SoftmaxLayer::new)
            .with("SoftmaxWithLoss", SoftmaxLossLayer::new)
            .with("Split", SplitLayer::new)
            .with("SPP", SppLayer::new)
            .with("Tile", TileLayer::new)
            .with("WindowData", DataLayer::of_windows)
            .with("AnnotatedData", AnnotatedDataLayer::new)
            .with("DenseImageData", DenseImageDataLayer::new)
            .with("Axpy", AxpyLayer::new)
            .with("BN", BnLayer::new)
            .with("BoxAnnotatorOHEM", BoxAnnotatorOhemLayer::new)
            .with("ConvolutionDepthwise", ConvolutionLayer::depthwise)
            .with("CropCenter", CropCenterLayer::new)
            .with("DepthwiseConvolution", ConvolutionLayer::depthwise)
            .with("Interp", InterpLayer::new)
            .with("MultiBoxLoss", MultiBoxLossLayer::new)
            .with("Proposal", ProposalLayer::new)
            .with("PSROIPooling", PsroiPoolingLayer::new)
            .with("ReLU6", Relu6Layer::new)
            .with("Reorg", ReorgLayer::new)
            .with("ROIPooling", RoiPoolingLayer::new)
            .with("ShuffleChannel", ShuffleChannelLayer::new)
            .with("SmoothL1Loss", SmoothL1LossLayer::new)
            .with("SmoothL1LossOHEM", SmoothL1LossLayer::of_regions)
            .with("SoftmaxWithLossOHEM", SoftmaxLossLayer::of_regions)
            .with("Upsample", UpsampleLayer::new)
            .with("YoloDetectionOutput", Yolov3DetectionOutputLayer::version_2)
            .with("Yolov3DetectionOutput", Yolov3DetectionOutputLayer::new)
            .with_python("pyloss", "EuclideanLossLayer", EuclideanLossLayer::new)
            .with_python("spatial_dropout", "SpatialDropoutLayer", SpatialDropoutLayer::new)
            .with_python("rpn.proposal_layer", "ProposalLayer", ProposalLayer::of_python)
            .with_python("SSH.layers.proposal_layer", "ProposalLayer", ProposalLayer::of_ssh)
            .with_neuron::<AbsVal>()
            .with_neuron::<Bnll>()
            .with_neuron::<Clip>()
            .with_neuron::<Elu>()
            .with_neuron::<Exp>()
            .with_neuron::<Log>()
            .with_neuron::<Power>()
            .with_neuron::<Relu>()
            .with_neuron::<Sigmoid>()
            .with_neuron::<Swish>()
            .with_neuron::<Tanh>()
            .with_neuron::<Threshold>()
    }
}

impl<T: Element> Default for LayerRegistry<T> {
    fn default() -> Self {
        Self::standard()
    }
}

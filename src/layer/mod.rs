//! Layers: the steps of a net, one a file.
//!
//! A layer is written once, for every device and element type, in terms of kernel families; none
//! copies to the host by itself, but for [`FilterLayer`], whose tops' shapes depend on values, and
//! [`Hdf5OutputLayer`], which writes a file.
//! Third parties add theirs to a [`LayerRegistry`].

mod absval;
mod accuracy;
mod shared_top;
mod axis_operand;
mod arg_max;
mod batch_norm;
mod batch_reindex;
mod bias;
mod bnll;
mod class_loss;
mod clip;
mod concat;
mod contrastive_loss;
mod convolution;
mod crop;
mod data;
mod deconvolution;
mod dropout;
mod dummy_data;
mod eltwise;
mod elu;
mod embed;
mod euclidean_loss;
mod exp;
mod proto_shape;
mod filter;
mod base_convolution;
mod flatten;
mod conv_geometry;
mod hdf5_data;
mod hdf5_output;
mod im2col;
mod image_data;
mod infogain_loss;
mod inner_product;
mod input;
mod concat_layout;
mod saved_input;
mod log;
mod loss_common;
mod lrn;
mod lstm;
mod lstm_unit;
mod memory_data;
mod mvn;
mod neuron;
mod parameter;
mod pooling;
mod power;
mod prelu;
mod linear;
mod python;
mod recurrent;
mod reduction;
mod registry;
mod relu;
mod reshape;
mod rnn;
mod scale;
mod sigmoid;
mod sigmoid_cross_entropy_loss;
mod silence;
mod slice;
mod softmax;
mod softmax_loss;
mod split;
mod spp;
mod stochastic_pooling;
mod swish;
mod tanh;
mod threshold;
mod tile;
mod weight_bias;
mod window_data;

pub use absval::AbsVal;
pub use accuracy::AccuracyLayer;
pub use arg_max::ArgMaxLayer;
pub use batch_norm::BatchNormLayer;
pub use batch_reindex::BatchReindexLayer;
pub use bias::BiasLayer;
pub use bnll::Bnll;
pub use class_loss::ClassLossLayer;
pub use clip::Clip;
pub use concat::ConcatLayer;
pub use contrastive_loss::ContrastiveLossLayer;
pub use convolution::ConvolutionLayer;
pub use crop::CropLayer;
pub use data::DataLayer;
pub use deconvolution::DeconvolutionLayer;
pub use dropout::DropoutLayer;
pub use dummy_data::DummyDataLayer;
pub use eltwise::EltwiseLayer;
pub use elu::Elu;
pub use embed::EmbedLayer;
pub use euclidean_loss::EuclideanLossLayer;
pub use exp::Exp;
pub use filter::FilterLayer;
pub use flatten::FlattenLayer;
pub use hdf5_data::Hdf5DataLayer;
pub use hdf5_output::Hdf5OutputLayer;
pub use im2col::Im2colLayer;
pub use infogain_loss::InfogainLossLayer;
pub use inner_product::InnerProductLayer;
pub use input::InputLayer;
pub use log::Log;
pub use lrn::LrnLayer;
pub use lstm::LstmLayer;
pub use lstm_unit::LstmUnitLayer;
pub use memory_data::MemoryDataLayer;
pub use mvn::MvnLayer;
pub use neuron::{Neuron, NeuronGradient, NeuronLayer};
pub use parameter::ParameterLayer;
pub use pooling::PoolingLayer;
pub use power::Power;
pub use prelu::PreluLayer;
pub use python::PythonLayer;
pub use reduction::ReductionLayer;
pub use registry::LayerRegistry;
pub use relu::Relu;
pub use reshape::ReshapeLayer;
pub use rnn::RnnLayer;
pub use scale::ScaleLayer;
pub use sigmoid::Sigmoid;
pub use sigmoid_cross_entropy_loss::SigmoidCrossEntropyLossLayer;
pub use silence::SilenceLayer;
pub use slice::SliceLayer;
pub use softmax::SoftmaxLayer;
pub use softmax_loss::SoftmaxLossLayer;
pub use split::SplitLayer;
pub use spp::SppLayer;
pub use swish::Swish;
pub use tanh::Tanh;
pub use threshold::Threshold;
pub use tile::TileLayer;

use crate::{
    blob::Blob,
    data::SourceRegistry,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{RngKey, Unary},
    proto::Phase,
};
use std::{any::Any, ops::RangeInclusive, time::Duration};

/// What a layer may know of the net that it becomes part of.
#[derive(Clone, Copy)]
pub struct LayerContext<'a, D: Device> {
    /// The device of the net.
    pub device: &'a D,
    /// Whether the net trains or is tested.
    pub phase: Phase,
    /// The layer's own stream of random numbers.
    pub key: RngKey,
    /// Where records come from.
    pub sources: &'a SourceRegistry,
}

/// Which gradients a backward pass has to compute.
#[derive(Clone, Copy, Debug)]
pub struct PropagateDown<'a> {
    /// Of each bottom.
    pub bottom: &'a [bool],
    /// Of each parameter.
    pub params: &'a [bool],
}

/// How many bottoms and tops a layer takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arity {
    /// Bottoms.
    pub bottom: RangeInclusive<usize>,
    /// Tops.
    pub top: RangeInclusive<usize>,
    /// Whether there must be as many tops as bottoms.
    pub equal: bool,
}

impl Arity {
    /// So many of each.
    pub fn exactly(bottom: usize, top: usize) -> Self {
        Self::between(bottom..=bottom, top..=top)
    }

    /// As many as in these ranges.
    pub fn between(bottom: RangeInclusive<usize>, top: RangeInclusive<usize>) -> Self {
        Self { bottom, top, equal: false }
    }

    /// One top for each bottom, of which there is at least one.
    pub fn one_top_per_bottom() -> Self {
        Self { bottom: 1..=usize::MAX, top: 1..=usize::MAX, equal: true }
    }

    /// Fails unless a layer may have so many.
    ///
    /// # Errors
    /// [`Error::InvalidData`] says how many it takes.
    pub fn check(&self, bottoms: usize, tops: usize) -> Result<()> {
        for (what, range, got) in [("bottom", &self.bottom, bottoms), ("top", &self.top, tops)] {
            if !range.contains(&got) {
                let want = match (*range.start(), *range.end()) {
                    (least, usize::MAX) => format!("at least {least}"),
                    (least, most) if least == most => least.to_string(),
                    (least, most) => format!("{least} to {most}"),
                };
                return Err(Error::InvalidData(format!("takes {want} {what} blobs, not {got}")));
            }
        }
        if self.equal && bottoms != tops {
            let why = format!("takes as many tops as bottoms, not {tops} for {bottoms}");
            return Err(Error::InvalidData(why));
        }
        Ok(())
    }
}

/// One step of a net. Object-safe: nets hold `Box<dyn Layer<T, D>>`.
///
/// A layer is made from its `LayerParameter` by a maker of the [`LayerRegistry`]; then the net
/// calls [`setup`](Self::setup) once, and [`reshape`](Self::reshape) before every
/// [`forward`](Self::forward). Shapes of tops change only in `reshape`; elsewhere blobs' contents
/// can be written but their shapes cannot.
pub trait Layer<T: Element, D: Device>: Any + Send {
    /// The `type` by which prototxt names this layer.
    #[doc(alias = "type")]
    fn kind(&self) -> &'static str;

    /// How many bottoms and tops it takes.
    #[doc(alias = "ExactNumBottomBlobs")]
    #[doc(alias = "EqualNumBottomTopBlobs")]
    fn arity(&self) -> Arity {
        Arity::exactly(1, 1)
    }

    /// Makes the parameters, filled, once the bottoms' shapes are known.
    #[doc(alias = "LayerSetUp")]
    fn setup(&mut self, cx: &LayerContext<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        let _ = (cx, bottom);
        Ok(())
    }

    /// Shapes the tops after the bottoms.
    #[doc(alias = "Reshape")]
    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()>;

    /// Computes the tops' data.
    #[doc(alias = "Forward_cpu")]
    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()>;

    /// The function that this layer applies to every element, if that is all that
    /// [`forward`](Self::forward) does in place: then it need not be called, as the layer before
    /// may do so in [`forward_activated`](Self::forward_activated).
    fn fusible_activation(&self) -> Option<Unary<f64>> {
        None
    }

    /// Computes the tops' data, and `function` of all of them, with the bits that the two have one
    /// after the other. `false`, with nothing done, from a layer that gains nothing by it.
    fn forward_fused(
        &mut self,
        device: &D,
        bottom: &[Blob<T, D>],
        top: &[Blob<T, D>],
        function: Unary<f64>,
    ) -> Result<bool> {
        let _ = (device, bottom, top, function);
        Ok(false)
    }

    /// Overwrites the bottoms' diffs and adds to the parameters' where `propagate` says so.
    #[doc(alias = "Backward_cpu")]
    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()>;

    /// Whether a top may be its bottom.
    fn allows_in_place(&self) -> bool {
        false
    }

    /// Whether a gradient can reach this bottom.
    #[doc(alias = "AllowForceBackward")]
    fn allow_force_backward(&self, bottom: usize) -> bool {
        let _ = bottom;
        true
    }

    /// Whether this is a loss: its first top weighs 1 in the objective unless the definition says
    /// otherwise, and tops that the definition leaves out are made all the same, unnamed.
    #[doc(alias = "AutoTopBlobs")]
    #[doc(alias = "SetLossWeights")]
    fn is_loss(&self) -> bool {
        false
    }

    /// Whether a solver may change the parameters. Where it may not, their `lr_mult` is 0, which a
    /// definition need not say; another it must not.
    fn params_are_trainable(&self) -> bool {
        true
    }

    /// How long forward passes have waited for data so far; `None` where there is none to wait
    /// for.
    fn data_wait_time(&self) -> Option<Duration> {
        None
    }

    /// Parameters.
    #[doc(alias = "blobs")]
    fn params(&self) -> &[Blob<T, D>] {
        &[]
    }

    /// Parameters, to be shared or replaced.
    fn params_mut(&mut self) -> &mut [Blob<T, D>] {
        &mut []
    }
}

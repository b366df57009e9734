//! From `type: "ReLU"` to a layer.

use super::{
    AbsVal, AccuracyLayer, ArgMaxLayer, BatchNormLayer, BatchReindexLayer, BiasLayer, Bnll,
    ClassLossLayer, Clip, ConcatLayer, ContrastiveLossLayer, ConvolutionLayer, CropLayer,
    DataLayer, DeconvolutionLayer, DropoutLayer, DummyDataLayer, EltwiseLayer, Elu, EmbedLayer,
    EuclideanLossLayer, Exp, FilterLayer, FlattenLayer, Hdf5DataLayer, Hdf5OutputLayer,
    Im2colLayer, InfogainLossLayer, InnerProductLayer, InputLayer, Layer, LayerContext, Log,
    LrnLayer, LstmLayer, LstmUnitLayer, MemoryDataLayer, MvnLayer, Neuron, NeuronLayer,
    ParameterLayer, PoolingLayer, Power, PreluLayer, PythonLayer, ReductionLayer, Relu,
    ReshapeLayer, RnnLayer, ScaleLayer, Sigmoid, SigmoidCrossEntropyLossLayer, SilenceLayer,
    SliceLayer, SoftmaxLayer, SoftmaxLossLayer, SplitLayer, SppLayer, Swish, Tanh, Threshold,
    TileLayer,
};
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::LayerParameter,
};
use std::collections::BTreeMap;

type Maker<T, D> = Box<
    dyn Fn(&LayerParameter, &LayerContext<'_, D>) -> Result<Box<dyn Layer<T, D>>> + Send + Sync,
>;

/// Layer types by name. A value, not a global: a net is built with one.
pub struct LayerRegistry<T: Element, D: Device> {
    makers: BTreeMap<String, Maker<T, D>>,
}

impl<T: Element, D: Device> LayerRegistry<T, D> {
    /// No layers.
    pub fn empty() -> Self {
        Self { makers: BTreeMap::new() }
    }

    /// Caffe's layers, as far as this crate has them.
    pub fn standard() -> Self {
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
            .with("Parameter", ParameterLayer::new)
            .with("Pooling", PoolingLayer::new)
            .with("PReLU", PreluLayer::new)
            .with("Python", PythonLayer::new)
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

    /// Adds or replaces the type of a function of one element, under the name it has.
    #[must_use]
    pub fn with_neuron<N: Neuron>(self) -> Self {
        self.with(N::KIND, NeuronLayer::<N, T, D>::new)
    }

    /// Adds or replaces a type.
    #[must_use]
    #[doc(alias = "REGISTER_LAYER_CLASS")]
    pub fn with<L, F>(mut self, kind: &str, make: F) -> Self
    where
        L: Layer<T, D> + 'static,
        F: Fn(&LayerParameter, &LayerContext<'_, D>) -> Result<L> + Send + Sync + 'static,
    {
        let make: Maker<T, D> = Box::new(move |param, cx| Ok(Box::new(make(param, cx)?)));
        self.makers.insert(kind.to_owned(), make);
        self
    }

    /// The types there are, in order.
    #[doc(alias = "LayerTypeList")]
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.makers.keys().map(String::as_str)
    }

    /// Makes a layer.
    ///
    /// # Errors
    /// [`Error::UnknownLayer`] names the types there are; else what the maker returns.
    #[doc(alias = "CreateLayer")]
    pub fn make(
        &self,
        param: &LayerParameter,
        cx: &LayerContext<'_, D>,
    ) -> Result<Box<dyn Layer<T, D>>> {
        let kind = param.r#type();
        let unknown = || Error::UnknownLayer {
            kind: kind.to_owned(),
            known: self.kinds().collect::<Vec<_>>().join(", "),
        };
        self.makers.get(kind).ok_or_else(unknown)?(param, cx)
    }
}

impl<T: Element, D: Device> Default for LayerRegistry<T, D> {
    fn default() -> Self {
        Self::standard()
    }
}

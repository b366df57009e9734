//! The registry of layer types, which creates layers from their `LayerParameter`.

use super::{
    checked_layer::CheckedLayer,
    neuron::{Neuron, NeuronLayer},
    prelude::*,
};
use std::collections::BTreeMap;

type Constructor<T> =
    Box<dyn Fn(&LayerParameter, &LayerContext<'_>) -> Result<Box<dyn Layer<T>>> + Send + Sync>;

/// A registry that maps each layer type to the constructor of its layers. No registry is global;
/// [`NetBuilder::registry`](crate::net::NetBuilder::registry) sets the layer registry of a net.
///
/// ```
/// use cortado::{LayerRegistry, layer::InnerProductLayer, prelude::*, proto::parse_text};
///
/// let registry = LayerRegistry::<f32>::standard().with("Dense", InnerProductLayer::new);
/// let text = r#"layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "Dense" bottom: "x" top: "y" inner_product_param { num_output: 5 } }"#;
/// let net = parse_text(text, "net")?;
/// assert!(Net::<f32>::builder(&CpuDevice::new()).build(&net).is_err());
/// let net = Net::builder(&CpuDevice::new()).registry(registry).build(&net)?;
/// assert_eq!(net.blob("y").unwrap().shape().to_vec(), [1, 5]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct LayerRegistry<T: Element> {
    constructors: BTreeMap<String, Constructor<T>>,
}

impl<T: Element> LayerRegistry<T> {
    /// Creates a registry without layer types.
    pub fn empty() -> Self {
        Self { constructors: BTreeMap::new() }
    }

    /// Registers the layer type [`Neuron::KIND`], whose layers apply the neuron `N` to each
    /// element. Replaces an earlier registration of the type.
    #[must_use]
    pub fn with_neuron<N: Neuron>(self) -> Self {
        self.with(N::KIND, NeuronLayer::<N, T>::new)
    }

    /// Registers the layer type `kind` with the constructor `make`, which replaces an earlier
    /// constructor of `kind`.
    ///
    /// The methods of the created layers return an error if a caller passes a wrong number of
    /// bottoms or tops.
    #[must_use]
    #[doc(alias = "REGISTER_LAYER_CLASS")]
    pub fn with<L, F>(mut self, kind: &str, make: F) -> Self
    where
        L: Layer<T> + 'static,
        F: Fn(&LayerParameter, &LayerContext<'_>) -> Result<L> + Send + Sync + 'static,
    {
        let constructor: Constructor<T> = Box::new(move |param, cx| Ok(Box::new(make(param, cx)?)));
        self.constructors.insert(kind.to_owned(), constructor);
        self
    }

    /// Returns the registered layer types in alphabetical order.
    #[doc(alias = "LayerTypeList")]
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.constructors.keys().map(String::as_str)
    }

    /// Creates the layer that `param` defines.
    ///
    /// # Errors
    /// Returns [`Error::UnknownLayer`], which lists the registered types, if the type of `param` is
    /// not registered. Propagates errors from the layer's constructor.
    #[doc(alias = "CreateLayer")]
    pub fn make(&self, param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Box<dyn Layer<T>>> {
        let kind = param.r#type();
        let unknown_layer = || Error::UnknownLayer {
            kind: kind.to_owned(),
            // Omit the type `Python`, because its constructor only returns an error.
            known: self.kinds().filter(|kind| *kind != "Python").collect::<Vec<_>>().join(", "),
        };
        let layer = self.constructors.get(kind).ok_or_else(unknown_layer)?(param, cx)?;
        Ok(Box::new(CheckedLayer::new(layer, param)))
    }
}

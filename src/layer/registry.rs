//! The registry of layer types, which creates layers from their `LayerParameter`.

use super::{
    checked_layer::CheckedLayer,
    neuron::{Neuron, NeuronLayer},
    prelude::*,
    python::PythonParam,
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
    /// Constructors of layers that replace Python layers, by the names of module and class.
    python: BTreeMap<(String, String), Constructor<T>>,
}

impl<T: Element> LayerRegistry<T> {
    /// Creates a registry without layer types.
    pub fn empty() -> Self {
        Self { constructors: BTreeMap::new(), python: BTreeMap::new() }
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
        self.constructors.insert(kind.to_owned(), boxed(make));
        self
    }

    /// Registers the constructor `make` of the layers that replace the Python layers of class
    /// `layer` in module `module`. The constructor can read the layer's `param_str` through
    /// [`PythonParam`](super::PythonParam), whose documentation contains an example.
    #[must_use]
    pub fn with_python<L, F>(mut self, module: &str, layer: &str, make: F) -> Self
    where
        L: Layer<T> + 'static,
        F: Fn(&LayerParameter, &LayerContext<'_>) -> Result<L> + Send + Sync + 'static,
    {
        self.python.insert((module.to_owned(), layer.to_owned()), boxed(make));
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
    /// not registered. Returns [`Error::InvalidData`] for a Python layer whose module and class are
    /// not registered. Propagates errors from the layer's constructor.
    #[doc(alias = "CreateLayer")]
    pub fn make(&self, param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Box<dyn Layer<T>>> {
        let layer = self.constructor(param)?(param, cx)?;
        Ok(Box::new(CheckedLayer::new(layer, param)))
    }

    fn constructor(&self, param: &LayerParameter) -> Result<&Constructor<T>> {
        let kind = param.r#type();
        if let Some(constructor) = self.constructors.get(kind) {
            return Ok(constructor);
        }
        if kind == "Python" {
            return self.python_constructor(&PythonParam::of(param));
        }
        let known = self.kinds().collect::<Vec<_>>().join(", ");
        Err(Error::UnknownLayer { kind: kind.to_owned(), known })
    }

    fn python_constructor(&self, param: &PythonParam) -> Result<&Constructor<T>> {
        let PythonParam { module, layer, .. } = param;
        self.python.get(&(module.clone(), layer.clone())).ok_or_else(|| {
            let known = self.python.keys().map(|(module, layer)| format!("`{module}.{layer}`"));
            Error::InvalidData(format!(
                "Python layer `{module}.{layer}` is not registered, and cortado runs no Python code; \
                 write the layer in Rust, register it with `LayerRegistry::with_python(\"{module}\", \
                 \"{layer}\", …)`, and build the net with `NetBuilder::registry`; registered Python \
                 layers: {}",
                known.collect::<Vec<_>>().join(", ")
            ))
        })
    }
}

fn boxed<T, L, F>(make: F) -> Constructor<T>
where
    T: Element,
    L: Layer<T> + 'static,
    F: Fn(&LayerParameter, &LayerContext<'_>) -> Result<L> + Send + Sync + 'static,
{
    Box::new(move |param, cx| Ok(Box::new(make(param, cx)?)))
}

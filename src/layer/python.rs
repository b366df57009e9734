//! Layers in Python, which this crate does not run.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::LayerParameter,
};

/// There is none: its maker says how to have a layer of one's own.
pub enum PythonLayer {}

impl PythonLayer {
    /// Fails.
    ///
    /// # Errors
    /// [`Error::InvalidData`], always.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let python = param.python_param.clone().unwrap_or_default();
        let (module, layer) = (python.module(), python.layer());
        let how = "implement `Layer`, give it a type with `LayerRegistry::with`, and build the net \
                   with `NetBuilder::registry`";
        Err(Error::InvalidData(format!("`{module}.{layer}` in Python cannot be run: {how}")))
    }
}

impl<T: Element, D: Device> Layer<T, D> for PythonLayer {
    fn kind(&self) -> &'static str {
        "Python"
    }

    fn arity(&self) -> Arity {
        match *self {}
    }

    fn reshape(&mut self, _: &[Blob<T, D>], _: &mut [Blob<T, D>]) -> Result<()> {
        match *self {}
    }

    fn forward(&mut self, _: &D, _: &[Blob<T, D>], _: &[Blob<T, D>]) -> Result<()> {
        match *self {}
    }

    fn backward(
        &mut self,
        _: &D,
        _: &[Blob<T, D>],
        _: PropagateDown<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        match *self {}
    }
}

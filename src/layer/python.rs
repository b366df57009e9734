//! The Python layer, which this crate does not support.

use super::prelude::*;

/// A placeholder type for Caffe's Python layer; [`new`](Self::new) always fails. The error message
/// of `new` suggests implementing [`Layer`] instead.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"layer { type: "Python" top: "y" python_param { module: "m" layer: "L" } }"#;
/// let result = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?);
/// let error = result.err().unwrap().to_string();
/// assert!(error.contains("Python layer `m.L` is not supported; implement `Layer`"));
/// # Ok::<(), cortado::Error>(())
/// ```
pub enum PythonLayer {}

impl PythonLayer {
    /// Always fails, because this crate does not support Python layers.
    ///
    /// # Errors
    /// Always returns [`Error::InvalidData`].
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let python = param.python_param.clone().unwrap_or_default();
        let name = match (python.module(), python.layer()) {
            ("", "") => "layer type `Python`".to_owned(),
            (module, layer) => format!("Python layer `{module}.{layer}`"),
        };
        let remedy = "implement `Layer`, give it a type with `LayerRegistry::with`, and build \
                      the net with `NetBuilder::registry`";
        Err(Error::InvalidData(format!("{name} is not supported; {remedy}")))
    }
}

impl<T: Element> Layer<T> for PythonLayer {
    fn kind(&self) -> &'static str {
        "Python"
    }

    fn arity(&self) -> Arity {
        match *self {}
    }

    fn reshape(&mut self, _: &[Blob<T>], _: &mut [Blob<T>]) -> Result<()> {
        match *self {}
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], _: &[Blob<T>]) -> Result<()> {
        match *self {}
    }
}

//! The Parameter layer, whose top is a learned parameter.

use super::{prelude::*, proto_shape};
use crate::shape::Shape;

/// Exposes a learned parameter as the layer's top without copying. The learned parameter is
/// initially zero.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Parameter" top: "p" parameter_param { shape { dim: 2 dim: 3 } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.params()[0].blob().fill(4.0)?;
/// net.forward()?;
/// assert_eq!(net.blob("p").unwrap().to_vec()?, [4.0; 6]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ParameterLayer<T: Element> {
    shape: Shape,
    params: Vec<Blob<T>>,
}

impl<T: Element> ParameterLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`](crate::Error::InvalidData) if an extent of the shape is
    /// negative.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let shape = param.parameter_param.as_ref().and_then(|param| param.shape.as_ref());
        let shape = proto_shape::shape(&shape.cloned().unwrap_or_default())?;
        Ok(Self { shape, params: Vec::new() })
    }
}

impl<T: Element> Layer<T> for ParameterLayer<T> {
    fn kind(&self) -> &'static str {
        "Parameter"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(0, 1)
    }

    fn setup(&mut self, cx: &LayerContext<'_>, _: &[Blob<T>]) -> Result<()> {
        self.params = vec![Blob::new(cx.device, &self.shape)?];
        Ok(())
    }

    fn reshape(&mut self, _: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        top[0].reshape(&self.shape)?;
        top[0].share_data(&self.params[0])
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], _: &[Blob<T>]) -> Result<()> {
        Ok(())
    }

    /// Adds the diff of the top to the diff of the learned parameter. In Caffe, the top and the
    /// parameter share one diff, so Caffe keeps only the gradient of the last pass instead of the
    /// sum over several passes.
    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        _: &[Blob<T>],
    ) -> Result<()> {
        if !propagate.params[0] {
            return Ok(());
        }
        let (dy, mut dw) = (top[0].diff()?, self.params[0].diff_mut()?);
        device.axpy(T::acc(1.0), dy.view(), dw.view_mut())
    }

    fn params(&self) -> &[Blob<T>] {
        &self.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        &mut self.params
    }
}

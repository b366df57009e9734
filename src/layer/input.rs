//! The Input layer, whose tops the caller fills.

use super::{prelude::*, proto_shape};
use crate::shape::Shape;

/// A layer without bottoms, whose tops are the inputs of a net; the caller writes the values of the
/// tops. The definition gives no shape, one shape for all tops, or one shape per top. The caller
/// may reshape the tops of the layer later.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 } } }
///     layer { type: "TanH" bottom: "x" top: "y" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob_mut("x").unwrap().reshape(&[5, 2])?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().shape().to_vec(), [5, 2]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct InputLayer {
    shapes: Vec<Shape>,
    shaped: bool,
}

impl InputLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] unless the definition gives no shape, one shape, or one shape
    /// per top.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let shapes = param.input_param.as_ref().map_or(&[][..], |input| &input.shape);
        let tops = param.top.len();
        if shapes.len() > 1 && shapes.len() != tops {
            return invalid(format!(
                "input_param: expected 1 or {tops} shapes, found {}",
                shapes.len()
            ));
        }
        let shapes = shapes.iter().map(proto_shape::shape).collect::<Result<_>>()?;
        Ok(Self { shapes, shaped: false })
    }
}

impl<T: Element> Layer<T> for InputLayer {
    fn kind(&self) -> &'static str {
        "Input"
    }

    fn arity(&self) -> Arity {
        match self.shapes.len() {
            0 | 1 => Arity::between(0..=0, 1..=usize::MAX),
            tops => Arity::exactly(0, tops),
        }
    }

    fn reshape(&mut self, _: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        // Set the shapes of the tops only in the first call, so that shapes which the caller sets
        // later persist.
        if !self.shaped {
            for (i, top) in top.iter_mut().enumerate() {
                let shape = self.shapes.get(i).or(self.shapes.first());
                if let Some(shape) = shape {
                    top.reshape(shape)?;
                }
            }
            self.shaped = true;
        }
        Ok(())
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], _: &[Blob<T>]) -> Result<()> {
        Ok(())
    }
}

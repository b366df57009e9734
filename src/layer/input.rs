//! Tops that the caller fills.

use super::{Arity, Layer, LayerContext, PropagateDown, proto_shape};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::LayerParameter,
    shape::Shape,
};

/// Inputs of a net: tops of given shapes whose data the caller writes. One shape for all tops, one
/// for each, or none; the caller may reshape them later.
pub struct InputLayer {
    shapes: Vec<Shape>,
    shaped: bool,
}

impl InputLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] unless there are no, one, or as many shapes as tops.
    pub fn new<D: Device>(param: &LayerParameter, _: &LayerContext<'_, D>) -> Result<Self> {
        let given = param.input_param.as_ref().map_or(&[][..], |input| &input.shape);
        let tops = param.top.len();
        if given.len() > 1 && given.len() != tops {
            let why = format!("input_param gives {} shapes for {tops} tops", given.len());
            return Err(Error::InvalidData(why));
        }
        Ok(Self { shapes: given.iter().map(proto_shape::shape).collect::<Result<_>>()?, shaped: false })
    }
}

impl<T: Element, D: Device> Layer<T, D> for InputLayer {
    fn kind(&self) -> &'static str {
        "Input"
    }

    fn arity(&self) -> Arity {
        Arity::between(0..=0, 1..=usize::MAX)
    }

    fn reshape(&mut self, _: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        // Once: what the caller makes of the shapes afterwards stays.
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

    fn forward(&mut self, _: &D, _: &[Blob<T, D>], _: &[Blob<T, D>]) -> Result<()> {
        Ok(())
    }

    fn backward(
        &mut self,
        _: &D,
        _: &[Blob<T, D>],
        _: PropagateDown<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        Ok(())
    }
}

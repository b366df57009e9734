//! Layers that apply one function to every element.

use super::{Layer, LayerContext, PropagateDown, saved_input::SavedInput};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::{Binary, Unary},
    proto::LayerParameter,
};

/// A function of one element and its chain rule, of which [`NeuronLayer`] makes a layer that
/// passes over its operands once in each direction.
///
/// ```
/// use cortado::{
///     CpuDevice, LayerRegistry, Result,
///     layer::{Gradient, Neuron},
///     op::{Binary, Unary},
///     proto::LayerParameter,
/// };
///
/// /// `y = √x`
/// struct Root;
///
/// impl Neuron for Root {
///     const KIND: &'static str = "Root";
///
///     fn new(_: &LayerParameter) -> Result<Self> {
///         Ok(Self)
///     }
///
///     fn function(&self) -> Unary<f64> {
///         Unary::Sqrt
///     }
///
///     fn gradient(&self) -> Gradient {
///         let (scale, shift, power) = (1.0, 0.0, 0.5);
///         Gradient::OfInput(Binary::PowAffineGrad { scale, shift, power })
///     }
/// }
///
/// let registry = LayerRegistry::<f32, CpuDevice>::standard().with_neuron::<Root>();
/// assert!(registry.kinds().any(|kind| kind == "Root"));
/// ```
pub trait Neuron: Send + 'static {
    /// The `type` by which prototxt names the layer.
    const KIND: &'static str;

    /// Whether a top may be its bottom.
    const IN_PLACE: bool = true;

    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] for parameters that make no function.
    fn new(param: &LayerParameter) -> Result<Self>
    where
        Self: Sized;

    /// `y = f(x)`
    fn function(&self) -> Unary<f64>;

    /// `dx`, given `dy` and `x` or `y`.
    fn gradient(&self) -> NeuronGradient;
}

/// How a gradient passes a function of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NeuronGradient {
    /// `dx = op(dy, x)`. A layer that runs in place keeps `x`.
    OfInput(Binary<f64>),
    /// `dx = op(dy, y)`
    OfOutput(Binary<f64>),
    /// It does not.
    None,
}

/// The layer of a [`Neuron`].
pub struct NeuronLayer<N: Neuron, T: Element, D: Device> {
    neuron: N,
    kept: SavedInput<T, D>,
}

impl<N: Neuron, T: Element, D: Device> NeuronLayer<N, T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// Those of [`Neuron::new`].
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        Ok(Self { neuron: N::new(param)?, kept: SavedInput::new(cx.device)? })
    }

    fn keeps_input(&self) -> bool {
        matches!(self.neuron.gradient(), NeuronGradient::OfInput(_))
    }
}

impl<N: Neuron, T: Element, D: Device> Layer<T, D> for NeuronLayer<N, T, D> {
    fn kind(&self) -> &'static str {
        N::KIND
    }

    fn allows_in_place(&self) -> bool {
        N::IN_PLACE
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        top[0].reshape_like(&bottom[0])?;
        match self.keeps_input() {
            true => self.kept.reshape(&bottom[0], &top[0]),
            false => Ok(()),
        }
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let input = match self.keeps_input() {
            true => self.kept.keep(&bottom[0], &top[0])?,
            false => &bottom[0],
        };
        let (x, mut y) = top[0].data_mut_from(input)?;
        device.unary(self.neuron.function().cast(), x.src(), y.view_mut())
    }

    /// None if the input has to be kept: in place, it would be lost.
    fn fusible_activation(&self) -> Option<Unary<f64>> {
        (!self.keeps_input()).then(|| self.neuron.function())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if !propagate.bottom[0] {
            return Ok(());
        }
        let (op, of) = match self.neuron.gradient() {
            NeuronGradient::OfInput(op) => (op, self.kept.input(&bottom[0], &top[0])),
            NeuronGradient::OfOutput(op) => (op, &top[0]),
            NeuronGradient::None => return Err(Error::InvalidData("no gradient passes it".into())),
        };
        let (value, (dy, mut dx)) = (of.data()?, bottom[0].diff_mut_from(&top[0])?);
        device.binary(op.cast(), dy.src(), value.view(), dx.view_mut())
    }
}

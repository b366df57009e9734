//! The [`Neuron`] trait, for layers that apply one activation function to every element.

use super::{prelude::*, saved_input::SavedInput};
use crate::op::{Binary, Unary};

/// An activation function of one variable, and its derivative. [`NeuronLayer`] is the layer that
/// applies a `Neuron` to every element, with one kernel per pass.
///
/// ```
/// use cortado::{
///     LayerRegistry, Result,
///     layer::{Neuron, NeuronGradient},
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
///     fn gradient(&self) -> NeuronGradient {
///         let (scale, shift, power) = (1.0, 0.0, 0.5);
///         NeuronGradient::OfInput(Binary::PowAffineGrad { scale, shift, power })
///     }
/// }
///
/// let registry = LayerRegistry::<f32>::standard().with_neuron::<Root>();
/// assert!(registry.kinds().any(|kind| kind == "Root"));
/// ```
pub trait Neuron: Send + 'static {
    /// The layer type, which is the value of the field `type` in a prototxt definition.
    const KIND: &'static str;

    /// Whether the layer may run in place.
    const IN_PLACE: bool = true;

    /// Creates the activation function from the fields of the layer's definition.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if a field of the definition is invalid.
    fn new(param: &LayerParameter) -> Result<Self>
    where
        Self: Sized;

    /// Returns the activation function `f` of the layer `y = f(x)`.
    fn function(&self) -> Unary<f64>;

    /// Returns the formula of the gradient `dx` in terms of `dy` and either the input `x` or the
    /// output `y`.
    fn gradient(&self) -> NeuronGradient;
}

/// The gradient of a [`Neuron`]'s activation function.
///
/// ```
/// use cortado::{layer::{AbsVal, Neuron, NeuronGradient, Sigmoid}, op::Binary};
///
/// assert_eq!(AbsVal.gradient(), NeuronGradient::OfInput(Binary::AbsGrad));
/// assert_eq!(Sigmoid.gradient(), NeuronGradient::OfOutput(Binary::SigmoidGrad));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NeuronGradient {
    /// The gradient `dx = op(dy, x)` is a function of the input `x`, which an in-place layer saves.
    OfInput(Binary<f64>),
    /// The gradient `dx = op(dy, y)` is a function of the output `y`.
    OfOutput(Binary<f64>),
    /// The activation function has no gradient.
    None,
}

/// A layer that applies a [`Neuron`] to every element.
///
/// ```
/// use cortado::{LayerRegistry, layer::{AbsVal, NeuronLayer}};
///
/// let registry = LayerRegistry::empty().with("Magnitude", NeuronLayer::<AbsVal, f32>::new);
/// assert_eq!(registry.kinds().collect::<Vec<_>>(), ["Magnitude"]);
/// ```
pub struct NeuronLayer<N: Neuron, T: Element> {
    neuron: N,
    saved_input: SavedInput<T>,
}

impl<N: Neuron, T: Element> NeuronLayer<N, T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns any error from [`Neuron::new`].
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        Ok(Self { neuron: N::new(param)?, saved_input: SavedInput::new(cx.device)? })
    }

    fn saves_input(&self) -> bool {
        matches!(self.neuron.gradient(), NeuronGradient::OfInput(_))
    }
}

impl<N: Neuron, T: Element> Layer<T> for NeuronLayer<N, T> {
    fn kind(&self) -> &'static str {
        N::KIND
    }

    fn allows_in_place(&self) -> bool {
        N::IN_PLACE
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        top[0].reshape_like(&bottom[0])?;
        match self.saves_input() {
            true => self.saved_input.reshape(&bottom[0], &top[0]),
            false => Ok(()),
        }
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let input = match self.saves_input() {
            true => self.saved_input.save(&bottom[0], &top[0])?,
            false => &bottom[0],
        };
        let (x, mut y) = top[0].data_mut_from(input)?;
        device.unary(self.neuron.function().cast(), x.src(), y.view_mut())
    }

    /// Returns the activation function, or `None` if the backward pass reads the input, which a
    /// fused kernel does not save.
    fn fusible_activation(&self) -> Option<Unary<f64>> {
        (!self.saves_input()).then(|| self.neuron.function())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        _: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (op, operand) = match self.neuron.gradient() {
            NeuronGradient::OfInput(op) => (op, self.saved_input.input(&bottom[0], &top[0])),
            NeuronGradient::OfOutput(op) => (op, &top[0]),
            NeuronGradient::None => {
                return invalid("the function has no gradient");
            }
        };
        let (value, (dy, mut dx)) = (operand.data()?, bottom[0].diff_mut_from(&top[0])?);
        device.binary(op.cast(), dy.src(), value.view(), dx.view_mut())
    }
}

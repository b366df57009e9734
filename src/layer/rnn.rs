//! The RNN layer: a simple recurrent network over whole sequences.

use super::{linear::Linear, prelude::*, recurrent::Recurrent};
use crate::{
    memory::Src,
    op::{Axis, Binary, Unary},
    proto::LayerState,
};

/// Simple recurrent network (RNN) with `h = tanh(W_xh·x + b_h (+ W_xh_static·static) + W_hh·(cont ·
/// h_prev))` and `y = tanh(W_ho·h + b_o)`. The layer is trained by backpropagation through time.
///
/// The first bottom holds the inputs `x` of shape steps × streams × …, and the second bottom holds
/// the sequence continuation indicators `cont` of shape steps × streams. An optional third bottom
/// holds a static input of shape streams × …, which is the same at all time steps. With
/// `expose_hidden`, the last bottom is the initial state `h` of shape 1 × streams × `num_output`.
/// `cont` is 0 at the first step of a sequence and 1 at all other steps. The first top holds the
/// output `y` of every step. With `expose_hidden`, the second top holds the final state `h`.
///
/// Without `expose_hidden`, the state `h` is initially zero and persists from one forward pass to
/// the next. The parameters of the RNN layer are `W_xh`, `b_h`, `W_xh_static` if the layer has a
/// static input, `W_hh`, `W_ho` and `b_o`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "DummyData" top: "x" top: "cont" dummy_data_param {
///       shape { dim: 5 dim: 2 dim: 3 } shape { dim: 5 dim: 2 } data_filler { value: 1 } } }
///     layer { type: "RNN" bottom: "x" bottom: "cont" top: "y"
///       recurrent_param { num_output: 4 } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("y").unwrap().shape().to_vec(), [5, 2, 4]);
/// assert_eq!(net.params().len(), 5); // W_xh, b_h, W_hh, W_ho and b_o
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "RecurrentLayer")]
pub struct RnnLayer<T: Element> {
    core: Recurrent<T>,
    hidden: Blob<T>,
    /// The outputs of all time steps. The backward pass reads the outputs from this blob instead of
    /// the top, because a later layer may overwrite the top in place.
    outputs: Blob<T>,
}

impl<T: Element> RnnLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`](crate::Error::InvalidData) if `num_output` is 0, or an error
    /// if a filler's definition is invalid.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let core = Recurrent::new(param, cx, (1, 1))?;
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self { core, hidden: blob()?, outputs: blob()? })
    }

    fn output_product(&self) -> Linear {
        let (sizes, outputs) = (self.core.sizes, self.core.outputs());
        Linear { rows: sizes.steps * sizes.streams, inputs: outputs, outputs }
    }

    /// Returns the indices of the last two parameters, `W_ho` and `b_o`.
    fn output_params(&self) -> (usize, usize) {
        let count = self.core.params.len();
        (count.saturating_sub(2), count.saturating_sub(1))
    }
}

impl<T: Element> Layer<T> for RnnLayer<T> {
    fn kind(&self) -> &'static str {
        "RNN"
    }

    fn arity(&self) -> Arity {
        self.core.arity()
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom != 1
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        let outputs = self.core.outputs();
        self.core.setup(cx, bottom)?;
        self.core.add_weights(cx, [outputs, outputs])?;
        self.core.add_bias(cx, outputs)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        self.core.reshape(bottom[0].device(), bottom, top)?;
        self.hidden.reshape_like(&top[0])?;
        self.outputs.reshape_like(&top[0])
    }

    fn state(&self) -> Result<Option<LayerState>> {
        self.core.state(&[])
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        self.core.set_state(state, &mut [])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (core, steps) = (&self.core, self.core.sizes.steps);
        core.input_gates(device, bottom)?;
        let (mut gates, mut hidden) = (core.gates.data_mut()?, self.hidden.data_mut()?);
        for step in 0..steps {
            core.add_hidden_state(device, step, bottom, hidden.view(), gates.view_mut())?;
            let row = gates.view().slice(core.gates_range(step))?;
            let h = hidden.view_mut().slice(core.state_range(step))?;
            device.unary(Unary::Tanh, row.into(), h)?;
        }
        core.save_hidden(device, hidden.view().slice(core.state_range(steps - 1))?, top)?;
        let ((w, b), product) = (self.output_params(), self.output_product());
        let (b, mut y) = (core.params[b].data()?, self.outputs.data_mut()?);
        product.forward(device, hidden.view(), &core.params[w], y.view_mut())?;
        let axis = Axis::new(product.rows, product.outputs, 1)?;
        device.broadcast(Binary::Add, &axis, Src::InPlace, b.view(), y.view_mut())?;
        device.unary(Unary::Tanh, Src::InPlace, y.view_mut())?;
        device.copy(y.view(), top[0].data_mut()?.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let ((w, b), product) = (self.output_params(), self.output_product());
        let (y, h) = (self.outputs.data()?, self.hidden.data()?);
        let (mut dy, mut dh) = (self.outputs.diff_mut()?, self.hidden.diff_mut()?);
        let core = &self.core;
        device.binary(Binary::TanhGrad, top[0].diff()?.view().into(), y.view(), dy.view_mut())?;
        if propagate.params[w] {
            product.weights_gradient(device, h.view(), dy.view(), &core.params[w])?;
        }
        if propagate.params[b] {
            let axis = Axis::new(product.rows, product.outputs, 1)?;
            let mut db = core.params[b].diff_mut()?;
            device.sum_to_axis(&axis, T::acc(1.0), dy.view(), db.view_mut())?;
        }
        product.backward(device, dy.view(), &core.params[w], dh.view_mut())?;
        let (cont, mut dgates) = (bottom[1].data()?, core.gates.diff_mut()?);
        core.begin_backward(device, propagate, top)?;
        for step in (0..core.sizes.steps).rev() {
            let gradient =
                core.hidden_gradient(device, dh.view().slice(core.state_range(step))?)?;
            let h = h.view().slice(core.state_range(step))?;
            let row = dgates.view_mut().slice(core.gates_range(step))?;
            device.binary(Binary::TanhGrad, gradient.view().into(), h, row)?;
            let cont = cont.view().slice(core.cont_range(step))?;
            core.propagate_hidden(device, cont, dgates.view().slice(core.gates_range(step))?)?;
        }
        drop(dgates);
        core.finish_backward(device, propagate, bottom)
    }

    fn params(&self) -> &[Blob<T>] {
        &self.core.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        &mut self.core.params
    }
}

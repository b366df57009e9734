//! A simple recurrent network, unrolled over whole sequences.

use super::{Arity, Layer, LayerContext, PropagateDown, linear::Linear, recurrent::Recurrent};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::Result,
    memory::Src,
    op::{Axis, Binary, Unary},
    proto::LayerParameter,
};

/// `h = tanh(W_xh·x + b_h (+ W_xh_static·static) + W_hh·(cont · h_prev))` and
/// `y = tanh(W_ho·h + b_o)` over sequences of inputs, with their gradient through time.
///
/// Bottoms: `x` of steps × streams × …; `cont` of steps × streams, 0 where a sequence begins and
/// otherwise 1; optionally a static input of streams × …, which every step sees; with
/// `expose_hidden` the state `h` before the first step, of 1 × streams × `num_output`. Tops: `y`
/// of every step; with `expose_hidden` the state after the last.
///
/// Without `expose_hidden` the state goes on from one forward pass to the next, beginning with
/// zeros. Parameters: `W_xh` and `b_h`, `W_xh_static` if there is a static input, `W_hh`, `W_ho`
/// and `b_o`.
#[doc(alias = "RecurrentLayer")]
pub struct RnnLayer<T: Element, D: Device> {
    core: Recurrent<T, D>,
    /// Hidden states of all steps.
    hidden: Blob<T, D>,
    /// Results of all steps: the top may be changed in place.
    results: Blob<T, D>,
}

impl<T: Element, D: Device> RnnLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`](crate::Error::InvalidData) without a positive `num_output`; those of the
    /// fillers.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let core = Recurrent::new(param, cx, (1, 1))?;
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self { core, hidden: blob()?, results: blob()? })
    }

    /// From the hidden states of all steps to their results.
    fn product(&self) -> Linear {
        let (extents, outputs) = (self.core.extents, self.core.outputs());
        Linear { rows: extents.steps * extents.streams, inputs: outputs, outputs }
    }

    /// `W_ho` and `b_o`: the last parameters.
    fn output_params(&self) -> (usize, usize) {
        let count = self.core.params.len();
        (count.saturating_sub(2), count.saturating_sub(1))
    }
}

impl<T: Element, D: Device> Layer<T, D> for RnnLayer<T, D> {
    fn kind(&self) -> &'static str {
        "RNN"
    }

    fn arity(&self) -> Arity {
        self.core.arity()
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom != 1
    }

    fn setup(&mut self, cx: &LayerContext<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        let outputs = self.core.outputs();
        self.core.setup(cx, bottom)?;
        self.core.add_weights(cx, [outputs, outputs])?;
        self.core.add_bias(cx, outputs)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        self.core.reshape(bottom[0].device(), bottom, top)?;
        self.hidden.reshape_like(&top[0])?;
        self.results.reshape_like(&top[0])
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (core, steps) = (&self.core, self.core.extents.steps);
        core.feed(device, bottom)?;
        let (cont, mut gates) = (bottom[1].data()?, core.gates.data_mut()?);
        let mut hidden = self.hidden.data_mut()?;
        for step in 0..steps {
            let cont = cont.view().slice(core.cont_row(step))?;
            let row = gates.view_mut().slice(core.gates_row(step))?;
            match step.checked_sub(1) {
                None => core.with_first(bottom, |h| core.recur(device, step, cont, h, row))?,
                Some(last) => {
                    core.recur(device, step, cont, hidden.view().slice(core.row(last))?, row)?;
                }
            }
            let row = gates.view().slice(core.gates_row(step))?;
            device.unary(Unary::Tanh, row.into(), hidden.view_mut().slice(core.row(step))?)?;
        }
        core.keep(device, hidden.view().slice(core.row(steps - 1))?, top)?;
        let ((w, b), product) = (self.output_params(), self.product());
        let (b, mut y) = (core.params[b].data()?, self.results.data_mut()?);
        product.forward(device, hidden.view(), &core.params[w], y.view_mut())?;
        let axis = Axis::new(product.rows, product.outputs, 1)?;
        device.broadcast(Binary::Add, &axis, Src::InPlace, b.view(), y.view_mut())?;
        device.unary(Unary::Tanh, Src::InPlace, y.view_mut())?;
        device.copy(y.view(), top[0].data_mut()?.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let ((w, b), product) = (self.output_params(), self.product());
        let (y, h) = (self.results.data()?, self.hidden.data()?);
        let (mut dy, mut dh) = (self.results.diff_mut()?, self.hidden.diff_mut()?);
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
        for step in (0..core.extents.steps).rev() {
            let arriving = core.arriving(device, dh.view().slice(core.row(step))?)?;
            let h = h.view().slice(core.row(step))?;
            let row = dgates.view_mut().slice(core.gates_row(step))?;
            device.binary(Binary::TanhGrad, arriving.view().into(), h, row)?;
            let cont = cont.view().slice(core.cont_row(step))?;
            core.pass_on(device, cont, dgates.view().slice(core.gates_row(step))?)?;
        }
        drop(dgates);
        core.finish_backward(device, propagate, bottom)
    }

    fn params(&self) -> &[Blob<T, D>] {
        &self.core.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T, D>] {
        &mut self.core.params
    }
}

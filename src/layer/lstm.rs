//! Long short-term memory, unrolled over whole sequences.

use super::{Arity, Layer, LayerContext, PropagateDown, recurrent::Recurrent};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::Lstm,
    proto::LayerParameter,
};

/// Long short-term memory over sequences of inputs, with its gradient through time.
///
/// Bottoms: `x` of steps × streams × …; `cont` of steps × streams, 0 where a sequence begins and
/// otherwise 1; optionally a static input of streams × …, which every step sees; with
/// `expose_hidden` the states `h` and `c` before the first step, of 1 × streams × `num_output`.
/// Tops: `h` of every step; with `expose_hidden` the states after the last.
///
/// Without `expose_hidden` states go on from one forward pass to the next, beginning with zeros.
/// Parameters: `W_xc` and `b_c`, `W_xc_static` if there is a static input, `W_hc`; their rows are
/// input, forget and output gates and candidates. [`Lstm`] tells what a step does.
#[doc(alias = "RecurrentLayer")]
pub struct LstmLayer<T: Element, D: Device> {
    core: Recurrent<T, D>,
    /// Cells before the first step and after each.
    cells: Vec<Blob<T, D>>,
    /// Gradient of a step's cells.
    gradient: Blob<T, D>,
}

impl<T: Element, D: Device> LstmLayer<T, D> {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`](crate::Error::InvalidData) without a positive `num_output`; those of the
    /// fillers.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let core = Recurrent::new(param, cx, (4, 2))?;
        Ok(Self { core, cells: Vec::new(), gradient: Blob::new(cx.device, &[0])? })
    }

    fn op(&self) -> Result<Lstm> {
        Lstm::new(self.core.extents.streams, self.core.outputs())
    }
}

impl<T: Element, D: Device> Layer<T, D> for LstmLayer<T, D> {
    fn kind(&self) -> &'static str {
        "LSTM"
    }

    fn arity(&self) -> Arity {
        self.core.arity()
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom != 1
    }

    fn setup(&mut self, cx: &LayerContext<'_, D>, bottom: &[Blob<T, D>]) -> Result<()> {
        self.core.setup(cx, bottom)
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let device = bottom[0].device();
        let others = self.core.reshape(device, bottom, top)?;
        let (steps, streams) = (self.core.extents.steps, self.core.extents.streams);
        let shape = [1, streams, self.core.outputs()];
        self.gradient.reshape(&shape)?;
        if others {
            self.cells.clear();
        }
        // Those after the last pass stay the last, however many steps there are now.
        let last = self.cells.pop();
        self.cells.truncate(steps);
        self.cells.try_reserve(steps + 1 - self.cells.len()).map_err(|_| {
            let bytes = (steps + 1).saturating_mul(size_of::<Blob<T, D>>());
            Error::OutOfMemory { device: "host".into(), bytes }
        })?;
        while self.cells.len() < steps {
            self.cells.push(Blob::new(device, &shape)?);
        }
        self.cells.push(last.map_or_else(|| Blob::new(device, &shape), Ok)?);
        Ok(())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (op, steps) = (self.op()?, self.core.extents.steps);
        self.core.feed(device, bottom)?;
        match self.core.given(bottom).get(1) {
            Some(c) => device.copy(c.data()?.view(), self.cells[0].data_mut()?.view_mut())?,
            None => self.cells.swap(0, steps),
        }
        let (core, cont) = (&self.core, bottom[1].data()?);
        let (mut gates, mut y) = (core.gates.data_mut()?, top[0].data_mut()?);
        for step in 0..steps {
            let cont = cont.view().slice(core.cont_row(step))?;
            let row = gates.view_mut().slice(core.gates_row(step))?;
            match step.checked_sub(1) {
                None => core.with_first(bottom, |h| core.recur(device, step, cont, h, row))?,
                Some(last) => {
                    core.recur(device, step, cont, y.view().slice(core.row(last))?, row)?;
                }
            }
            let (c_prev, mut c) = (self.cells[step].data()?, self.cells[step + 1].data_mut()?);
            let row = gates.view_mut().slice(core.gates_row(step))?;
            let h = y.view_mut().slice(core.row(step))?;
            device.lstm(&op, c_prev.view(), cont, row, c.view_mut(), h)?;
        }
        core.keep(device, y.view().slice(core.row(steps - 1))?, top)?;
        match top.get(2) {
            Some(top) => device.copy(self.cells[steps].data()?.view(), top.data_mut()?.view_mut()),
            None => Ok(()),
        }
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let (op, core, steps) = (self.op()?, &self.core, self.core.extents.steps);
        let (cont, dy) = (bottom[1].data()?, top[0].diff()?);
        let (mut dgates, mut dc) = (core.gates.diff_mut()?, self.gradient.diff_mut()?);
        device.copy(core.gates.data()?.view(), dgates.view_mut())?;
        match top.get(2) {
            Some(top) => device.copy(top.diff()?.view(), dc.view_mut())?,
            None => device.fill(T::default(), dc.view_mut())?,
        }
        core.begin_backward(device, propagate, top)?;
        for step in (0..steps).rev() {
            let (c_prev, c) = (self.cells[step].data()?, self.cells[step + 1].data()?);
            let dh = core.arriving(device, dy.view().slice(core.row(step))?)?;
            let row = dgates.view_mut().slice(core.gates_row(step))?;
            let (c_prev, c) = (c_prev.view(), c.view());
            device.lstm_backward(&op, c_prev, c, dh.view(), dc.view_mut(), row)?;
            let cont = cont.view().slice(core.cont_row(step))?;
            core.pass_on(device, cont, dgates.view().slice(core.gates_row(step))?)?;
        }
        drop(dgates);
        core.finish_backward(device, propagate, bottom)?;
        match core.given(bottom).get(1) {
            Some(c) if propagate.bottom[bottom.len() - 1] => {
                device.copy(dc.view(), c.diff_mut()?.view_mut())
            }
            _ => Ok(()),
        }
    }

    fn params(&self) -> &[Blob<T, D>] {
        &self.core.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T, D>] {
        &mut self.core.params
    }
}

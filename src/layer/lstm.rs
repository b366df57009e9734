//! The LSTM layer: long short-term memory over whole sequences.

use super::{prelude::*, recurrent::Recurrent};
use crate::{op::Lstm, proto::LayerState};

/// Long short-term memory (LSTM) over sequences, with backpropagation through time. [`Lstm`] gives
/// the formulas of one time step.
///
/// The first bottom holds the inputs `x` of shape steps × streams × …, and the second bottom holds
/// the sequence continuation indicators `cont` of shape steps × streams. An optional third bottom
/// holds a static input of shape streams × …, which is the same at all time steps. With
/// `expose_hidden`, the last two bottoms are the initial states `h` and `c` of shape 1 × streams ×
/// `num_output`. `cont` is 0 at the first step of a sequence and 1 at all other steps. The first
/// top holds the hidden state `h` of every step. With `expose_hidden`, the second and third tops
/// hold the final states `h` and `c`.
///
/// Without `expose_hidden`, the states `h` and `c` are initially zero and persist from one forward
/// pass to the next. The parameters of the LSTM layer are `W_xc`, `b_c`, `W_xc_static` if the layer
/// has a static input, and `W_hc`. The rows of each parameter belong, in this order, to the input
/// gates, forget gates, output gates and cell candidates.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "DummyData" top: "x" top: "cont" dummy_data_param {
///       shape { dim: 5 dim: 2 dim: 3 } shape { dim: 5 dim: 2 } data_filler { value: 1 } } }
///     layer { type: "LSTM" bottom: "x" bottom: "cont" top: "h"
///       recurrent_param { num_output: 4 weight_filler { type: "xavier" } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("h").unwrap().shape().to_vec(), [5, 2, 4]); // steps, streams, outputs
/// # Ok::<(), cortado::Error>(())
/// ```
#[doc(alias = "RecurrentLayer")]
pub struct LstmLayer<T: Element> {
    core: Recurrent<T>,
    /// The cell states before the first time step and after each time step.
    cells: Vec<Blob<T>>,
    /// A blob whose diff holds the gradient of the cell state at the current time step of the
    /// backward pass.
    cell_gradient: Blob<T>,
}

impl<T: Element> LstmLayer<T> {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`](crate::Error::InvalidData) if `num_output` is 0, or an error
    /// if a filler's definition is invalid.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let core = Recurrent::new(param, cx, (4, 2))?;
        Ok(Self { core, cells: Vec::new(), cell_gradient: Blob::new(cx.device, &[0])? })
    }

    fn op(&self) -> Result<Lstm> {
        Lstm::new(self.core.sizes.streams, self.core.outputs())
    }
}

impl<T: Element> Layer<T> for LstmLayer<T> {
    fn kind(&self) -> &'static str {
        "LSTM"
    }

    fn arity(&self) -> Arity {
        self.core.arity()
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom != 1
    }

    fn setup(&mut self, cx: &LayerContext<'_>, bottom: &[Blob<T>]) -> Result<()> {
        self.core.setup(cx, bottom)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let device = bottom[0].device();
        let reset_states = self.core.reshape(device, bottom, top)?;
        let (steps, streams) = (self.core.sizes.steps, self.core.sizes.streams);
        let shape = [1, streams, self.core.outputs()];
        self.cell_gradient.reshape(&shape)?;
        if reset_states {
            self.cells.clear();
        }
        // Keep the last blob of `cells` if the number of steps changes, because the next forward
        // pass starts from the cell state in this blob.
        let last_cells = self.cells.pop();
        self.cells.truncate(steps);
        let bytes = (steps + 1).saturating_mul(size_of::<Blob<T>>());
        let reserve_result = self.cells.try_reserve(steps + 1 - self.cells.len());
        reserve_result.map_err(|_| Error::out_of_host_memory(bytes))?;
        while self.cells.len() < steps {
            self.cells.push(Blob::new(device, &shape)?);
        }
        self.cells.push(last_cells.map_or_else(|| Blob::new(device, &shape), Ok)?);
        Ok(())
    }

    fn state(&self) -> Result<Option<LayerState>> {
        let cells: Vec<_> = self.cells.last().into_iter().collect();
        self.core.state(&cells)
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        let first = self.cells.len().saturating_sub(1);
        self.core.set_state(state, &mut self.cells[first..])
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (op, steps) = (self.op()?, self.core.sizes.steps);
        self.core.input_gates(device, bottom)?;
        match self.core.initial_states(bottom).get(1) {
            Some(c) => device.copy(c.data()?.view(), self.cells[0].data_mut()?.view_mut())?,
            None => self.cells.swap(0, steps),
        }
        let (core, cont) = (&self.core, bottom[1].data()?);
        let (mut gates, mut y) = (core.gates.data_mut()?, top[0].data_mut()?);
        for step in 0..steps {
            core.add_hidden_state(device, step, bottom, y.view(), gates.view_mut())?;
            let (c_prev, mut c) = (self.cells[step].data()?, self.cells[step + 1].data_mut()?);
            let cont = cont.view().slice(core.cont_range(step))?;
            let row = gates.view_mut().slice(core.gates_range(step))?;
            let h = y.view_mut().slice(core.state_range(step))?;
            device.lstm(&op, c_prev.view(), cont, row, c.view_mut(), h)?;
        }
        core.save_hidden(device, y.view().slice(core.state_range(steps - 1))?, top)?;
        match top.get(2) {
            Some(top) => device.copy(self.cells[steps].data()?.view(), top.data_mut()?.view_mut()),
            None => Ok(()),
        }
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        let (op, core, steps) = (self.op()?, &self.core, self.core.sizes.steps);
        let (cont, dy) = (bottom[1].data()?, top[0].diff()?);
        let (mut dgates, mut dc) = (core.gates.diff_mut()?, self.cell_gradient.diff_mut()?);
        device.copy(core.gates.data()?.view(), dgates.view_mut())?;
        match top.get(2) {
            Some(top) => device.copy(top.diff()?.view(), dc.view_mut())?,
            None => device.fill(T::default(), dc.view_mut())?,
        }
        core.begin_backward(device, propagate, top)?;
        for step in (0..steps).rev() {
            let (c_prev, c) = (self.cells[step].data()?, self.cells[step + 1].data()?);
            let dh = core.hidden_gradient(device, dy.view().slice(core.state_range(step))?)?;
            let row = dgates.view_mut().slice(core.gates_range(step))?;
            let (c_prev, c) = (c_prev.view(), c.view());
            device.lstm_backward(&op, c_prev, c, dh.view(), dc.view_mut(), row)?;
            let cont = cont.view().slice(core.cont_range(step))?;
            core.propagate_hidden(device, cont, dgates.view().slice(core.gates_range(step))?)?;
        }
        drop(dgates);
        core.finish_backward(device, propagate, bottom)?;
        match core.initial_states(bottom).get(1) {
            Some(c) if propagate.bottom[bottom.len() - 1] => {
                device.copy(dc.view(), c.diff_mut()?.view_mut())
            }
            _ => Ok(()),
        }
    }

    fn params(&self) -> &[Blob<T>] {
        &self.core.params
    }

    fn params_mut(&mut self) -> &mut [Blob<T>] {
        &mut self.core.params
    }
}

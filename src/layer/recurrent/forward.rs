//! From inputs to gates, and from one step's hidden state to the next.

use super::{Recurrent, Sequences};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    layer::linear::Linear,
    memory::{Src, View, ViewMut},
    op::{Axis, Binary, Gemm, Transpose},
};

impl<T: Element, D: Device> Recurrent<T, D> {
    /// `gates ← W_x·x + b (+ W_s·static)`, for all steps.
    pub(in crate::layer) fn feed(&self, device: &D, bottom: &[Blob<T, D>]) -> Result<()> {
        let Sequences { steps, streams, inputs, statics } = self.extents;
        if steps == 0 {
            return Err(Error::InvalidData("forward before reshape".into()));
        }
        let (x, b, mut gates) = (bottom[0].data()?, self.params[1].data()?, self.gates.data_mut()?);
        let product = Linear { rows: steps * streams, inputs, outputs: self.width };
        product.forward(device, x.view(), &self.params[0], gates.view_mut())?;
        let axis = Axis::new(steps * streams, self.width, 1)?;
        device.broadcast(Binary::Add, &axis, Src::InPlace, b.view(), gates.view_mut())?;
        if self.has_statics {
            let (x, mut part) = (bottom[2].data()?, self.statics.data_mut()?);
            let product = Linear { rows: streams, inputs: statics, outputs: self.width };
            product.forward(device, x.view(), &self.params[2], part.view_mut())?;
            let axis = Axis::new(steps, streams * self.width, 1)?;
            device.broadcast(Binary::Add, &axis, Src::InPlace, part.view(), gates.view_mut())?;
        }
        Ok(())
    }

    /// Adds `W_h·(cont · h)` to a step's `gates`; `h` is the state before the step: in the first
    /// the one given, or that after the last pass.
    pub(in crate::layer) fn recur(
        &self,
        device: &D,
        step: usize,
        cont: View<'_, T, D>,
        h: View<'_, T, D>,
        gates: ViewMut<'_, T, D>,
    ) -> Result<()> {
        let (streams, w) = (self.extents.streams, self.params[self.recurrent()].data()?);
        let mut before = self.before.data_mut()?;
        let row = self.row(step);
        let conted = before.view_mut().slice(row.clone())?;
        device.broadcast(Binary::Mul, &self.each_stream()?, h.into(), cont, conted)?;
        let op =
            Gemm::with_transpose(Transpose::No, Transpose::Yes, streams, self.width, self.outputs);
        device.gemm(&op.accumulate(), before.view().slice(row)?, w.view(), gates)
    }

    /// Keeps the hidden state after the last step for the next pass, and shows it if it is
    /// exposed.
    pub(in crate::layer) fn keep(
        &self,
        device: &D,
        h: View<'_, T, D>,
        top: &[Blob<T, D>],
    ) -> Result<()> {
        device.copy(h, self.last.data_mut()?.view_mut())?;
        match top.get(1) {
            Some(top) => device.copy(h, top.data_mut()?.view_mut()),
            None => Ok(()),
        }
    }

    /// Calls `body` with the hidden state before the first step.
    pub(in crate::layer) fn with_first<R>(
        &self,
        bottom: &[Blob<T, D>],
        body: impl FnOnce(View<'_, T, D>) -> Result<R>,
    ) -> Result<R> {
        let first = self.given(bottom).first().unwrap_or(&self.last).data()?;
        body(first.view())
    }
}

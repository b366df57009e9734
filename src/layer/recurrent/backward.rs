//! From the gradients of hidden states back to those of gates, parameters and inputs.

use super::{Recurrent, Sequences};
use crate::{
    blob::{Blob, ReadGuard},
    device::Device,
    element::Element,
    error::{Error, Result},
    layer::{PropagateDown, linear::Linear},
    memory::{Src, View},
    op::{Axis, Binary, Gemm},
};

impl<T: Element, D: Device> Recurrent<T, D> {
    /// Begins the way back: what is passed on to the last step is the gradient of the state after
    /// it, if that is exposed.
    pub(in crate::layer) fn begin_backward(
        &self,
        device: &D,
        propagate: PropagateDown<'_>,
        top: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[1] {
            return Err(Error::InvalidData("no gradient reaches cont (bottom 1)".into()));
        }
        let mut passed = self.gradient.diff_mut()?;
        match top.get(1) {
            Some(top) => device.copy(top.diff()?.view(), passed.view_mut()),
            None => device.fill(T::default(), passed.view_mut()),
        }
    }

    /// Gradient of a step's hidden state: `dy`, as it comes from above, and what the step after
    /// it passed on.
    pub(in crate::layer) fn arriving(
        &self,
        device: &D,
        dy: View<'_, T, D>,
    ) -> Result<ReadGuard<'_, T, D>> {
        let (passed, mut dh) = (self.gradient.diff()?, self.gradient.data_mut()?);
        device.binary(Binary::Add, dy.into(), passed.view(), dh.view_mut())?;
        drop(dh);
        self.gradient.data()
    }

    /// Passes on to the step before: `cont · W_hᵀ·dgates`.
    pub(in crate::layer) fn pass_on(
        &self,
        device: &D,
        cont: View<'_, T, D>,
        dgates: View<'_, T, D>,
    ) -> Result<()> {
        let (w, mut passed) = (self.params[self.recurrent()].data()?, self.gradient.diff_mut()?);
        let op = Gemm::new(self.extents.streams, self.outputs, self.width);
        device.gemm(&op, dgates, w.view(), passed.view_mut())?;
        let axis = self.each_stream()?;
        device.broadcast(Binary::Mul, &axis, Src::InPlace, cont, passed.view_mut())
    }

    /// Gradients of the parameters and of the bottoms, once those of all gates and what is passed
    /// on to the state before the first step are known.
    pub(in crate::layer) fn finish_backward(
        &self,
        device: &D,
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        let Sequences { steps, streams, inputs, statics } = self.extents;
        let dgates = self.gates.diff()?;
        let all = |inputs| Linear { rows: steps * streams, inputs, outputs: self.width };
        if propagate.params[0] {
            let x = bottom[0].data()?;
            all(inputs).weights_gradient(device, x.view(), dgates.view(), &self.params[0])?;
        }
        if propagate.params[1] {
            let (axis, mut db) =
                (Axis::new(steps * streams, self.width, 1)?, self.params[1].diff_mut()?);
            device.sum_to_axis(&axis, T::acc(1.0), dgates.view(), db.view_mut())?;
        }
        if propagate.params[self.recurrent()] {
            let (h, w) = (self.before.data()?, &self.params[self.recurrent()]);
            all(self.outputs).weights_gradient(device, h.view(), dgates.view(), w)?;
        }
        if propagate.bottom[0] {
            let mut dx = bottom[0].diff_mut()?;
            all(inputs).backward(device, dgates.view(), &self.params[0], dx.view_mut())?;
        }
        if self.has_statics {
            let mut part = self.statics.diff_mut()?;
            let axis = Axis::new(steps, streams * self.width, 1)?;
            device.sum_to_axis(&axis, T::acc(0.0), dgates.view(), part.view_mut())?;
            let product = Linear { rows: streams, inputs: statics, outputs: self.width };
            if propagate.params[2] {
                let x = bottom[2].data()?;
                product.weights_gradient(device, x.view(), part.view(), &self.params[2])?;
            }
            if propagate.bottom[2] {
                let mut dx = bottom[2].diff_mut()?;
                product.backward(device, part.view(), &self.params[2], dx.view_mut())?;
            }
        }
        match self.given(bottom).first() {
            Some(h) if propagate.bottom[bottom.len() - self.exposed] => {
                device.copy(self.gradient.diff()?.view(), h.diff_mut()?.view_mut())
            }
            _ => Ok(()),
        }
    }
}

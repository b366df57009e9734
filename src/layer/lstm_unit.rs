//! One step of long short-term memory.

use super::{Arity, Layer, LayerContext, PropagateDown};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    op::Lstm,
    proto::LayerParameter,
};

/// Cells and hidden states after a step, as [`Lstm`] says.
///
/// Bottoms: the cells before it, of 1 × streams × outputs; its gates, of 1 × streams × 4·outputs;
/// `cont` of 1 × streams. Tops: `c` and `h`. A `cont` between 0 and 1 scales the forget gate; its
/// gradient is then Caffe's, which takes `cont·σ` for a sigmoid.
pub struct LstmUnitLayer<T: Element, D: Device> {
    /// For the bottoms' present shapes.
    op: Option<Lstm>,
    /// The gates, activated; diff: those of the gradient.
    gates: Blob<T, D>,
    /// Where the gradient of the cells goes if nobody wants it.
    cells: Blob<T, D>,
}

impl<T: Element, D: Device> LstmUnitLayer<T, D> {
    /// From the layer's parameters, of which there are none.
    ///
    /// # Errors
    /// None; fallible as all makers are.
    pub fn new(_: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self { op: None, gates: blob()?, cells: blob()? })
    }

    fn op(&self) -> Result<&Lstm> {
        self.op.as_ref().ok_or_else(|| Error::InvalidData("forward before reshape".into()))
    }
}

impl<T: Element, D: Device> Layer<T, D> for LstmUnitLayer<T, D> {
    fn kind(&self) -> &'static str {
        "LSTMUnit"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(3, 2)
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom != 2
    }

    fn reshape(&mut self, bottom: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        let [c, gates, cont] = [0, 1, 2].map(|i| bottom[i].shape());
        let &[1, streams, outputs] = &c[..] else {
            return Err(Error::Shape(format!("cells are 1 × streams × outputs, not {c}")));
        };
        let op = Lstm::new(streams, outputs)?;
        if gates[..] != [1, streams, 4 * outputs] || cont[..] != [1, streams] {
            let why = format!("gates {gates} and cont {cont} do not fit cells {c}");
            return Err(Error::Shape(why));
        }
        top.iter_mut().try_for_each(|top| top.reshape_like(&bottom[0]))?;
        self.gates.reshape_like(&bottom[1])?;
        self.cells.reshape_like(&bottom[0])?;
        self.op = Some(op);
        Ok(())
    }

    fn forward(&mut self, device: &D, bottom: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let (c_prev, cont, mut gates) =
            (bottom[0].data()?, bottom[2].data()?, self.gates.data_mut()?);
        device.copy(bottom[1].data()?.view(), gates.view_mut())?;
        let (mut c, mut h) = (top[0].data_mut()?, top[1].data_mut()?);
        let (c_prev, cont) = (c_prev.view(), cont.view());
        device.lstm(self.op()?, c_prev, cont, gates.view_mut(), c.view_mut(), h.view_mut())
    }

    fn backward(
        &mut self,
        device: &D,
        top: &[Blob<T, D>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T, D>],
    ) -> Result<()> {
        if propagate.bottom[2] {
            return Err(Error::InvalidData("no gradient reaches cont (bottom 2)".into()));
        }
        let (c_prev, c, dh) = (bottom[0].data()?, top[0].data()?, top[1].diff()?);
        let wanted = |i: usize, spare| if propagate.bottom[i] { &bottom[i] } else { spare };
        let mut dc = wanted(0, &self.cells).diff_mut()?;
        let mut dgates = wanted(1, &self.gates).diff_mut()?;
        device.copy(top[0].diff()?.view(), dc.view_mut())?;
        device.copy(self.gates.data()?.view(), dgates.view_mut())?;
        let (c_prev, c) = (c_prev.view(), c.view());
        device.lstm_backward(self.op()?, c_prev, c, dh.view(), dc.view_mut(), dgates.view_mut())
    }
}

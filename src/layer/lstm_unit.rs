//! The LSTMUnit layer: one time step of long short-term memory.

use super::prelude::*;
use crate::op::Lstm;

/// Computes the cell states and the hidden states after one LSTM time step; see [`Lstm`].
///
/// The first bottom holds the preceding cell states of shape 1 × streams × outputs, and the second
/// bottom holds the gate inputs of shape 1 × streams × 4·outputs. The third bottom holds `cont` of
/// shape 1 × streams. The tops are the new cell state `c` and the new hidden state `h`. A value of
/// `cont` between 0 and 1 scales the forget gate. As in Caffe, the backward pass differentiates the
/// scaled forget gate `cont·σ` as if it were a sigmoid.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "c0" input_param { shape { dim: 1 dim: 1 dim: 1 } } }
///     layer { type: "Input" top: "gates" input_param { shape { dim: 1 dim: 1 dim: 4 } } }
///     layer { type: "Input" top: "cont" input_param { shape { dim: 1 dim: 1 } } }
///     layer { type: "LSTMUnit" bottom: "c0" bottom: "gates" bottom: "cont" top: "c" top: "h" }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("c0").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[2.0]);
/// net.blob("cont").unwrap().data_mut()?.host_mut()?.copy_from_slice(&[1.0]);
/// net.forward()?;
/// assert_eq!(net.blob("c").unwrap().to_vec()?, [1.0]); // 2 · σ(0), where σ(0) = ½
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct LstmUnitLayer<T: Element> {
    op: Option<Lstm>,
    /// The gate activations; the diff is scratch space for the gradient of the gate inputs if no
    /// gradient of the second bottom is requested.
    gates: Blob<T>,
    /// A blob whose diff is scratch space for the gradient of the preceding cell states if no
    /// gradient of the first bottom is requested.
    cells: Blob<T>,
}

impl<T: Element> LstmUnitLayer<T> {
    /// Creates the layer.
    pub fn new(_: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let blob = || Blob::new(cx.device, &[0]);
        Ok(Self { op: None, gates: blob()?, cells: blob()? })
    }
}

impl<T: Element> Layer<T> for LstmUnitLayer<T> {
    fn kind(&self) -> &'static str {
        "LSTMUnit"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(3, 2)
    }

    fn allow_force_backward(&self, bottom: usize) -> bool {
        bottom != 2
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let [c, gates, cont] = [0, 1, 2].map(|i| bottom[i].shape());
        let &[1, streams, outputs] = &c[..] else {
            return wrong_shape(format!(
                "cells: expected shape [1, streams, outputs], found shape {c}"
            ));
        };
        let op = Lstm::new(streams, outputs)?;
        if gates[..] != [1, streams, 4 * outputs] || cont[..] != [1, streams] {
            return wrong_shape(format!("gates {gates} and cont {cont} do not fit cells {c}"));
        }
        top.iter_mut().try_for_each(|top| top.reshape_like(&bottom[0]))?;
        self.gates.reshape_like(&bottom[1])?;
        self.cells.reshape_like(&bottom[0])?;
        self.op = Some(op);
        Ok(())
    }

    fn forward(&mut self, device: &AnyDevice, bottom: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let (c_prev, cont, mut gates) =
            (bottom[0].data()?, bottom[2].data()?, self.gates.data_mut()?);
        device.copy(bottom[1].data()?.view(), gates.view_mut())?;
        let (mut c, mut h) = (top[0].data_mut()?, top[1].data_mut()?);
        let (c_prev, cont) = (c_prev.view(), cont.view());
        device.lstm(reshaped(&self.op)?, c_prev, cont, gates.view_mut(), c.view_mut(), h.view_mut())
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        top: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        check_no_gradient(propagate.bottom, 2, "cont")?;
        let (c_prev, c, dh) = (bottom[0].data()?, top[0].data()?, top[1].diff()?);
        let target = |i: usize, scratch| if propagate.bottom[i] { &bottom[i] } else { scratch };
        let mut dc = target(0, &self.cells).diff_mut()?;
        let mut dgates = target(1, &self.gates).diff_mut()?;
        device.copy(top[0].diff()?.view(), dc.view_mut())?;
        device.copy(self.gates.data()?.view(), dgates.view_mut())?;
        let (c_prev, c) = (c_prev.view(), c.view());
        device.lstm_backward(
            reshaped(&self.op)?,
            c_prev,
            c,
            dh.view(),
            dc.view_mut(),
            dgates.view_mut(),
        )
    }
}

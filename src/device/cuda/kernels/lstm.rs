//! Launches of LSTM time steps, for the `Elementwise` family.

use crate::{
    device::CudaDevice,
    element::Element,
    error::{Result, check_len},
    memory::{View, ViewMut},
    op::Lstm,
};

type Input<'a, T> = View<'a, T, CudaDevice>;
type Output<'a, T> = ViewMut<'a, T, CudaDevice>;

#[track_caller]
pub(super) fn forward<T: Element>(
    device: &CudaDevice,
    op: &Lstm,
    (c_prev, cont): (Input<'_, T>, Input<'_, T>),
    mut gates: Output<'_, T>,
    [mut c, mut h]: [Output<'_, T>; 2],
) -> Result<()> {
    let states = [("c_prev", c_prev.len()), ("c", c.len()), ("h", h.len())];
    op.check("lstm", ("gates", gates.len()), &states)?;
    check_len("lstm", "cont", op.streams(), cont.len())?;
    let launch = device.kernel::<T>("lstm")?.sizes([op.streams(), op.outputs()]);
    let launch = launch.read(c_prev.device()?).read(cont.device()?).write(gates.device_mut()?);
    launch.write(c.device_write_only()?).write(h.device_write_only()?).grid_1d(op.state())
}

#[track_caller]
pub(super) fn backward<T: Element>(
    device: &CudaDevice,
    op: &Lstm,
    [c_prev, c, dh]: [Input<'_, T>; 3],
    mut dc: Output<'_, T>,
    mut gates: Output<'_, T>,
) -> Result<()> {
    const OP: &str = "lstm_backward";
    let states = [("c_prev", c_prev.len()), ("c", c.len()), ("dh", dh.len()), ("dc", dc.len())];
    op.check(OP, ("gates", gates.len()), &states)?;
    let launch = device.kernel::<T>(OP)?.sizes([op.streams(), op.outputs()]);
    let launch = launch.read(c_prev.device()?).read(c.device()?).read(dh.device()?);
    launch.write(dc.device_mut()?).write(gates.device_mut()?).grid_1d(op.state())
}

//! Elementwise maps.

use crate::{
    device::SimulatedDevice,
    element::{Element, Storable},
    error::{Result, check_len},
    host,
    kernel::Elementwise,
    memory::{Src, View, ViewMut},
    op::{Axis, Binary, Lstm, Unary},
};

impl Elementwise for SimulatedDevice {
    fn fill<T: Element>(&self, value: T, y: ViewMut<'_, T, Self>) -> Result<()> {
        let mut launch = self.launch::<T>("fill")?;
        let y = launch.writes(y)?;
        launch.queue(move |workers| host::fill(workers, value, &mut y.write()))
    }

    fn unary<T: Element>(
        &self,
        op: Unary<T::Acc>,
        x: Src<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        match x {
            Src::View(x) => {
                check_len(op.name(), "y", x.len(), y.len())?;
                let mut launch = self.launch::<T>("unary")?;
                let (x, y) = (launch.reads(x)?, launch.writes(y)?);
                launch.queue(move |workers| host::unary(workers, op, &x.read(), &mut y.write()))
            }
            Src::InPlace => {
                let mut launch = self.launch::<T>("unary")?;
                let y = launch.updates(y)?;
                launch.queue(move |workers| host::unary_in_place(workers, op, &mut y.write()))
            }
        }
    }

    fn binary<T: Element>(
        &self,
        op: Binary<T::Acc>,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        match a {
            Src::View(a) => {
                check_len(op.name(), "b", a.len(), b.len())?;
                check_len(op.name(), "y", a.len(), y.len())?;
                let mut launch = self.launch::<T>("binary")?;
                let (a, b, y) = (launch.reads(a)?, launch.reads(b)?, launch.writes(y)?);
                launch.queue(move |workers| {
                    host::binary(workers, op, &a.read(), &b.read(), &mut y.write())
                })
            }
            Src::InPlace => {
                check_len(op.name(), "b", y.len(), b.len())?;
                let mut launch = self.launch::<T>("binary")?;
                let (b, y) = (launch.reads(b)?, launch.updates(y)?);
                launch.queue(move |workers| {
                    host::binary_in_place(workers, op, &b.read(), &mut y.write())
                })
            }
        }
    }

    fn broadcast<T: Element>(
        &self,
        op: Binary<T::Acc>,
        axis: &Axis,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if let Src::View(a) = a {
            check_len(op.name(), "a", axis.count(), a.len())?;
        }
        check_len(op.name(), "b", axis.extent, b.len())?;
        check_len(op.name(), "y", axis.count(), y.len())?;
        let mut launch = self.launch::<T>("broadcast")?;
        let (axis, b) = (*axis, launch.reads(b)?);
        match a {
            Src::View(a) => {
                let (a, y) = (launch.reads(a)?, launch.writes(y)?);
                launch.queue(move |workers| {
                    host::broadcast(workers, op, &axis, &a.read(), &b.read(), &mut y.write())
                })
            }
            Src::InPlace => {
                let y = launch.updates(y)?;
                launch.queue(move |workers| {
                    host::broadcast_in_place(workers, op, &axis, &b.read(), &mut y.write())
                })
            }
        }
    }

    fn affine<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        scale: View<'_, T, Self>,
        shift: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if let Src::View(x) = x {
            check_len("affine", "x", axis.count(), x.len())?;
        }
        check_len("affine", "scale", axis.extent, scale.len())?;
        check_len("affine", "shift", axis.extent, shift.len())?;
        check_len("affine", "y", axis.count(), y.len())?;
        let mut launch = self.launch::<T>("affine")?;
        let (axis, scale, shift) = (*axis, launch.reads(scale)?, launch.reads(shift)?);
        match x {
            Src::View(x) => {
                let (x, y) = (launch.reads(x)?, launch.writes(y)?);
                launch.queue(move |workers| {
                    let (x, scale, shift) = (x.read(), scale.read(), shift.read());
                    host::affine(workers, &axis, &x, &scale, &shift, &mut y.write())
                })
            }
            Src::InPlace => {
                let y = launch.updates(y)?;
                launch.queue(move |workers| {
                    let (scale, shift) = (scale.read(), shift.read());
                    host::affine_in_place(workers, &axis, &scale, &shift, &mut y.write())
                })
            }
        }
    }

    fn convert<T: Element, U: Element>(
        &self,
        x: View<'_, T, Self>,
        y: ViewMut<'_, U, Self>,
    ) -> Result<()> {
        check_len("convert", "y", x.len(), y.len())?;
        let mut launch = self.launch::<T>("convert")?;
        let (x, y) = (launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::convert(workers, &x.read(), &mut y.write()))
    }

    fn convert_integers<N: Storable + Into<f64>, T: Element>(
        &self,
        x: View<'_, N, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        check_len("convert_integers", "y", x.len(), y.len())?;
        let mut launch = self.launch::<T>("convert_integers")?;
        let (x, y) = (launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::convert_integers(workers, &x.read(), &mut y.write()))
    }

    fn lstm<T: Element>(
        &self,
        op: &Lstm,
        c_prev: View<'_, T, Self>,
        cont: View<'_, T, Self>,
        gates: ViewMut<'_, T, Self>,
        c: ViewMut<'_, T, Self>,
        h: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let states = [("c_prev", c_prev.len()), ("c", c.len()), ("h", h.len())];
        op.check("lstm", ("gates", gates.len()), &states)?;
        check_len("lstm", "cont", op.streams(), cont.len())?;
        let mut launch = self.launch::<T>("lstm")?;
        let (op, c_prev, cont) = (*op, launch.reads(c_prev)?, launch.reads(cont)?);
        let (gates, c, h) = (launch.updates(gates)?, launch.writes(c)?, launch.writes(h)?);
        launch.queue(move |workers| {
            let (c_prev, cont) = (c_prev.read(), cont.read());
            let (mut gates, mut c, mut h) = (gates.write(), c.write(), h.write());
            host::lstm(workers, &op, &c_prev, &cont, &mut gates, &mut c, &mut h)
        })
    }

    fn lstm_backward<T: Element>(
        &self,
        op: &Lstm,
        c_prev: View<'_, T, Self>,
        c: View<'_, T, Self>,
        dh: View<'_, T, Self>,
        dc: ViewMut<'_, T, Self>,
        gates: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let states = [("c_prev", c_prev.len()), ("c", c.len()), ("dh", dh.len()), ("dc", dc.len())];
        op.check("lstm_backward", ("gates", gates.len()), &states)?;
        let mut launch = self.launch::<T>("lstm_backward")?;
        let (op, c_prev) = (*op, launch.reads(c_prev)?);
        let (c, dh) = (launch.reads(c)?, launch.reads(dh)?);
        let (dc, gates) = (launch.updates(dc)?, launch.updates(gates)?);
        launch.queue(move |workers| {
            let (c_prev, c, dh) = (c_prev.read(), c.read(), dh.read());
            host::lstm_backward(workers, &op, &c_prev, &c, &dh, &mut dc.write(), &mut gates.write())
        })
    }
}

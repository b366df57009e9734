//! Elementwise maps.

use crate::{
    device::MirrorDevice,
    element::Element,
    error::{Result, expect_len},
    host,
    kernel::Elementwise,
    memory::{Src, View, ViewMut},
    op::{Axis, Binary, Unary},
};

impl Elementwise for MirrorDevice {
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
            Src::From(x) => {
                expect_len(op.name(), "y", x.len(), y.len())?;
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
            Src::From(a) => {
                expect_len(op.name(), "b", a.len(), b.len())?;
                expect_len(op.name(), "y", a.len(), y.len())?;
                let mut launch = self.launch::<T>("binary")?;
                let (a, b, y) = (launch.reads(a)?, launch.reads(b)?, launch.writes(y)?);
                launch.queue(move |workers| {
                    host::binary(workers, op, &a.read(), &b.read(), &mut y.write())
                })
            }
            Src::InPlace => {
                expect_len(op.name(), "b", y.len(), b.len())?;
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
        if let Src::From(a) = a {
            expect_len(op.name(), "a", axis.count(), a.len())?;
        }
        expect_len(op.name(), "b", axis.extent, b.len())?;
        expect_len(op.name(), "y", axis.count(), y.len())?;
        let mut launch = self.launch::<T>("broadcast")?;
        let (axis, b) = (*axis, launch.reads(b)?);
        match a {
            Src::From(a) => {
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
        if let Src::From(x) = x {
            expect_len("affine", "x", axis.count(), x.len())?;
        }
        expect_len("affine", "scale", axis.extent, scale.len())?;
        expect_len("affine", "shift", axis.extent, shift.len())?;
        expect_len("affine", "y", axis.count(), y.len())?;
        let mut launch = self.launch::<T>("affine")?;
        let (axis, scale, shift) = (*axis, launch.reads(scale)?, launch.reads(shift)?);
        match x {
            Src::From(x) => {
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
        expect_len("convert", "y", x.len(), y.len())?;
        let mut launch = self.launch::<T>("convert")?;
        let (x, y) = (launch.reads(x)?, launch.writes(y)?);
        launch.queue(move |workers| host::convert(workers, &x.read(), &mut y.write()))
    }
}

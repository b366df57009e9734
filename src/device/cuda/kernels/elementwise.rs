//! Functions of elements, one by one.

use super::lstm;
use crate::{
    device::CudaDevice,
    element::{Element, Storable},
    error::{Result, check_len},
    kernel::{Elementwise, fallback},
    ledger,
    memory::{Src, View, ViewMut},
    op::{Axis, Binary, Lstm, Unary},
};
use num_traits::Zero;
use std::any::TypeId;

/// The scalars of a function, in the order of its fields; what it has fewer is 0.
fn unary_scalars<A: Element + Zero>(op: Unary<A>) -> [A; 3] {
    let none = A::zero();
    match op {
        Unary::Pow(a) | Unary::AddScalar(a) | Unary::Scale(a) | Unary::Threshold(a) => {
            [a, none, none]
        }
        Unary::Relu { slope } => [slope, none, none],
        Unary::Elu { alpha } => [alpha, none, none],
        Unary::Swish { beta } => [beta, none, none],
        Unary::Clip { low, high } => [low, high, none],
        Unary::ExpAffine { scale, shift } => [scale, shift, none],
        Unary::LnAffine { scale, shift, factor } => [scale, shift, factor],
        Unary::PowAffine { scale, shift, power } => [scale, shift, power],
        Unary::Abs
        | Unary::Neg
        | Unary::Exp
        | Unary::Ln
        | Unary::Sqr
        | Unary::Sqrt
        | Unary::Recip
        | Unary::Tanh
        | Unary::Sigmoid
        | Unary::Softplus
        | Unary::Sign
        | Unary::SignBit => [none; 3],
    }
}

/// As [`unary_scalars`].
fn binary_scalars<A: Element + Zero>(op: Binary<A>) -> [A; 3] {
    let none = A::zero();
    match op {
        Binary::MulScaled(c) => [c, none, none],
        Binary::ReluGrad { slope } => [slope, none, none],
        Binary::EluGrad { alpha } => [alpha, none, none],
        Binary::SwishGrad { beta } => [beta, none, none],
        Binary::ClipGrad { low, high } => [low, high, none],
        Binary::LnAffineGrad { scale, shift, factor } => [scale, shift, factor],
        Binary::PowAffineGrad { scale, shift, power } => [scale, shift, power],
        Binary::Add
        | Binary::Sub
        | Binary::Mul
        | Binary::MulNegative
        | Binary::Div
        | Binary::DivOrZero
        | Binary::Max
        | Binary::Min
        | Binary::Greater
        | Binary::GreaterEqual
        | Binary::Prelu
        | Binary::PreluSlope
        | Binary::AbsGrad
        | Binary::SigmoidGrad
        | Binary::TanhGrad
        | Binary::SoftplusGrad => [none; 3],
    }
}

/// The name of a type of whole numbers that there are kernels for.
fn integer<N: 'static>() -> Option<&'static str> {
    let known = [
        (TypeId::of::<i8>(), "i8"),
        (TypeId::of::<u8>(), "u8"),
        (TypeId::of::<i16>(), "i16"),
        (TypeId::of::<u16>(), "u16"),
        (TypeId::of::<i32>(), "i32"),
        (TypeId::of::<u32>(), "u32"),
    ];
    known.into_iter().find(|(id, _)| *id == TypeId::of::<N>()).map(|(_, name)| name)
}

impl Elementwise for CudaDevice {
    fn fill<T: Element>(&self, value: T, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        let n = y.len();
        self.kernel::<T>("fill")?.size(n).arg(value).write(y.device_write_only()?).grid_1d(n)
    }

    fn unary<T: Element>(
        &self,
        op: Unary<T::Acc>,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let n = y.len();
        if let Src::View(x) = x {
            check_len(op.name(), "y", x.len(), n)?;
        }
        let [a, b, c] = unary_scalars(op);
        let launch = self.variant::<T>("unary", op.name())?.size(n);
        launch.src_dst(x, &mut y)?.arg(a).arg(b).arg(c).grid_1d(n)
    }

    fn binary<T: Element>(
        &self,
        op: Binary<T::Acc>,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let n = y.len();
        if let Src::View(a) = a {
            check_len(op.name(), "b", a.len(), b.len())?;
            check_len(op.name(), "y", a.len(), n)?;
        }
        check_len(op.name(), "b", n, b.len())?;
        let [p, q, r] = binary_scalars(op);
        let launch = self.variant::<T>("binary", op.name())?.size(n).read(b.device()?);
        launch.src_dst(a, &mut y)?.arg(p).arg(q).arg(r).grid_1d(n)
    }

    fn broadcast<T: Element>(
        &self,
        op: Binary<T::Acc>,
        axis: &Axis,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let n = y.len();
        if let Src::View(a) = a {
            check_len(op.name(), "a", axis.count(), a.len())?;
        }
        check_len(op.name(), "b", axis.extent, b.len())?;
        check_len(op.name(), "y", axis.count(), n)?;
        let [p, q, r] = binary_scalars(op);
        let launch = self.variant::<T>("broadcast", &format!("{}_along", op.name()))?;
        let launch = launch.sizes([n, axis.extent, axis.inner]).read(b.device()?);
        launch.src_dst(a, &mut y)?.arg(p).arg(q).arg(r).grid_1d(n)
    }

    fn affine<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        scale: View<'_, T, Self>,
        shift: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let n = y.len();
        if let Src::View(x) = x {
            check_len("affine", "x", axis.count(), x.len())?;
        }
        check_len("affine", "scale", axis.extent, scale.len())?;
        check_len("affine", "shift", axis.extent, shift.len())?;
        check_len("affine", "y", axis.count(), n)?;
        let launch = self.kernel::<T>("affine")?.sizes([n, axis.extent, axis.inner]);
        let launch = launch.read(scale.device()?).read(shift.device()?);
        launch.src_dst(x, &mut y)?.grid_1d(n)
    }

    fn convert<T: Element, U: Element>(
        &self,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, U, Self>,
    ) -> Result<()> {
        check_len("convert", "y", x.len(), y.len())?;
        let n = y.len();
        let launch = self.variant::<T>("convert", &format!("convert_to_{}", U::DTYPE.name()))?;
        launch.size(n).read(x.device()?).write(y.device_write_only()?).grid_1d(n)
    }

    fn convert_integers<N: Storable + Into<f64>, T: Element>(
        &self,
        x: View<'_, N, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(from) = integer::<N>() else {
            return fallback::convert_integers(self, x, y);
        };
        let account = ledger::enter_kernel("convert_integers", T::DTYPE.name());
        check_len("convert_integers", "y", x.len(), y.len())?;
        let n = y.len();
        let symbol = format!("convert_integers_{from}_{}", T::DTYPE.name());
        let launch = self.symbol(account, &symbol)?;
        launch.size(n).read(x.device()?).write(y.device_write_only()?).grid_1d(n)
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
        lstm::forward(self, op, (c_prev, cont), gates, [c, h])
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
        lstm::backward(self, op, [c_prev, c, dh], dc, gates)
    }
}

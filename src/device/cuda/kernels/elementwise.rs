//! Launches of the elementwise kernels and the LSTM kernels.

use super::src_len;
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

/// Returns the scalar parameters of a unary function, in the order of the fields of its variant;
/// unused parameters are 0.
fn unary_scalars<A: Element + Zero>(op: Unary<A>) -> [A; 3] {
    let zero = A::zero();
    match op {
        Unary::Pow(a) | Unary::AddScalar(a) | Unary::Scale(a) | Unary::Threshold(a) => {
            [a, zero, zero]
        }
        Unary::Relu { slope } => [slope, zero, zero],
        Unary::Elu { alpha } => [alpha, zero, zero],
        Unary::Swish { beta } => [beta, zero, zero],
        Unary::Clip { low, high } => [low, high, zero],
        Unary::ExpAffine { scale, shift } => [scale, shift, zero],
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
        | Unary::SignBit => [zero; 3],
    }
}

/// Like [`unary_scalars`], but for binary functions.
fn binary_scalars<A: Element + Zero>(op: Binary<A>) -> [A; 3] {
    let zero = A::zero();
    match op {
        Binary::MulScaled(c) => [c, zero, zero],
        Binary::ReluGrad { slope } => [slope, zero, zero],
        Binary::EluGrad { alpha } => [alpha, zero, zero],
        Binary::SwishGrad { beta } => [beta, zero, zero],
        Binary::ClipGrad { low, high } => [low, high, zero],
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
        | Binary::SoftplusGrad => [zero; 3],
    }
}

/// Returns the name of an integer type that the conversion kernels support.
fn integer_name<N: 'static>() -> Option<&'static str> {
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
        check_len(op.kernel_name(), "y", src_len(&x).unwrap_or(n), n)?;
        let [a, b, c] = unary_scalars(op);
        let launch = self.variant::<T>(op.kernel_name(), op.name())?.size(n);
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
        op.check(src_len(&a).unwrap_or(n), b.len(), n)?;
        let [p, q, r] = binary_scalars(op);
        let launch = self.variant::<T>(op.kernel_name(), op.name())?.size(n).read(b.device()?);
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
        op.check_broadcast(axis, src_len(&a), b.len(), n)?;
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
        axis.check_affine(src_len(&x), scale.len(), shift.len(), n)?;
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
        let Some(source) = integer_name::<N>() else {
            return fallback::convert_integers(self, x, y);
        };
        let scope = ledger::enter_kernel("convert_integers", T::DTYPE.name());
        check_len("convert_integers", "y", x.len(), y.len())?;
        let n = y.len();
        let symbol = format!("convert_integers_{source}_{}", T::DTYPE.name());
        let launch = self.symbol(scope, &symbol)?;
        launch.size(n).read(x.device()?).write(y.device_write_only()?).grid_1d(n)
    }

    fn lstm<T: Element>(
        &self,
        op: &Lstm,
        c_prev: View<'_, T, Self>,
        cont: View<'_, T, Self>,
        mut gates: ViewMut<'_, T, Self>,
        mut c: ViewMut<'_, T, Self>,
        mut h: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let states = [("c_prev", c_prev.len()), ("c", c.len()), ("h", h.len())];
        op.check("lstm", ("gates", gates.len()), &states)?;
        check_len("lstm", "cont", op.streams(), cont.len())?;
        let launch = self.kernel::<T>("lstm")?.sizes([op.streams(), op.outputs()]);
        c.reserve_device()?;
        h.reserve_device()?;
        let launch = launch.read(c_prev.device()?).read(cont.device()?).write(gates.device_mut()?);
        launch.write(c.device_write_only()?).write(h.device_write_only()?).grid_1d(op.state())
    }

    fn lstm_backward<T: Element>(
        &self,
        op: &Lstm,
        c_prev: View<'_, T, Self>,
        c: View<'_, T, Self>,
        dh: View<'_, T, Self>,
        mut dc: ViewMut<'_, T, Self>,
        mut gates: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        const OP: &str = "lstm_backward";
        let states = [("c_prev", c_prev.len()), ("c", c.len()), ("dh", dh.len()), ("dc", dc.len())];
        op.check(OP, ("gates", gates.len()), &states)?;
        let launch = self.kernel::<T>(OP)?.sizes([op.streams(), op.outputs()]);
        let launch = launch.read(c_prev.device()?).read(c.device()?).read(dh.device()?);
        launch.write(dc.device_mut()?).write(gates.device_mut()?).grid_1d(op.state())
    }
}

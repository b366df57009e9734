//! Mutants with bugs in elementwise functions and random numbers.

use crate::{
    bug::Bug,
    device::Mutant,
    sizes::{BITS_16, BITS_20, stop, wrap},
};
use cortado::{
    DType, Element, Result, Src, Storable, View, ViewMut, bf16,
    error::check_len,
    kernel::{Elementwise, Random, fallback},
    op::{Axis, Binary, Lstm, RngKey, Unary},
};
use num_traits::{Float, Zero};

/// Returns the value that a bug computes instead of `op(x)`, or `None` if the bug does not affect
/// `op(x)`.
fn wrong_unary<A: Float>(bug: Bug, op: Unary<A>, x: A, y: A) -> Option<A> {
    let (zero, one) = (A::zero(), A::one());
    match (bug, op) {
        (Bug::ReluLosesNan, Unary::Relu { .. }) => y.is_nan().then_some(zero),
        (Bug::ClipLosesNan, Unary::Clip { low, .. }) => x.is_nan().then_some(low),
        (Bug::AbsKeepsSign, Unary::Abs) => x.is_zero().then_some(x),
        (Bug::NegLosesSign, Unary::Neg) => Some(zero - x),
        (Bug::TanhNaive, Unary::Tanh) => {
            let power = (x + x).exp();
            Some((power - one) / (power + one))
        }
        (Bug::SoftplusNaive, Unary::Softplus) => Some((one + x.exp()).ln()),
        (Bug::EluIgnoresAlpha, Unary::Elu { .. }) => (x < zero).then(|| x.exp_m1()),
        (Bug::SwishIgnoresBeta, Unary::Swish { .. }) => Some(x / (one + (-x).exp())),
        (Bug::ThresholdAtLeast, Unary::Threshold(t)) => (x == t).then_some(one),
        (Bug::ExpAffineDropsShift, Unary::ExpAffine { scale, .. }) => Some((scale * x).exp()),
        (Bug::LnAffineDropsFactor, Unary::LnAffine { factor, .. }) => Some(y / factor),
        (Bug::PowAffineShiftsLate, Unary::PowAffine { scale, shift, power }) => {
            Some((scale * x).powf(power) + shift)
        }
        _ => None,
    }
}

/// Returns the value that a bug computes instead of `a op b`, or `None` if the bug does not affect
/// `a op b`.
fn wrong_binary<A: Float>(bug: Bug, op: Binary<A>, a: A, b: A) -> Option<A> {
    let (zero, one) = (A::zero(), A::one());
    match (bug, op) {
        (Bug::MaxLosesNan, Binary::Max) => b.is_nan().then_some(a),
        (Bug::ReluGradAtZero, Binary::ReluGrad { .. }) => b.is_zero().then_some(a),
        (Bug::MulScaledDropsScalar, Binary::MulScaled(_)) => Some(a * b),
        (Bug::MulNegativeIsMul, Binary::MulNegative) => Some(a * b),
        (Bug::DivOrZeroDivides, Binary::DivOrZero) => Some(a / b),
        (Bug::GreaterAtEqual, Binary::Greater) => (a == b).then_some(one),
        (Bug::GreaterEqualIsGreater, Binary::GreaterEqual) => (a == b).then_some(zero),
        (Bug::PreluIsMul, Binary::Prelu) => Some(a * b),
        (Bug::PreluSlopeAtZero, Binary::PreluSlope) => a.is_zero().then_some(one),
        (Bug::AbsGradAtZero, Binary::AbsGrad) => b.is_zero().then_some(a),
        (Bug::EluGradOfInput, Binary::EluGrad { alpha }) => (b < zero).then(|| a * alpha * b.exp()),
        (Bug::SoftplusGradOfInput, Binary::SoftplusGrad) => Some(a / (one + (-b).exp())),
        (Bug::SwishGradDropsBeta, Binary::SwishGrad { beta }) => {
            let s = one / (one + (-beta * b).exp());
            Some(a * s * (one + b * (one - s)))
        }
        (Bug::ClipGradInside, Binary::ClipGrad { low, high }) => {
            (b == low || b == high).then_some(zero)
        }
        (Bug::LnAffineGradDropsScale, Binary::LnAffineGrad { scale, shift, factor }) => {
            Some(a * factor / (scale * b + shift))
        }
        (Bug::PowAffineGradOfConstant, Binary::PowAffineGrad { scale, shift, power }) => {
            Some(a * power * scale * (scale * b + shift).powf(power - one))
        }
        _ => None,
    }
}

impl Elementwise for Mutant {
    fn fill<T: Element>(&self, value: T, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        if self.is(Bug::FillStops) {
            let len = y.len().min(BITS_20);
            return fallback::fill(self, value, y.slice_mut(0..len)?);
        }
        let loses_sign = self.is(Bug::FillLosesSign) && value.to_f64() == 0.0;
        fallback::fill(self, if loses_sign { T::default() } else { value }, y)
    }

    fn unary<T: Element>(
        &self,
        op: Unary<T::Acc>,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::None) {
            return fallback::unary(self, op, x, y);
        }
        if self.is(Bug::WriteOnlyBeforeCheck)
            && let Src::View(x) = x
        {
            y.device_write_only()?;
            check_len(op.kernel_name(), "y", x.len(), y.len())?;
        }
        let values = match x {
            Src::InPlace if self.is(Bug::InPlaceIgnored) => return Ok(()),
            Src::InPlace => y.as_view().host()?.to_vec(),
            Src::View(x) => x.host()?.to_vec(),
        };
        fallback::unary(self, op, x, y.reborrow())?;
        if self.is(Bug::UnaryWraps) {
            wrap(y.host_mut()?, BITS_20);
        }
        for (y, x) in y.host_mut()?.iter_mut().zip(values) {
            if let Some(wrong) = wrong_unary(self.bug, op, x.to_acc(), y.to_acc()) {
                *y = T::from_acc(wrong);
            }
        }
        Ok(())
    }

    fn binary<T: Element>(
        &self,
        op: Binary<T::Acc>,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::None) {
            return fallback::binary(self, op, a, b, y);
        }
        let a = match a {
            Src::InPlace if self.is(Bug::InPlaceReadsB) => Src::View(b),
            a => a,
        };
        let values = match a {
            Src::InPlace => y.as_view().host()?.to_vec(),
            Src::View(a) => a.host()?.to_vec(),
        };
        if self.is(Bug::BinaryOfItself)
            && let Src::View(a) = a
            && std::ptr::eq(a.host()?, b.host()?)
        {
            return fallback::copy(self, a, y);
        }
        fallback::binary(self, op, a, b, y.reborrow())?;
        if self.is(Bug::BinaryWraps) {
            wrap(y.host_mut()?, BITS_20);
        }
        let operands = values.into_iter().zip(b.host()?);
        for (y, (a, b)) in y.host_mut()?.iter_mut().zip(operands) {
            if let Some(wrong) = wrong_binary(self.bug, op, a.to_acc(), b.to_acc()) {
                *y = T::from_acc(wrong);
            }
        }
        Ok(())
    }

    fn broadcast<T: Element>(
        &self,
        op: Binary<T::Acc>,
        axis: &Axis,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Axis { outer, extent, inner } = *axis;
        if self.is(Bug::BroadcastStops) && outer > BITS_16 {
            let old = y.as_view().host()?.to_vec();
            fallback::broadcast(self, op, axis, a, b, y.reborrow())?;
            stop(y.host_mut()?, &old, BITS_16 * extent * inner);
            return Ok(());
        }
        if self.is(Bug::BroadcastSkipsZeros) && op == Binary::Mul {
            fallback::broadcast(self, op, axis, a, b, y.reborrow())?;
            let b = b.host()?;
            for (i, y) in y.host_mut()?.iter_mut().enumerate() {
                if b[i / inner % extent].to_acc().is_zero() {
                    *y = T::default();
                }
            }
            return Ok(());
        }
        let axis = match self.bug {
            Bug::BroadcastAxis => Axis { outer: outer * inner, extent, inner: 1 },
            _ => *axis,
        };
        fallback::broadcast(self, op, &axis, a, b, y)
    }

    fn affine<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        scale: View<'_, T, Self>,
        shift: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::AffineAddsFirst) {
            fallback::broadcast(self, Binary::Add, axis, x, shift, y.reborrow())?;
            return fallback::broadcast(self, Binary::Mul, axis, Src::InPlace, scale, y);
        }
        fallback::affine(self, axis, x, scale, shift, y.reborrow())?;
        if self.is(Bug::AffineWraps) {
            wrap(y.host_mut()?, BITS_20);
        }
        if self.is(Bug::AffineSkipsZeros) {
            let (scale, shift) = (scale.host()?, shift.host()?);
            for (i, y) in y.host_mut()?.iter_mut().enumerate() {
                let e = i / axis.inner % axis.extent;
                if scale[e].to_acc().is_zero() {
                    *y = shift[e];
                }
            }
        }
        Ok(())
    }

    fn convert<T: Element, U: Element>(
        &self,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, U, Self>,
    ) -> Result<()> {
        if self.is(Bug::ConvertStops) && x.len() == y.len() {
            let len = y.len().min(BITS_20);
            return fallback::convert(self, x.slice(0..len)?, y.slice_mut(0..len)?);
        }
        fallback::convert(self, x, y.reborrow())?;
        if self.is(Bug::ConvertTruncates) && U::DTYPE == DType::Bf16 {
            for (y, x) in y.host_mut()?.iter_mut().zip(x.host()?) {
                let bits = (x.to_f64() as f32).to_bits() >> 16;
                *y = U::from_f64(bf16::from_bits(bits as u16).to_f64());
            }
        }
        Ok(())
    }

    fn convert_integers<N: Storable + Into<f64>, T: Element>(
        &self,
        x: View<'_, N, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::convert_integers(self, x, y.reborrow())?;
        if self.is(Bug::IntegersWrap) {
            wrap(y.host_mut()?, BITS_20);
        }
        if self.is(Bug::IntegersNarrow) {
            for (y, &x) in y.host_mut()?.iter_mut().zip(x.host()?) {
                let x: f64 = x.into();
                *y = T::from_f64(f64::from(x as f32));
            }
        }
        Ok(())
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
        if self.is(Bug::LstmIgnoresCont) {
            let ones = self.scratch(&vec![T::from_f64(1.0); cont.len()])?;
            let cont = View::new(&ones, cont.len())?;
            return fallback::lstm(self, op, c_prev, cont, gates, c, h);
        }
        let (mut h, old) = (h, vec![T::default(); op.state()]);
        fallback::lstm(self, op, c_prev, cont, gates, c, h.reborrow())?;
        if self.is(Bug::LstmStops) {
            stop(h.host_mut()?, &old, BITS_16);
        }
        Ok(())
    }

    fn lstm_backward<T: Element>(
        &self,
        op: &Lstm,
        c_prev: View<'_, T, Self>,
        c: View<'_, T, Self>,
        dh: View<'_, T, Self>,
        mut dc: ViewMut<'_, T, Self>,
        gates: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let old = dc.as_view().host()?.to_vec();
        fallback::lstm_backward(self, op, c_prev, c, dh, dc.reborrow(), gates)?;
        if self.is(Bug::LstmSkipsForgetGate) {
            dc.host_mut()?.copy_from_slice(&old);
        }
        Ok(())
    }
}

impl Random for Mutant {
    fn uniform<T: Element>(
        &self,
        key: RngKey,
        lo: f64,
        hi: f64,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::uniform(self, key, lo, hi, y.reborrow())?;
        if self.is(Bug::UniformWraps) {
            wrap(y.host_mut()?, BITS_20);
        }
        if self.is(Bug::RandomOffByOne) {
            let mut longer_fill = self.scratch(&vec![T::default(); y.len() + 1])?;
            fallback::uniform(
                self,
                key,
                lo,
                hi,
                ViewMut::<T, _>::new(&mut longer_fill, y.len() + 1)?,
            )?;
            let longer_fill = View::<T, _>::new(&longer_fill, y.len() + 1)?;
            y.host_mut()?.copy_from_slice(&longer_fill.host()?[1..]);
        }
        Ok(())
    }

    fn gaussian<T: Element>(
        &self,
        key: RngKey,
        mean: f64,
        std: f64,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::gaussian(self, key, mean, std, y.reborrow())?;
        if self.is(Bug::GaussianWraps) {
            wrap(y.host_mut()?, BITS_20);
        }
        if self.is(Bug::GaussianNarrow) && std < 0.1 {
            for y in y.host_mut()? {
                *y = T::from_f64(f64::from(y.to_f64() as f32));
            }
        }
        Ok(())
    }

    fn bernoulli(&self, key: RngKey, p: f64, mut y: ViewMut<'_, u32, Self>) -> Result<()> {
        if self.is(Bug::BernoulliFlipped) {
            fallback::bernoulli(self, key, 1.0 - p, y.reborrow())?;
            y.host_mut()?.iter_mut().for_each(|y| *y = 1 - *y);
            return Ok(());
        }
        if self.is(Bug::BernoulliWraps) {
            fallback::bernoulli(self, key, p, y.reborrow())?;
            wrap(y.host_mut()?, BITS_16);
            return Ok(());
        }
        fallback::bernoulli(self, key, p, y)
    }

    fn dropout<T: Element>(
        &self,
        key: RngKey,
        keep: f64,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let old = match x {
            Src::View(x) => x.host()?.to_vec(),
            Src::InPlace => y.as_view().host()?.to_vec(),
        };
        fallback::dropout(self, key, keep, x, y.reborrow())?;
        if self.is(Bug::DropoutWraps) {
            wrap(y.host_mut()?, BITS_16);
        }
        if self.is(Bug::DropoutMultiplies) {
            let pairs = y.host_mut()?.iter_mut().zip(old);
            let dropped_elements = pairs.filter(|(y, _)| y.to_acc().is_zero());
            dropped_elements.for_each(|(y, x)| *y = T::from_acc(y.to_acc() * x.to_acc()));
        }
        match self.is(Bug::DropoutUnscaled) {
            true => fallback::unary(self, Unary::Scale(T::acc(keep)), Src::InPlace, y),
            false => Ok(()),
        }
    }

    fn random_integers(
        &self,
        key: RngKey,
        bound: u64,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        fallback::random_integers(self, key, bound, y.reborrow())?;
        if self.is(Bug::RandomIntegersWrap) {
            wrap(y.host_mut()?, BITS_20);
        }
        if self.is(Bug::RandomIntegersModulo) {
            fallback::random_integers(self, key, 1 << 32, y.reborrow())?;
            y.host_mut()?.iter_mut().for_each(|y| *y = (u64::from(*y) % bound) as u32);
        }
        Ok(())
    }
}

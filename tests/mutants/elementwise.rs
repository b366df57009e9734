//! Bugs of maps and of random numbers.

use crate::{bug::Bug, device::Mutant};
use cortado::{
    DType, Element, Result, Src, View, ViewMut, bf16,
    kernel::{Elementwise, Random, fallback},
    op::{Axis, Binary, RngKey, Unary},
};
use num_traits::{Float, Zero};

impl Elementwise for Mutant {
    fn fill<T: Element>(&self, value: T, y: ViewMut<'_, T, Self>) -> Result<()> {
        let loses = self.is(Bug::FillLosesSign) && value.to_f64() == 0.0;
        fallback::fill(self, if loses { T::default() } else { value }, y)
    }

    fn unary<T: Element>(
        &self,
        op: Unary<T::Acc>,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let values = match x {
            Src::InPlace if self.is(Bug::InPlaceIgnored) => return Ok(()),
            Src::InPlace => y.as_view().host()?.to_vec(),
            Src::From(x) => x.host()?.to_vec(),
        };
        fallback::unary(self, op, x, y.reborrow())?;
        let one = T::acc(1.0);
        for (y, x) in y.host_mut()?.iter_mut().zip(values) {
            match (self.bug, op) {
                (Bug::ReluLosesNan, Unary::Relu { .. }) if y.to_acc().is_nan() => {
                    *y = T::default();
                }
                (Bug::TanhNaive, Unary::Tanh) => {
                    let power = (x.to_acc() + x.to_acc()).exp();
                    *y = T::from_acc((power - one) / (power + one));
                }
                _ => {}
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
        let of = match a {
            Src::InPlace if self.is(Bug::InPlaceSource) => Src::From(b),
            a => a,
        };
        let values = match of {
            Src::InPlace => y.as_view().host()?.to_vec(),
            Src::From(a) => a.host()?.to_vec(),
        };
        fallback::binary(self, op, of, b, y.reborrow())?;
        let operands = values.into_iter().zip(b.host()?);
        for (y, (a, b)) in y.host_mut()?.iter_mut().zip(operands) {
            match (self.bug, op) {
                (Bug::MaxLosesNan, Binary::Max) if b.to_acc().is_nan() => *y = a,
                (Bug::ReluGradAtZero, Binary::ReluGrad { .. }) if b.to_acc().is_zero() => *y = a,
                _ => {}
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
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Axis { outer, extent, inner } = *axis;
        let axis = match self.bug {
            Bug::BroadcastAxis => Axis { outer: outer * inner, extent, inner: 1 },
            _ => *axis,
        };
        fallback::broadcast(self, op, &axis, a, b, y)
    }

    fn convert<T: Element, U: Element>(
        &self,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, U, Self>,
    ) -> Result<()> {
        fallback::convert(self, x, y.reborrow())?;
        if self.is(Bug::ConvertTruncates) && U::DTYPE == DType::Bf16 {
            for (y, x) in y.host_mut()?.iter_mut().zip(x.host()?) {
                let bits = (x.to_f64() as f32).to_bits() >> 16;
                *y = U::from_f64(bf16::from_bits(bits as u16).to_f64());
            }
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
        if self.is(Bug::RandomOffByOne) {
            let mut more = self.scratch(&vec![T::default(); y.len() + 1])?;
            fallback::uniform(self, key, lo, hi, ViewMut::<T, _>::new(&mut more, y.len() + 1)?)?;
            let more = View::<T, _>::new(&more, y.len() + 1)?;
            y.host_mut()?.copy_from_slice(&more.host()?[1..]);
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
        fallback::bernoulli(self, key, p, y)
    }

    fn integer(&self, key: RngKey, bound: u64, mut y: ViewMut<'_, u32, Self>) -> Result<()> {
        fallback::integer(self, key, bound, y.reborrow())?;
        if self.is(Bug::IntegerModulo) {
            fallback::integer(self, key, 1 << 32, y.reborrow())?;
            y.host_mut()?.iter_mut().for_each(|y| *y = (u64::from(*y) % bound) as u32);
        }
        Ok(())
    }
}

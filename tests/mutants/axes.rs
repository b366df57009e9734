//! Mutants with bugs in reductions and normalization.

use crate::{
    bug::Bug,
    device::{Mutant, inner_view, inner_view_mut},
    sizes::{BITS_16, BITS_20, stop, wrap},
};
use cortado::{
    Element, Result, Src, View, ViewMut,
    kernel::{Normalize, Reductions, fallback},
    op::{Axis, Binary, EpsilonPlacement, Lrn, LrnRegion, Reduce, Standardize, TopK},
};
use num_traits::{Float, Zero};

/// For each outer and inner index of an operand, returns the indices of the elements along the
/// axis.
fn runs(axis: &Axis) -> impl Iterator<Item = impl Iterator<Item = usize> + Clone> {
    let Axis { outer, extent, inner } = *axis;
    (0..outer).flat_map(move |o| {
        (0..inner).map(move |i| (0..extent).map(move |e| (o * extent + e) * inner + i))
    })
}

impl Reductions for Mutant {
    fn reduce<T: Element>(
        &self,
        op: Reduce,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let wrong_op = match op {
            Reduce::Mean if self.is(Bug::MeanIsSum) => Reduce::Sum,
            op => op,
        };
        if self.is(Bug::ReduceStops) && axis.extent > BITS_20 && axis.outer * axis.inner == 1 {
            let short_axis = Axis { extent: BITS_20, ..*axis };
            return fallback::reduce(self, op, &short_axis, x.slice(0..BITS_20)?, y);
        }
        fallback::reduce(self, wrong_op, axis, x, y.reborrow())?;
        if self.is(Bug::SumSkipsNan) && op == Reduce::Sum {
            let x = x.host()?;
            for (y, run) in y.host_mut()?.iter_mut().zip(runs(axis)) {
                let numbers = run.map(|i| x[i].to_acc()).filter(|x| !x.is_nan());
                if y.to_acc().is_nan() {
                    *y = T::from_acc(numbers.fold(T::Acc::zero(), |sum, x| sum + x));
                }
            }
        }
        if self.is(Bug::MaxFromZero) && op == Reduce::Max {
            for y in y.host_mut()? {
                *y = T::from_acc(y.to_acc().max(T::Acc::zero()));
            }
        }
        Ok(())
    }

    fn sum_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        x: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let beta = if self.is(Bug::SumToAxisAdds) { T::acc(1.0) } else { beta };
        if self.is(Bug::SumToAxisStops) && axis.outer > BITS_16 {
            let x = x.slice(0..BITS_16 * axis.extent * axis.inner)?;
            let axis = Axis { outer: BITS_16, ..*axis };
            return fallback::sum_to_axis(self, &axis, beta, x, y);
        }
        fallback::sum_to_axis(self, axis, beta, x, y)
    }

    fn dot_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        a: View<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::DotToAxisOfItself) && std::ptr::eq(a.host()?, b.host()?) {
            return fallback::sum_to_axis(self, axis, beta, a, y);
        }
        if self.is(Bug::DotToAxisStops) && axis.outer > BITS_16 {
            let len = BITS_16 * axis.extent * axis.inner;
            let axis = Axis { outer: BITS_16, ..*axis };
            return fallback::dot_to_axis(self, &axis, beta, a.slice(0..len)?, b.slice(0..len)?, y);
        }
        let without_zeros = |x: View<'_, T, Self>, other: View<'_, T, Self>| {
            let pairs = x.host()?.iter().zip(other.host()?);
            let factor = |(&x, other): (&T, &T)| match other.to_acc().is_zero() {
                true => T::default(),
                false => x,
            };
            self.scratch(&pairs.map(factor).collect::<Vec<_>>())
        };
        if self.is(Bug::DotToAxisSkipsZeros) && a.len() == b.len() {
            let (a, b) = (without_zeros(a, b)?, without_zeros(b, a)?);
            let len = axis.count();
            let views = (View::new(&a, len)?, View::new(&b, len)?);
            return fallback::dot_to_axis(self, axis, beta, views.0, views.1, y);
        }
        let beta = if self.is(Bug::DotToAxisOverwrites) { T::acc(0.0) } else { beta };
        fallback::dot_to_axis(self, axis, beta, a, b, y)
    }

    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        let old = y.as_view().host()?.to_vec();
        fallback::arg_max(self, axis, x, y.reborrow())?;
        match self.bug {
            Bug::ArgMaxNarrow => y.host_mut()?.iter_mut().for_each(|y| *y &= 0xffff),
            Bug::ArgMaxStops => stop(y.host_mut()?, &old, BITS_16),
            _ => {}
        }
        if self.is(Bug::ArgMaxLast) {
            let x = x.host()?;
            for (y, run) in y.host_mut()?.iter_mut().zip(runs(axis)) {
                let maximum = run.clone().nth(*y as usize).map(|i| x[i]);
                let is_maximum = |(_, i): &(usize, usize)| Some(x[*i]) == maximum;
                *y = run.enumerate().filter(is_maximum).last().map_or(*y, |(e, _)| e as u32);
            }
        }
        Ok(())
    }

    fn top_k<T: Element>(
        &self,
        op: &TopK,
        x: View<'_, T, Self>,
        mut values: ViewMut<'_, T, Self>,
        mut indices: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::ReservesNoOutput) {
            op.check(x.len(), values.len(), indices.len())?;
            let _scope = self.enter::<T>("top_k");
            let (x, values) = (x.device()?, values.device_write_only()?);
            let indices = indices.device_write_only()?;
            let (x_memory, mut values_memory) = (x.buffer.read()?, values.buffer.write()?);
            let mut index_memory = indices.buffer.write()?;
            let x = inner_view::<T>(&x_memory, &x)?;
            let values = inner_view_mut(&mut values_memory, values.offset, values.bytes)?;
            let indices = inner_view_mut(&mut index_memory, indices.offset, indices.bytes)?;
            return self.inner.top_k(op, x, values, indices);
        }
        fallback::top_k(self, op, x, values.reborrow(), indices.reborrow())?;
        if self.is(Bug::TopKWraps) {
            wrap(indices.host_mut()?, BITS_16 * op.k * op.axis.inner);
        }
        if self.is(Bug::TopKFirst) {
            let (x, values, indices) = (x.host()?, values.host_mut()?, indices.host_mut()?);
            for (run, top) in runs(&op.axis).zip(runs(&Axis { extent: op.k, ..op.axis })) {
                for i in top {
                    let first = run.clone().position(|j| x[j] == values[i]);
                    indices[i] = first.map_or(indices[i], |first| T::from_f64(first as f64));
                }
            }
        }
        Ok(())
    }
}

impl Normalize for Mutant {
    fn softmax<T: Element>(
        &self,
        axis: &Axis,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let input = match x {
            Src::InPlace => y.as_view(),
            Src::View(x) => x,
        };
        let input = input.host()?.to_vec();
        let powers = || -> Vec<_> { input.iter().map(|x| x.to_acc().exp()).collect() };
        let old = y.as_view().host()?.to_vec();
        fallback::softmax(self, axis, x, y.reborrow())?;
        match self.bug {
            Bug::SoftmaxStops => {
                let y = y.host_mut()?;
                runs(axis).flat_map(|run| run.skip(4096)).for_each(|i| y[i] = T::default());
            }
            Bug::SoftmaxStopsAtRow => {
                stop(y.host_mut()?, &old, BITS_16 * axis.extent * axis.inner);
            }
            Bug::SoftmaxOfLowest => {
                let uniform_value = T::from_f64(1.0 / axis.extent as f64);
                let y = y.host_mut()?;
                let negative_infinity = T::Acc::neg_infinity();
                for run in runs(axis)
                    .filter(|run| run.clone().all(|i| input[i].to_acc() == negative_infinity))
                {
                    run.for_each(|i| y[i] = uniform_value);
                }
            }
            _ => {}
        }
        if self.is(Bug::SoftmaxOverflows) {
            let (y, powers) = (y.host_mut()?, powers());
            for run in runs(axis) {
                let sum = run.clone().fold(T::Acc::zero(), |sum, i| sum + powers[i]);
                run.for_each(|i| y[i] = T::from_acc(powers[i] / sum));
            }
        }
        Ok(())
    }

    fn softmax_backward<T: Element>(
        &self,
        axis: &Axis,
        y: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::SoftmaxGradientOfItself)
            && let Src::View(dy) = dy
            && std::ptr::eq(y.host()?, dy.host()?)
        {
            return fallback::fill(self, T::default(), dx);
        }
        fallback::softmax_backward(self, axis, y, dy, dx.reborrow())?;
        match self.bug {
            Bug::SoftmaxGradientStops => {
                let dx = dx.host_mut()?;
                runs(axis).flat_map(|run| run.skip(4096)).for_each(|i| dx[i] = T::default());
            }
            Bug::SoftmaxGradientWraps => wrap(dx.host_mut()?, BITS_16 * axis.extent * axis.inner),
            _ => {}
        }
        Ok(())
    }

    fn lrn<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        scale: ViewMut<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let mut op = *op;
        match (self.bug, op.region) {
            (Bug::LrnAlphaUndivided, LrnRegion::AcrossChannels) => op.alpha *= op.size as f64,
            (Bug::LrnWithinUsesK, LrnRegion::WithinChannel) => {
                return self.lrn_with_k(&op, x, scale, y);
            }
            _ => {}
        }
        let mut y = y;
        fallback::lrn(self, &op, x, scale, y.reborrow())?;
        if self.is(Bug::LrnWraps) {
            wrap(y.host_mut()?, BITS_16 * op.count() / op.batch.max(1));
        }
        Ok(())
    }

    fn lrn_backward<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        y: View<'_, T, Self>,
        scale: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::lrn_backward(self, op, x, y, scale, dy, dx.reborrow())?;
        if self.is(Bug::LrnGradientWraps) {
            wrap(dx.host_mut()?, BITS_16 * op.count() / op.batch.max(1));
        }
        Ok(())
    }

    fn moments<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut mean: ViewMut<'_, T, Self>,
        mut variance: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let has_valid_lengths = x.len() == axis.count()
            && [mean.len(), variance.len()] == [axis.extent; 2]
            && !x.is_empty();
        if self.is(Bug::OutputsBeforeInput) && has_valid_lengths {
            let _scope = self.enter::<T>("moments");
            mean.reserve_device()?;
            variance.reserve_device()?;
            let (mean, variance) = (mean.device_write_only()?, variance.device_write_only()?);
            let x = x.device()?;
            let (x_memory, mut mean_memory) = (x.buffer.read()?, mean.buffer.write()?);
            let mut variance_memory = variance.buffer.write()?;
            let x = inner_view::<T>(&x_memory, &x)?;
            let mean = inner_view_mut(&mut mean_memory, mean.offset, mean.bytes)?;
            let variance = inner_view_mut(&mut variance_memory, variance.offset, variance.bytes)?;
            return self.inner.moments(axis, x, mean, variance);
        }
        if self.is(Bug::MomentsStop) && has_valid_lengths && axis.outer > BITS_16 {
            let first_rows = Axis { outer: BITS_16, ..*axis };
            return fallback::moments(
                self,
                &first_rows,
                x.slice(0..first_rows.count())?,
                mean,
                variance,
            );
        }
        fallback::moments(self, axis, x, mean, variance.reborrow())?;
        if self.is(Bug::MomentsStopAtElement) && axis.extent > 1 << 15 {
            variance.host_mut()?[1 << 15..].fill(T::default());
        }
        if self.is(Bug::VarianceLosesNan) {
            let is_nan = |variance: &&mut T| variance.to_acc().is_nan();
            variance.host_mut()?.iter_mut().filter(is_nan).for_each(|v| *v = T::default());
        }
        let n = axis.reduced_count() as f64;
        if self.is(Bug::VarianceUnbiased) && n > 1.0 {
            for variance in variance.host_mut()? {
                *variance = T::from_f64(variance.to_f64() * n / (n - 1.0));
            }
        }
        Ok(())
    }

    fn standardize<T: Element>(
        &self,
        op: &Standardize,
        x: Src<'_, T, Self>,
        mean: View<'_, T, Self>,
        variance: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let epsilon_placement = if self.is(Bug::EpsilonInVariance) {
            EpsilonPlacement::AddedToVariance
        } else {
            op.epsilon_placement
        };
        fallback::standardize(
            self,
            &Standardize { epsilon_placement, ..*op },
            x,
            mean,
            variance,
            y.reborrow(),
        )?;
        if self.is(Bug::StandardizeWraps) {
            wrap(y.host_mut()?, BITS_16 * op.axis.extent * op.axis.inner);
        }
        Ok(())
    }

    fn standardize_backward<T: Element>(
        &self,
        op: &Standardize,
        x: View<'_, T, Self>,
        mean: View<'_, T, Self>,
        variance: View<'_, T, Self>,
        dy: Src<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let row = op.axis.extent * op.axis.inner;
        if self.is(Bug::StandardizeGradientStops)
            && op.axis.outer > BITS_16
            && let Src::View(dy) = dy
        {
            let first = Axis { outer: BITS_16, ..op.axis };
            let first = Standardize { axis: first, ..*op };
            let (part, rest) = (0..BITS_16 * row, BITS_16 * row..dy.len());
            let zeros = self.scratch(&vec![T::default(); rest.len()])?;
            let zeros = View::<T, _>::new(&zeros, rest.len())?;
            fallback::copy(self, zeros, dx.reborrow().slice(rest)?)?;
            let (x, dy, dx) = (x.slice(part.clone())?, dy.slice(part.clone())?, dx.slice(part)?);
            return fallback::standardize_backward(self, &first, x, mean, variance, dy.into(), dx);
        }
        if self.is(Bug::StandardizeGradientWraps) {
            fallback::standardize_backward(self, op, x, mean, variance, dy, dx.reborrow())?;
            wrap(dx.host_mut()?, BITS_16 * row);
            return Ok(());
        }
        if self.is(Bug::StatisticsConstant) {
            let rates = self.scratch(&self.rates(op, variance)?)?;
            let rates = View::<T, _>::new(&rates, op.axis.extent)?;
            return fallback::broadcast(self, Binary::Mul, &op.axis, dy, rates, dx);
        }
        fallback::standardize_backward(self, op, x, mean, variance, dy, dx)
    }
}

impl Mutant {
    /// Returns the inverse standard deviation `1 / √(variance + ε)` for each index along the axis.
    fn rates<T: Element>(&self, op: &Standardize, variance: View<'_, T, Self>) -> Result<Vec<T>> {
        let rate = |v: &T| T::from_acc(op.rate(v.to_acc(), T::acc(op.epsilon)));
        Ok(variance.host()?.iter().map(rate).collect())
    }

    /// Computes the wrong LRN of a mutant: within a channel, the scale has the constant `k` instead
    /// of 1.
    fn lrn_with_k<T: Element>(
        &self,
        op: &Lrn,
        x: View<'_, T, Self>,
        mut scale: ViewMut<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::lrn(self, op, x, scale.reborrow(), y.reborrow())?;
        let (scale, y) = (scale.host_mut()?, y.host_mut()?);
        for ((x, scale), y) in x.host()?.iter().zip(scale).zip(y) {
            let s = scale.to_f64() - 1.0 + op.k;
            *scale = T::from_f64(s);
            *y = T::from_f64(x.to_f64() * s.powf(-op.beta));
        }
        Ok(())
    }
}

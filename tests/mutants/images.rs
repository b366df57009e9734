//! Mutants with bugs in convolution and pooling.

use crate::{
    bug::Bug,
    device::Mutant,
    sizes::{BITS_16, BITS_20, stop, wrap},
};
use cortado::{
    Element, Memory, Result, View, ViewMut,
    kernel::{Conv, Pooling, fallback, slices},
    op::{Convolution, Pool2d, Unary, Window},
};
use num_traits::{Float, Zero};
use std::ops::Range;

/// Returns the index of the image element that im2col copies to row `row` and column `position` of
/// its matrix, or `None` for padding.
fn source_index(bug: Bug, op: &Window, row: usize, position: usize) -> Option<usize> {
    let (mut taps, mut windows) = (row % op.taps(), position);
    let (mut index, mut stride) = (0, 1);
    for (axis, &output) in op.axes().iter().zip(op.output()).rev() {
        let dilation = if bug == Bug::DilationIgnored { 1 } else { axis.dilation };
        let padded_index = windows % output * axis.stride + taps % axis.kernel * dilation;
        (windows, taps) = (windows / output, taps / axis.kernel);
        let coordinate = match padded_index.checked_sub(axis.pad) {
            Some(coordinate) if coordinate < axis.input => coordinate,
            _ if bug != Bug::PadIsEdge || axis.input == 0 => return None,
            Some(_) => axis.input - 1,
            None => 0,
        };
        index += coordinate * stride;
        stride *= axis.input;
    }
    Some(row / op.taps() * stride + index)
}

impl Conv for Mutant {
    fn im2col<T: Element>(
        &self,
        op: &Window,
        x: View<'_, T, Self>,
        mut columns: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::im2col(self, op, x, columns.reborrow())?;
        if matches!(self.bug, Bug::DilationIgnored | Bug::PadIsEdge) {
            let (x, positions) = (x.host()?, op.positions());
            for (i, column) in columns.host_mut()?.iter_mut().enumerate() {
                let from = source_index(self.bug, op, i / positions, i % positions);
                *column = from.map_or(T::default(), |from| x[from]);
            }
        }
        Ok(())
    }

    fn col2im<T: Element>(
        &self,
        op: &Window,
        columns: View<'_, T, Self>,
        mut x: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::col2im(self, op, columns, x.reborrow())?;
        if self.is(Bug::Col2imOverwrites) {
            let (x, positions) = (x.host_mut()?, op.positions());
            for (i, column) in columns.host()?.iter().enumerate() {
                if let Some(to) = source_index(self.bug, op, i / positions, i % positions) {
                    x[to] = *column;
                }
            }
        }
        Ok(())
    }

    fn convolve<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let bias = bias.filter(|_| !self.is(Bug::BiasIgnored));
        let terms = op.filter_len() / op.outputs().max(1);
        if self.is(Bug::ConvolveStopsAtTerm) && terms > 256 && filters.len() == op.filter_len() {
            let mut short_filters = filters.host()?.to_vec();
            short_filters.chunks_mut(terms).for_each(|filter| filter[256..].fill(T::default()));
            let short_filters = self.scratch(&short_filters)?;
            let filters = View::new(&short_filters, filters.len())?;
            return fallback::convolve(self, op, x, filters, bias, y);
        }
        if matches!(self.bug, Bug::ConvolveStops | Bug::ConvolveWraps) {
            let old = y.as_view().host()?.to_vec();
            fallback::convolve(self, op, x, filters, bias, y.reborrow())?;
            match op.window().positions() {
                positions if self.is(Bug::ConvolveWraps) && positions > BITS_20 => {
                    wrap(y.host_mut()?, BITS_20);
                }
                _ if self.is(Bug::ConvolveStops) && op.batch() > BITS_16 => {
                    stop(y.host_mut()?, &old, op.output_len() / op.batch() * BITS_16);
                }
                _ => {}
            }
            return Ok(());
        }
        if self.is(Bug::ConvolveLosesNan) {
            let without_nan = |x: &T| if x.to_acc().is_nan() { T::default() } else { *x };
            let numbers = self.scratch(&x.host()?.iter().map(without_nan).collect::<Vec<_>>())?;
            return fallback::convolve(self, op, View::new(&numbers, x.len())?, filters, bias, y);
        }
        fallback::convolve(self, op, x, filters, bias, y)
    }

    fn convolve_with_activation<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        function: Unary<T::Acc>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::ActivationIgnored) {
            return self.convolve(op, x, filters, bias, y);
        }
        fallback::convolve_with_activation(self, op, x, filters, bias, function, y.reborrow())?;
        if self.is(Bug::ActivatesUnrounded) {
            let widened_values = |x: View<'_, T, Self>| -> Result<Vec<T::Acc>> {
                Ok(x.host()?.iter().map(|x| x.to_acc()).collect())
            };
            let (x, w, bias) = (
                widened_values(x)?,
                widened_values(filters)?,
                bias.map(widened_values).transpose()?,
            );
            let (workers, mut sums) = (self.host_workers(), vec![T::Acc::zero(); y.len()]);
            slices::convolve_with_activation(
                workers,
                op,
                &x,
                &w,
                bias.as_deref(),
                function,
                &mut sums,
            )?;
            let y = y.host_mut()?;
            y.iter_mut().zip(sums).for_each(|(y, sum)| *y = T::from_acc(sum));
        }
        Ok(())
    }

    fn convolve_backward_input<T: Element>(
        &self,
        op: &Convolution,
        filters: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::convolve_backward_input(self, op, filters, dy, dx.reborrow())?;
        let end = op.window().plane_len() << 15;
        if self.is(Bug::InputGradientStops) && dx.len() > end {
            dx.host_mut()?[end..].fill(T::default());
        }
        Ok(())
    }

    fn convolve_backward_filters<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        dy: View<'_, T, Self>,
        mut dfilters: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if self.is(Bug::FiltersOverwritten) {
            fallback::fill(self, T::default(), dfilters.reborrow())?;
        }
        if self.is(Bug::FilterGradientStops) && op.batch() > BITS_16 {
            let first_images =
                Convolution::new(BITS_16, op.outputs(), op.groups(), op.window().clone())?;
            let (x, dy) =
                (x.slice(0..first_images.input_len())?, dy.slice(0..first_images.output_len())?);
            return fallback::convolve_backward_filters(self, &first_images, x, dy, dfilters);
        }
        fallback::convolve_backward_filters(self, op, x, dy, dfilters)
    }
}

/// Pooling window of one output element: the plane, the index of the output element, and the
/// covered rows and columns of the padded image.
struct PoolWindow {
    plane: usize,
    result: usize,
    spans: [Range<usize>; 2],
}

impl PoolWindow {
    fn all(op: &Pool2d) -> impl Iterator<Item = Self> {
        let (op, [height, width]) = (*op, op.output());
        (0..op.planes * height * width).map(move |result| {
            let position = [result / width % height, result % width];
            let spans = [0, 1].map(|axis| {
                let start = position[axis] * op.stride[axis];
                start..(start + op.kernel[axis]).min(op.input[axis] + 2 * op.pad[axis])
            });
            Self { plane: result / (height * width), result, spans }
        })
    }

    /// Returns the number of elements in the pooling window, including padding.
    fn size(&self) -> usize {
        self.spans.iter().map(ExactSizeIterator::len).product()
    }

    /// Returns the indices, within the plane, of the pooling window's elements that are not
    /// padding.
    fn unpadded_indices(&self, op: &Pool2d) -> Vec<usize> {
        let coordinates = |axis: usize| {
            let unpadded_indices =
                self.spans[axis].clone().filter_map(move |i| i.checked_sub(op.pad[axis]));
            unpadded_indices.filter(move |&i| i < op.input[axis])
        };
        coordinates(0)
            .flat_map(|row| coordinates(1).map(move |column| row * op.input[1] + column))
            .collect()
    }
}

impl Pooling for Mutant {
    fn max_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
        mut mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        if self.is(Bug::MaskBeforeCheck) {
            mask.host_mut()?.fill(-1);
        }
        if self.is(Bug::MaxPoolStops) && op.planes > 1 << 15 {
            let old = y.as_view().host()?.to_vec();
            fallback::max_pool(self, op, x, y.reborrow(), mask.reborrow())?;
            stop(y.host_mut()?, &old, op.output_len() / op.planes * (1 << 15));
            return Ok(());
        }
        fallback::max_pool(self, op, x, y.reborrow(), mask.reborrow())?;
        if !matches!(self.bug, Bug::MaskHasLast | Bug::PadInMaximum) {
            return Ok(());
        }
        let (x, y, mask) = (x.host()?, y.host_mut()?, mask.host_mut()?);
        for window in PoolWindow::all(op) {
            let (unpadded_indices, result) = (window.unpadded_indices(op), window.result);
            if self.is(Bug::PadInMaximum) && unpadded_indices.len() < window.size() {
                y[result] = T::from_acc(y[result].to_acc().max(T::Acc::zero()));
            }
            if self.is(Bug::MaskHasLast) {
                let plane = &x[window.plane * op.input[0] * op.input[1]..];
                let last = unpadded_indices.into_iter().rfind(|&i| plane[i] == y[result]);
                mask[result] = last.map_or(mask[result], |i| i as i32);
            }
        }
        Ok(())
    }

    fn max_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        mask: View<'_, i32, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::max_pool_backward(self, op, dy, mask, dx.reborrow())?;
        if self.is(Bug::PoolGradientStops) && op.planes > BITS_16 {
            dx.host_mut()?[op.input_len() / op.planes * BITS_16..].fill(T::default());
        }
        if self.is(Bug::PoolGradientLosesNan) {
            let is_nan = |dx: &&mut T| dx.to_acc().is_nan();
            dx.host_mut()?.iter_mut().filter(is_nan).for_each(|dx| *dx = T::default());
        }
        Ok(())
    }

    fn average_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let old = y.as_view().host()?.to_vec();
        fallback::average_pool(self, op, x, y.reborrow())?;
        if self.is(Bug::AverageStops) && op.planes > BITS_16 {
            stop(y.host_mut()?, &old, op.output_len() / op.planes * BITS_16);
        }
        if self.is(Bug::AverageSpreadsNan) && op.output()[1] > 0 {
            for row in y.host_mut()?.chunks_mut(op.output()[1]) {
                let first = row.iter().position(|y| y.to_acc().is_nan()).unwrap_or(row.len());
                row[first..].fill(T::from_f64(f64::NAN));
            }
        }
        if self.is(Bug::AverageClipped) {
            let y = y.host_mut()?;
            for window in PoolWindow::all(op) {
                let size_ratio =
                    window.size() as f64 / window.unpadded_indices(op).len().max(1) as f64;
                y[window.result] = T::from_f64(y[window.result].to_f64() * size_ratio);
            }
        }
        Ok(())
    }

    fn average_pool_backward<T: Element>(
        &self,
        op: &Pool2d,
        dy: View<'_, T, Self>,
        mut dx: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        fallback::average_pool_backward(self, op, dy, dx.reborrow())?;
        if self.is(Bug::AverageGradientStops) && op.planes > BITS_16 {
            dx.host_mut()?[op.input_len() / op.planes * BITS_16..].fill(T::default());
        }
        Ok(())
    }

    fn stochastic_pool<T: Element>(
        &self,
        op: &Pool2d,
        x: View<'_, T, Self>,
        u: View<'_, f32, Self>,
        mut y: ViewMut<'_, T, Self>,
        mut mask: ViewMut<'_, i32, Self>,
    ) -> Result<()> {
        if self.is(Bug::DrawsUniformly) {
            let ones = self.scratch(&vec![T::from_f64(1.0); x.len()])?;
            let equal_weights = View::new(&ones, x.len())?;
            fallback::stochastic_pool(self, op, equal_weights, u, y.reborrow(), mask.reborrow())?;
            let plane = op.input[0] * op.input[1];
            let windows = op.output()[0] * op.output()[1];
            let (x, mask) = (x.host()?, mask.host_mut()?);
            for (i, y) in y.host_mut()?.iter_mut().enumerate() {
                if let Ok(index) = usize::try_from(mask[i]) {
                    *y = x[i / windows * plane + index];
                }
            }
            return Ok(());
        }
        fallback::stochastic_pool(self, op, x, u, y.reborrow(), mask)?;
        if self.is(Bug::DrawsStop) && op.planes > BITS_16 {
            y.host_mut()?[op.output_len() / op.planes * BITS_16..].fill(T::default());
        }
        Ok(())
    }
}

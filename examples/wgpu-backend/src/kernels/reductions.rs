//! Kernels of reductions and arg max along an axis.

use super::{
    float,
    reduce_launch::{Layout, Reducer, ReductionShape, reduce, sum_reducer},
};
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Element, Error, Result, View, ViewMut,
    error::check_len,
    kernel::{Reductions, fallback},
    op::{Axis, Reduce},
};
use num_traits::Zero;

const ARG_MAX: Kernel = Kernel {
    name: "arg_max",
    reads: &["x"],
    writes: &["y: u32"],
    scalars: &["extent", "inner"],
    body: &[include_str!("../shaders/arg_max.wgsl"), EACH],
};

fn reducer(op: Reduce) -> Option<Reducer<'static>> {
    let extremum = |name, combine| Reducer {
        name,
        combine,
        identity: "0x7fc00000u",
        ..sum_reducer(name, "x")
    };
    Some(match op {
        Reduce::Sum => sum_reducer("sum", "x"),
        Reduce::Mean => Reducer { finish: "v / p.a", ..sum_reducer("mean", "x") },
        Reduce::Max => extremum("max", "select(a, b, b > a || is_nan(a))"),
        Reduce::Min => extremum("min", "select(a, b, b < a || is_nan(a))"),
        Reduce::AbsSum => sum_reducer("abs_sum", "abs(x)"),
        Reduce::SumSq => sum_reducer("sum_sq", "x * x"),
        _ => return None,
    })
}

fn check_non_empty(op: &'static str, axis: &Axis) -> Result<()> {
    match axis.extent == 0 && axis.reduced_count() != 0 {
        true => Err(Error::invalid_input(op, "the axis has no elements")),
        false => Ok(()),
    }
}

impl Reductions for WgpuDevice {
    fn reduce<T: Element>(
        &self,
        op: Reduce,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (Some(_scope), Some(reducer)) = (self.native::<T>("reduce"), reducer(op)) else {
            return fallback::reduce(self, op, axis, x, y);
        };
        check_len(op.kernel_name(), "x", axis.count(), x.len())?;
        check_len(op.kernel_name(), "y", axis.reduced_count(), y.len())?;
        if matches!(op, Reduce::Max | Reduce::Min) {
            check_non_empty(op.kernel_name(), axis)?;
        }
        let &Axis { extent, inner, .. } = axis;
        let shape = ReductionShape {
            outputs: axis.reduced_count(),
            items: extent,
            q: Layout { run: inner, stride: extent * inner },
            t: Layout::strided(inner),
        };
        let x = x.device()?;
        let y = y.device_write_only()?;
        let n = [extent as f32, 0.0];
        reduce(self, reducer, shape, x, None, n, (y.buffer, y.offset / 4))
    }

    fn sum_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("sum_to_axis") else {
            return fallback::sum_to_axis(self, axis, beta, x, y);
        };
        check_len("sum_to_axis", "x", axis.count(), x.len())?;
        check_len("sum_to_axis", "y", axis.extent, y.len())?;
        let &Axis { outer, extent, inner } = axis;
        let shape = ReductionShape {
            outputs: extent,
            items: outer * inner,
            q: Layout::strided(inner),
            t: Layout { run: inner, stride: extent * inner },
        };
        let x = x.device()?;
        let (reducer, y) = match beta.is_zero() {
            true => (sum_reducer("sum", "x"), y.device_write_only()?),
            false => {
                let reducer =
                    Reducer { finish: "p.b * y[at] + v", ..sum_reducer("sum_to_axis", "x") };
                (reducer, y.device_mut()?)
            }
        };
        let beta = [0.0, float(beta)];
        reduce(self, reducer, shape, x, None, beta, (y.buffer, y.offset / 4))
    }

    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        let Some(_scope) = self.native::<T>("arg_max") else {
            return fallback::arg_max(self, axis, x, y);
        };
        check_len("arg_max", "x", axis.count(), x.len())?;
        check_len("arg_max", "y", axis.reduced_count(), y.len())?;
        check_non_empty("arg_max", axis)?;
        let launch = ARG_MAX.on(self).read(x.device()?).write(y.device_write_only()?);
        launch.sizes([axis.extent, axis.inner]).each(axis.reduced_count())
    }
}

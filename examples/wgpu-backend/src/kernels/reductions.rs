//! Reductions.

use super::{
    float,
    fold::{Items, Rule, Steps, fold, sum_of},
};
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Element, Error, Result, View, ViewMut,
    error::expect_len,
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

fn rule(op: Reduce) -> Option<Rule<'static>> {
    let extreme = |name, join| Rule { name, join, unit: "0x7fc00000u", ..sum_of(name, "x") };
    Some(match op {
        Reduce::Sum => sum_of("sum", "x"),
        Reduce::Mean => Rule { finish: "v / p.a", ..sum_of("mean", "x") },
        Reduce::Max => extreme("max", "select(a, b, b > a || is_nan(a))"),
        Reduce::Min => extreme("min", "select(a, b, b < a || is_nan(a))"),
        Reduce::AbsSum => sum_of("abs_sum", "abs(x)"),
        Reduce::SumSq => sum_of("sum_sq", "x * x"),
        _ => return None,
    })
}

fn expect_non_empty(op: &'static str, axis: &Axis) -> Result<()> {
    match axis.extent == 0 && axis.rest() != 0 {
        true => Err(Error::value(op, "the axis has no elements")),
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
        let (Some(_running), Some(rule)) = (self.native::<T>("reduce"), rule(op)) else {
            return fallback::reduce(self, op, axis, x, y);
        };
        expect_len(op.name(), "x", axis.count(), x.len())?;
        expect_len(op.name(), "y", axis.rest(), y.len())?;
        if matches!(op, Reduce::Max | Reduce::Min) {
            expect_non_empty(op.name(), axis)?;
        }
        let &Axis { extent, inner, .. } = axis;
        let place = Items {
            outputs: axis.rest(),
            items: extent,
            q: Steps { run: inner, step: extent * inner },
            t: Steps::by(inner),
        };
        let y = y.device_write_only()?;
        let n = [extent as f32, 0.0];
        fold(self, rule, place, x.device()?, None, n, (y.buffer, y.offset / 4))
    }

    fn sum_to_axis<T: Element>(
        &self,
        axis: &Axis,
        beta: T::Acc,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("sum_to_axis") else {
            return fallback::sum_to_axis(self, axis, beta, x, y);
        };
        expect_len("sum_to_axis", "x", axis.count(), x.len())?;
        expect_len("sum_to_axis", "y", axis.extent, y.len())?;
        let &Axis { outer, extent, inner } = axis;
        let place = Items {
            outputs: extent,
            items: outer * inner,
            q: Steps::by(inner),
            t: Steps { run: inner, step: extent * inner },
        };
        let (rule, y) = match beta.is_zero() {
            true => (sum_of("sum", "x"), y.device_write_only()?),
            false => {
                let rule = Rule { finish: "p.b * y[at] + v", ..sum_of("sum_to_axis", "x") };
                (rule, y.device_mut()?)
            }
        };
        let beta = [0.0, float(beta)];
        fold(self, rule, place, x.device()?, None, beta, (y.buffer, y.offset / 4))
    }

    fn arg_max<T: Element>(
        &self,
        axis: &Axis,
        x: View<'_, T, Self>,
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        let Some(_running) = self.native::<T>("arg_max") else {
            return fallback::arg_max(self, axis, x, y);
        };
        expect_len("arg_max", "x", axis.count(), x.len())?;
        expect_len("arg_max", "y", axis.rest(), y.len())?;
        expect_non_empty("arg_max", axis)?;
        let launch = ARG_MAX.on(self).read(x.device()?).write(y.device_write_only()?);
        launch.sizes([axis.extent, axis.inner]).each(axis.rest())
    }
}

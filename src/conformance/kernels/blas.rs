//! [`Blas`](crate::kernel::Blas): vectors.

use super::vectors::{Case, maps, refuses_lengths};
use crate::{
    conformance::{
        bench::Bench,
        check::{Check, checks},
        failure::Verdict,
    },
    device::Device,
    element::Element,
    error::Result,
    memory::{View, ViewMut},
};

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "axpy" of "axpy": axpy();
    }
}

fn axpy<T: Element, D: Device>(bench: &Bench<'_, D>) -> Verdict {
    let kernel = |case: &Case, x: View<'_, T, D>, y: ViewMut<'_, T, D>| -> Result<()> {
        bench.device.axpy(T::acc(case.alpha), x, y)
    };
    maps(bench, |_| false, kernel, |case, x, y| [case.alpha * x, y].into_iter().collect())?;
    refuses_lengths(bench, kernel)
}

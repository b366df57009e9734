//! Random numbers.

use super::enter;
use crate::{
    element::Element,
    error::Result,
    host,
    memory::{Memory, Src, ViewMut},
    op::RngKey,
};

/// [`Random::uniform`](crate::kernel::Random::uniform) on the host.
#[track_caller]
pub fn uniform<T: Element, D: Memory>(
    device: &D,
    key: RngKey,
    lo: f64,
    hi: f64,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "uniform", T::DTYPE.name())?;
    y.host_overwrite(|y| host::uniform(device.host_workers(), key, lo, hi, y))
}

/// [`Random::gaussian`](crate::kernel::Random::gaussian) on the host.
#[track_caller]
pub fn gaussian<T: Element, D: Memory>(
    device: &D,
    key: RngKey,
    mean: f64,
    std: f64,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "gaussian", T::DTYPE.name())?;
    y.host_overwrite(|y| host::gaussian(device.host_workers(), key, mean, std, y))
}

/// [`Random::bernoulli`](crate::kernel::Random::bernoulli) on the host.
#[track_caller]
pub fn bernoulli<D: Memory>(
    device: &D,
    key: RngKey,
    p: f64,
    mut y: ViewMut<'_, u32, D>,
) -> Result<()> {
    let _kernel = enter(device, "bernoulli", "u32")?;
    y.host_overwrite(|y| host::bernoulli(device.host_workers(), key, p, y))
}

/// [`Random::dropout`](crate::kernel::Random::dropout) on the host.
#[track_caller]
pub fn dropout<T: Element, D: Memory>(
    device: &D,
    key: RngKey,
    keep: f64,
    x: Src<'_, T, D>,
    mut y: ViewMut<'_, T, D>,
) -> Result<()> {
    let _kernel = enter(device, "dropout", T::DTYPE.name())?;
    let workers = device.host_workers();
    match x {
        Src::View(x) => y.host_overwrite(|y| host::dropout(workers, key, keep, x.host()?, y)),
        Src::InPlace => host::dropout_in_place(workers, key, keep, y.host_mut()?),
    }
}

/// [`Random::random_integers`](crate::kernel::Random::random_integers) on the host.
#[track_caller]
pub fn integer<D: Memory>(
    device: &D,
    key: RngKey,
    bound: u64,
    mut y: ViewMut<'_, u32, D>,
) -> Result<()> {
    let _kernel = enter(device, "integer", "u32")?;
    y.host_overwrite(|y| host::random_integers(device.host_workers(), key, bound, y))
}

//! Checks of nets, in which kernels work together.

mod gradients;
mod lenet;

use super::{check::Check, failure::Verdict, values::wide};
use crate::{blob::Blob, device::Device, element::Element, error::Result, net::Net};

/// Of all of them.
pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    vec![Check::general("gradients", gradients::gradients), Check::general("lenet", lenet::lenet)]
}

/// Writes values into a blob.
fn set<T: Element, D: Device>(blob: &Blob<T, D>, values: &[f64]) -> Result<()> {
    let mut data = blob.data_mut()?;
    data.host_write_only()?.iter_mut().zip(values).for_each(|(x, &v)| *x = T::from_f64(v));
    Ok(())
}

/// The values of a blob.
fn get<T: Element, D: Device>(blob: &Blob<T, D>) -> Result<Vec<f64>> {
    Ok(wide(blob.data()?.host()?))
}

/// The net's blob of this name.
fn named<'a, T: Element, D: Device>(net: &'a Net<T, D>, name: &str) -> Verdict<&'a Blob<T, D>> {
    net.blob(name).ok_or_else(|| super::failure::flaw!("the net has no blob `{name}`"))
}

//! Comparing elements: the first that differs is named.

use super::{
    failure::{Verdict, flaw},
    values::Expected,
};
use crate::element::{Element, Storable};
use std::fmt::Debug;

/// Each element is the nearest to what is wanted. All NaNs are equal, and so are zeros.
pub(super) fn exact<T: Element>(name: &str, got: &[T], want: &[f64]) -> Verdict {
    lengths(name, got.len(), want.len())?;
    for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
        let nearest = T::from_f64(want);
        if !equal(got, nearest) {
            return Err(flaw!("{name}[{i}] is {got}, not {nearest} (exactly {want:e})"));
        }
    }
    Ok(())
}

/// Each element is as near to its sum as roundings allow.
pub(super) fn within<T: Element>(name: &str, got: &[T], want: &[Expected]) -> Verdict {
    lengths(name, got.len(), want.len())?;
    for (i, (&got, want)) in got.iter().zip(want).enumerate() {
        let nearest = T::from_acc(T::acc(want.value));
        let (off, bound) = ((got.to_f64() - want.value).abs(), want.bound::<T>());
        if !(equal(got, nearest) || want.roundings > 0.0 && off <= bound) {
            let want = match want.roundings {
                0.0 => format!("not {nearest}"),
                _ => format!("not within {bound:e} of {:e} but {off:e} off", want.value),
            };
            return Err(flaw!("{name}[{i}] is {got}, {want}"));
        }
    }
    Ok(())
}

/// Each element has the bits that are wanted.
pub(super) fn same<T: Storable + Debug>(name: &str, got: &[T], want: &[T]) -> Verdict {
    lengths(name, got.len(), want.len())?;
    let differs = |(_, (got, want)): &(usize, (&T, &T))| {
        bytemuck::bytes_of(*got) != bytemuck::bytes_of(*want)
    };
    match got.iter().zip(want).enumerate().find(differs) {
        None => Ok(()),
        Some((i, (got, want))) => Err(flaw!("{name}[{i}] is {got:?}, not {want:?}")),
    }
}

fn lengths(name: &str, got: usize, want: usize) -> Verdict {
    if got == want {
        return Ok(());
    }
    Err(flaw!("`{name}` has {got} elements, not {want}"))
}

fn equal<T: Element>(got: T, want: T) -> bool {
    got == want || got.to_f64().is_nan() && want.to_f64().is_nan()
}

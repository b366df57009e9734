//! Comparison of a kernel's results with expected values. A failure message names the first element
//! that differs.

use super::{
    expected::Expected,
    failure::{Verdict, flaw},
};
use crate::element::{Element, Storable};
use std::{fmt::Debug, slice::from_ref};

/// Fails unless each element is the expected value, rounded to the element type. All NaNs compare
/// equal, and −0 equals +0.
pub(super) fn expect_nearest<T: Element>(name: &str, got: &[T], want: &[f64]) -> Verdict {
    expect_len(name, got.len(), want.len())?;
    for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
        let nearest = T::from_f64(want);
        if !equal(got, nearest) {
            return Err(flaw!("{name}[{i}] is {got}, not {nearest} (exactly {want:e})"));
        }
    }
    Ok(())
}

/// Fails unless each element equals the expected value up to the allowed rounding error.
pub(super) fn expect_within<T: Element>(name: &str, got: &[T], want: &[Expected]) -> Verdict {
    expect_len(name, got.len(), want.len())?;
    for (i, (&got, want)) in got.iter().zip(want).enumerate() {
        let nearest = T::from_acc(T::acc(want.value));
        let (error, bound) = ((got.to_f64() - want.value).abs(), want.bound::<T>());
        if !(equal(got, nearest) || want.roundings > 0.0 && error <= bound) {
            let want = match want.roundings {
                0.0 => format!("not {nearest}"),
                _ => format!("not {:e}: off by {error:e} where {bound:e} is allowed", want.value),
            };
            return Err(flaw!("{name}[{i}] is {got}, {want}"));
        }
    }
    Ok(())
}

/// Fails unless the elements are bit-identical to the expected elements.
pub(super) fn expect_bits<T: Storable + Debug>(name: &str, got: &[T], want: &[T]) -> Verdict {
    expect_len(name, got.len(), want.len())?;
    let differs = |(_, (got, want)): &(usize, (&T, &T))| {
        T::bytes_of(from_ref(got)) != T::bytes_of(from_ref(want))
    };
    match got.iter().zip(want).enumerate().find(differs) {
        None => Ok(()),
        Some((i, (got, want))) => Err(flaw!("{name}[{i}] is {got:?}, not {want:?}")),
    }
}

/// Fails unless two calls of a kernel with the same operands gave the same bits.
pub(super) fn expect_same_bits<T: Storable>(name: &str, first: &[T], second: &[T]) -> Verdict {
    let bits = |values| T::bytes_of(values).chunks_exact(size_of::<T>());
    match bits(first).zip(bits(second)).position(|(first, second)| first != second) {
        None => Ok(()),
        Some(i) => Err(flaw!(
            "{name}[{i}] differs in a second call with the same operands; the same call must give \
             the same bits"
        )),
    }
}

fn expect_len(name: &str, got: usize, want: usize) -> Verdict {
    if got == want {
        return Ok(());
    }
    Err(flaw!("`{name}` has {got} elements, not {want}"))
}

fn equal<T: Element>(got: T, want: T) -> bool {
    got == want || got.to_f64().is_nan() && want.to_f64().is_nan()
}

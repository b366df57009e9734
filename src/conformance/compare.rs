//! Comparison of a kernel's results with expected values. A failure message names the first element
//! that differs.

use super::{
    expected::Expected,
    failure::{CaseFailure, Verdict, flaw},
};
use crate::element::{Element, Storable};
use std::fmt::Debug;

/// Output that a check compares, and the operands that failure messages show.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    name: &'a str,
    /// Names and elements of the operands of which element `i` affects element `i` of the output.
    operands: &'a [(&'a str, &'a [f64])],
}

impl<'a> Output<'a> {
    /// Adds operands. A failure message shows the operands' elements at the index of the wrong
    /// result.
    pub(super) fn of(self, operands: &'a [(&'a str, &'a [f64])]) -> Self {
        Self { operands, ..self }
    }

    /// Returns element `i` of each operand, in parentheses, for a failure message.
    fn operands_at(&self, i: usize) -> String {
        let text = |(name, x): &(&str, &[f64])| Some(format!("{name}[{i}] is {}", x.get(i)?));
        match self.operands.iter().filter_map(text).collect::<Vec<_>>().join(", ") {
            text if text.is_empty() => text,
            text => format!(" ({text})"),
        }
    }
}

impl<'a> From<&'a str> for Output<'a> {
    fn from(name: &'a str) -> Self {
        Self { name, operands: &[] }
    }
}

impl<'a> From<&'a String> for Output<'a> {
    fn from(name: &'a String) -> Self {
        name.as_str().into()
    }
}

/// Fails unless each element is the expected value, rounded to the element type. All NaNs compare
/// equal, and −0 equals +0.
pub(super) fn expect_nearest<'a, T: Element>(
    output: impl Into<Output<'a>>,
    got: &[T],
    want: &[f64],
) -> Verdict {
    let output = output.into();
    expect_len(&output, got.len(), want.len())?;
    for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
        let nearest_value = T::from_f64(want);
        if !equal(got, nearest_value) {
            let reason = format!("{got}, not {nearest_value} (exactly {want:e})");
            return Err(wrong_element(&output, i, &reason));
        }
    }
    Ok(())
}

/// Fails unless each element equals the expected value up to the allowed rounding error.
pub(super) fn expect_within<'a, T: Element>(
    output: impl Into<Output<'a>>,
    got: &[T],
    want: &[Expected],
) -> Verdict {
    let output = output.into();
    expect_len(&output, got.len(), want.len())?;
    for (i, (&got, want)) in got.iter().zip(want).enumerate() {
        let nearest_value = T::from_acc(T::acc(want.value));
        let (error, bound) = ((got.to_f64() - want.value).abs(), want.bound::<T>());
        if !(equal(got, nearest_value) || want.roundings > 0.0 && error <= bound) {
            let want = match want.roundings {
                0.0 => format!("not {nearest_value}"),
                _ => format!("not {:e}: off by {error:e} where {bound:e} is allowed", want.value),
            };
            return Err(wrong_element(&output, i, &format!("{got}, {want}")));
        }
    }
    Ok(())
}

/// Fails unless the elements are bit-identical to the expected elements.
pub(super) fn expect_bits<'a, T: Storable + Debug>(
    output: impl Into<Output<'a>>,
    got: &[T],
    want: &[T],
) -> Verdict {
    let output = output.into();
    expect_len(&output, got.len(), want.len())?;
    match first_difference(got, want) {
        None => Ok(()),
        Some(i) => Err(wrong_element(&output, i, &format!("{:?}, not {:?}", got[i], want[i]))),
    }
}

/// Fails unless two calls of a kernel with the same operands returned bit-identical results.
pub(super) fn expect_same_bits<T: Storable>(name: &str, first: &[T], second: &[T]) -> Verdict {
    match first_difference(first, second) {
        None => Ok(()),
        Some(i) => Err(flaw!(
            "{name}[{i}] differs in a second call with the same operands; equal calls must return \
             bit-identical results"
        )),
    }
}

/// Returns the index of the first element whose bits differ between two slices of equal length.
pub(super) fn first_difference<T: Storable>(a: &[T], b: &[T]) -> Option<usize> {
    let (a, b) = (T::bytes_of(a), T::bytes_of(b));
    // One comparison of all bytes is fast, even if this crate is not optimized.
    if a == b {
        return None;
    }
    let size = size_of::<T>();
    a.chunks_exact(size).zip(b.chunks_exact(size)).position(|(a, b)| a != b)
}

fn wrong_element(output: &Output<'_>, i: usize, reason: &str) -> CaseFailure {
    flaw!("{}[{i}] is {reason}{}", output.name, output.operands_at(i))
}

fn expect_len(output: &Output<'_>, got: usize, want: usize) -> Verdict {
    if got == want {
        return Ok(());
    }
    Err(flaw!("`{}` has {got} elements, not {want}", output.name))
}

fn equal<T: Element>(got: T, want: T) -> bool {
    got == want || got.to_f64().is_nan() && want.to_f64().is_nan()
}

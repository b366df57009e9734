//! Checks of kernels on large operands, each of which is tiled from a small operand.

use super::{
    cases::{CaseSetup, NamedSlice},
    harness::{ExpectedOutput, as_slices},
};
use crate::{
    conformance::{
        compare::first_difference,
        failure::Verdict,
        operand::Placement,
        runner::CheckRunner,
        values::{Values, repeated},
    },
    device::AnyDevice,
    element::{DType, Element, Storable},
    error::Result,
    memory::{View, ViewMut},
};

impl CheckRunner<'_> {
    /// Checks a kernel on large operands. Each operand consists of copies of the given elements,
    /// one after another. `want` holds the expected elements of one copy in each output. The kernel
    /// must compute each copy in an output from only one copy in each input.
    pub(super) fn try_large<T: Storable, U: Element, const I: usize, const O: usize>(
        &self,
        inputs: [(NamedSlice<'_, T>, usize); I],
        outputs: [(NamedSlice<'_, U>, usize); O],
        kernel: impl FnMut([View<'_, T, AnyDevice>; I], [ViewMut<'_, U, AnyDevice>; O]) -> Result<()>,
        want: [ExpectedOutput; O],
    ) -> Verdict {
        // Cases with large operands are slow, so the kit runs them only in `f32`.
        if U::DTYPE != DType::F32 {
            return Ok(());
        }
        let large_inputs = inputs.map(|((name, x), copies)| (name, repeated(x, copies)));
        let large_outputs = outputs.map(|((name, y), copies)| (name, repeated(y, copies)));
        let setup = CaseSetup::placed(Placement::CORNERS[1]);
        let got =
            self.call_once(&setup, as_slices(&large_inputs), as_slices(&large_outputs), kernel)?;
        let mut results = outputs.iter().zip(&got).zip(&want);
        results.try_for_each(|((((name, y), _), got), want)| {
            expect_copies(name, got, y.len(), |copy| want.compare(*name, copy, Values::Integers))
        })
    }
}

/// Compares each copy of `period` elements in a large output with the expected elements, except for
/// copies that are bit-identical to the first copy.
pub(super) fn expect_copies<U: Storable>(
    name: &str,
    got: &[U],
    period: usize,
    compare: impl Fn(&[U]) -> Verdict,
) -> Verdict {
    let mut copies = got.chunks_exact(period.max(1)).enumerate();
    let Some((_, first)) = copies.next() else { return Ok(()) };
    compare(first)?;
    copies.try_for_each(|(i, copy)| match first_difference(first, copy) {
        None => Ok(()),
        Some(_) => compare(copy).map_err(|flaw| {
            let of = format!("part of `{name}` of {} elements, from element", got.len());
            flaw.in_case(&of, &(i * period))
        }),
    })
}

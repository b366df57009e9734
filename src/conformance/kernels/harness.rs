//! Harness of kernel checks: allocates operands, calls a kernel and compares its outputs with
//! expected elements.

use super::cases::{CaseSetup, Cases, Length, NamedSlice, NamedValues};
use crate::{
    conformance::{
        compare::{Output, expect_bits, expect_nearest, expect_same_bits},
        expected::Expected,
        failure::Verdict,
        operand::{Operand, Placement, unset},
        runner::CheckRunner,
        values::{Values, repeated, wide},
    },
    device::AnyDevice,
    element::{DType, Element, Storable},
    error::{Error, Result},
    memory::{Src, View, ViewMut},
};
use std::fmt::Debug;

/// Expected elements of an output, and the required accuracy of the device's results.
pub(super) enum ExpectedOutput {
    /// Results must be bit-identical to the given elements.
    Bits(Vec<f64>),
    /// Results must be the given values, rounded to the element type.
    Nearest(Vec<f64>),
    /// Results may differ from the expected values by rounding errors, but must be exact if the
    /// operands are integers.
    Sums(Vec<Expected>),
    /// Results may differ from the expected values by rounding errors, even if the operands are
    /// integers.
    Within(Vec<Expected>),
}

impl ExpectedOutput {
    pub(super) fn compare<'a, T: Element>(
        &self,
        output: impl Into<Output<'a>>,
        got: &[T],
        values: Values,
    ) -> Verdict {
        let output = output.into();
        match self {
            Self::Bits(want) => {
                let want: Vec<T> = want.iter().map(|&want| T::from_f64(want)).collect();
                expect_bits(output, got, &want)
            }
            Self::Nearest(want) => expect_nearest(output, got, want),
            Self::Sums(want) => values.compare(output, got, want),
            Self::Within(want) => Values::Reals.compare(output, got, want),
        }
    }
}

/// Returns whether all expected elements are finite.
fn all_finite(want: &[ExpectedOutput]) -> bool {
    want.iter().all(|want| match want {
        ExpectedOutput::Bits(want) | ExpectedOutput::Nearest(want) => {
            want.iter().all(|want| want.is_finite())
        }
        ExpectedOutput::Sums(want) | ExpectedOutput::Within(want) => {
            want.iter().all(|want| want.value.is_finite())
        }
    })
}

impl CheckRunner<'_> {
    /// Runs `test` on all fixed and all random cases of a check.
    pub(super) fn try_all<C: Clone + Debug + 'static>(
        &self,
        cases: &Cases<C>,
        test: impl Fn(&C, &CaseSetup) -> Verdict,
    ) -> Verdict {
        let test = |(case, setup): &(C, CaseSetup)| test(case, setup);
        self.try_cases(&cases.fixed_cases, |case| test(case))?;
        self.try_random((cases.random_cases.clone(), CaseSetup::any()), test)
    }

    /// Checks the outputs of a kernel whose operands all have the element type `T`. Also checks
    /// that the kernel refuses wrong lengths of each operand.
    ///
    /// `operands` returns the inputs and the previous contents of the outputs. `want` receives the
    /// inputs and the previous contents of the outputs, and returns the expected outputs.
    pub(super) fn try_kernel<
        C: Clone + Debug + 'static,
        T: Element,
        const I: usize,
        const O: usize,
    >(
        &self,
        cases: &Cases<C>,
        operands: impl Fn(&C, &CaseSetup) -> ([NamedValues<T>; I], [NamedValues<T>; O]),
        kernel: impl Fn(&C, [View<'_, T, AnyDevice>; I], [ViewMut<'_, T, AnyDevice>; O]) -> Result<()>,
        want: impl Fn(&C, [&[f64]; I], [&[f64]; O]) -> [ExpectedOutput; O],
    ) -> Verdict {
        self.try_all(cases, |case, setup| {
            let (inputs, outputs) = operands(case, setup);
            let (x, y) = (inputs.each_ref().map(wide_named), outputs.each_ref().map(wide_named));
            let want = want(case, x.each_ref().map(|x| &x[..]), y.each_ref().map(|y| &y[..]));
            let got = self
                .call(setup, as_slices(&inputs), as_slices(&outputs), |x, y| kernel(case, x, y))?;
            let mut results = outputs.iter().zip(&y).zip(&got).zip(&want);
            results.try_for_each(|(((output, y), got), want)| {
                let mut shown_values = shown_operands(&inputs, &x, got.len());
                let old_name = format!("old {}", output.0);
                if y.iter().any(|y| !y.is_nan()) {
                    shown_values.push((&old_name, y));
                }
                want.compare(Output::from(output.0).of(&shown_values), got, setup.values)
            })
        })?;
        // Cases with large operands are slow, so the kit runs them only in `f32`.
        let mut large_cases = cases.large_cases.iter().filter(|_| T::DTYPE == DType::F32);
        large_cases.try_for_each(|large| {
            self.start_step(format!("large case: {:?}", large.large_case));
            let (inputs, outputs) = operands(&large.small_case, &CaseSetup::WHOLE);
            let (x, y) = (inputs.each_ref().map(wide_named), outputs.each_ref().map(wide_named));
            let (x, y) = (x.each_ref().map(|x| &x[..]), y.each_ref().map(|y| &y[..]));
            let want = want(&large.small_case, x, y);
            let (inputs, outputs) = (as_slices(&inputs), as_slices(&outputs));
            let (inputs, outputs) = (large.copied(inputs), large.copied(outputs));
            self.try_large(inputs, outputs, |x, y| kernel(&large.large_case, x, y), want)
                .map_err(|flaw| flaw.in_case("case", &large.large_case))
        })?;
        self.try_cases(&cases.refused_calls, |case| {
            // Inputs of equal length may be the same view.
            let (mut inputs, outputs) = operands(case, &CaseSetup::WHOLE);
            let lengths = inputs.each_ref().map(|(_, x)| x.len());
            let view_indices: [usize; I] =
                lengths.map(|len| lengths.iter().position(|&other| other == len).unwrap_or(0));
            if view_indices.iter().enumerate().all(|(i, &first)| i == first) {
                return Ok(());
            }
            (0..I).for_each(|i| inputs[i].1 = inputs[view_indices[i]].1.clone());
            let (x, y) = (inputs.each_ref().map(wide_named), outputs.each_ref().map(wide_named));
            let want = want(case, x.each_ref().map(|x| &x[..]), y.each_ref().map(|y| &y[..]));
            // A function may be undefined for some values of an operand, such as a negative
            // variance.
            if !all_finite(&want) {
                return Ok(());
            }
            let (inputs, previous) = (as_slices(&inputs), as_slices(&outputs));
            let got = self.call(&CaseSetup::WHOLE, inputs, previous, |x, y| {
                kernel(case, view_indices.map(|first| x[first]), y)
            })?;
            let mut results = outputs.iter().zip(&got).zip(&want);
            results.try_for_each(|((output, got), want)| {
                let name = format!("{} of inputs that are the same view", output.0);
                want.compare(&name, got, Values::Integers)
            })
        })?;
        self.try_cases(&cases.refused_calls, |case| {
            let (inputs, outputs) = operands(case, &CaseSetup::WHOLE);
            let (inputs, outputs) = (inputs.each_ref().map(length), outputs.each_ref().map(length));
            self.check_lengths(inputs, outputs, |x, y| kernel(case, x, y))
        })
    }

    /// Checks a kernel that can run in place: once with a separate source, and once in place. The
    /// source is the input that may alias the output; both have the same length. Also checks that
    /// the kernel refuses wrong lengths of each operand.
    ///
    /// `operands` returns the source, the other inputs and the name of the output.
    pub(super) fn try_in_place<C: Clone + Debug + 'static, T: Element, const I: usize>(
        &self,
        cases: &Cases<C>,
        operands: impl Fn(&C, &CaseSetup) -> (NamedValues<T>, [NamedValues<T>; I], &'static str),
        kernel: impl Fn(
            &C,
            Src<'_, T, AnyDevice>,
            [View<'_, T, AnyDevice>; I],
            ViewMut<'_, T, AnyDevice>,
        ) -> Result<()>,
        want: impl Fn(&C, &[f64], [&[f64]; I]) -> ExpectedOutput,
    ) -> Verdict {
        self.try_all(cases, |case, setup| {
            let ((source, x), inputs, output) = operands(case, setup);
            let (wide_x, other_inputs) = (wide(&x), inputs.each_ref().map(wide_named));
            let want = want(case, &wide_x, other_inputs.each_ref().map(|input| &input[..]));
            let mut shown_values = vec![(source, &wide_x[..])];
            shown_values.extend(shown_operands(&inputs, &other_inputs, x.len()));
            let inputs = as_slices(&inputs);
            let [got] = self.call(setup, inputs, [(output, &x)], |inputs, [y]| {
                kernel(case, Src::InPlace, inputs, y)
            })?;
            let name = format!("in place: {output}");
            want.compare(Output::from(&name).of(&shown_values), &got, setup.values)?;
            let operand = Operand::new(self.device, &x, setup.places[I + 1])?;
            let [got] = self.call(setup, inputs, [(output, &unset(x.len()))], |inputs, [y]| {
                kernel(case, operand.view()?.into(), inputs, y)
            })?;
            operand.unchanged(source)?;
            want.compare(Output::from(output).of(&shown_values), &got, setup.values)
        })?;
        // Cases with large operands are slow, so the kit runs them only in `f32`.
        let mut large_cases = cases.large_cases.iter().filter(|_| T::DTYPE == DType::F32);
        large_cases.try_for_each(|large| {
            self.start_step(format!("large case: {:?}", large.large_case));
            let ((_, x), inputs, output) = operands(&large.small_case, &CaseSetup::WHOLE);
            let other_inputs = inputs.each_ref().map(wide_named);
            let want =
                want(&large.small_case, &wide(&x), other_inputs.each_ref().map(|input| &input[..]));
            let large_x = repeated(&x, large.copies);
            let operand = Operand::new(self.device, &large_x, Placement::WHOLE)?;
            let kernel = |inputs: [View<'_, T, AnyDevice>; I],
                          [y]: [ViewMut<'_, T, AnyDevice>; 1]| {
                kernel(&large.large_case, operand.view()?.into(), inputs, y)
            };
            let y = [((output, &unset(x.len())[..]), large.copies)];
            self.try_large(large.copied(as_slices(&inputs)), y, kernel, [want])
                .map_err(|flaw| flaw.in_case("case", &large.large_case))
        })?;
        self.try_cases(&cases.refused_calls, |case| {
            // The source and the inputs of the same length may be one view.
            let ((source, x), mut inputs, output) = operands(case, &CaseSetup::WHOLE);
            let is_source = inputs.each_ref().map(|(_, input)| input.len() == x.len());
            let Some(first) = is_source.iter().position(|&is_source| is_source) else {
                return Ok(());
            };
            for (input, _) in inputs.iter_mut().zip(is_source).filter(|(_, is_source)| *is_source) {
                input.1.clone_from(&x);
            }
            let other_inputs = inputs.each_ref().map(wide_named);
            let want = want(case, &wide(&x), other_inputs.each_ref().map(|input| &input[..]));
            if !all_finite(std::slice::from_ref(&want)) {
                return Ok(());
            }
            let (inputs, y) = (as_slices(&inputs), [(output, &unset(x.len())[..])]);
            let [got] = self.call(&CaseSetup::WHOLE, inputs, y, |x, [y]| {
                let inputs = std::array::from_fn(|i| x[if is_source[i] { first } else { i }]);
                kernel(case, x[first].into(), inputs, y)
            })?;
            let name = format!("{output} with other inputs that are the same view as `{source}`");
            want.compare(&name, &got, Values::Integers)
        })?;
        self.try_cases(&cases.refused_calls, |case| {
            let ((source, x), inputs, output) = operands(case, &CaseSetup::WHOLE);
            let (inputs, output) = (inputs.each_ref().map(length), [(output, x.len())]);
            self.check_lengths(inputs, output, |inputs, [y]| {
                kernel(case, Src::InPlace, inputs, y)
            })?;
            for len in [x.len(), x.len() - 1, x.len() + 1] {
                let x_of_len = vec![T::default(); len];
                let operand = Operand::new(self.device, &x_of_len, Placement::CORNERS[3])?;
                let call = |inputs: [View<'_, T, AnyDevice>; I],
                            [y]: [ViewMut<'_, T, AnyDevice>; 1]| {
                    kernel(case, operand.view()?.into(), inputs, y)
                };
                let invalid = format!("`{source}` of {len} elements instead of {}", x.len());
                match len == x.len() {
                    true => self.check_lengths(inputs, output, call)?,
                    false => self.check_refused(&invalid, inputs, output, call)?,
                }
            }
            Ok(())
        })
    }

    /// Calls a kernel and returns its outputs. Fails if the kernel changes an input or a guard
    /// element, or if a second call with the same operands returns different bits.
    /// [`Self::repetitions`] decides whether there is a second call.
    pub(super) fn call<T: Storable, U: Storable, const I: usize, const O: usize>(
        &self,
        setup: &CaseSetup,
        inputs: [NamedSlice<'_, T>; I],
        outputs: [NamedSlice<'_, U>; O],
        mut kernel: impl FnMut(
            [View<'_, T, AnyDevice>; I],
            [ViewMut<'_, U, AnyDevice>; O],
        ) -> Result<()>,
    ) -> Verdict<[Vec<U>; O]> {
        let mut calls = Vec::new();
        for _ in 0..self.repetitions() {
            calls.push(self.call_once(setup, inputs, outputs, &mut kernel)?);
        }
        if let [first, second] = &calls[..] {
            let mut results = outputs.iter().zip(first.iter().zip(second));
            results.try_for_each(|((name, _), (first, second))| {
                expect_same_bits(name, first, second)
            })?;
        }
        Ok(calls.swap_remove(0))
    }

    /// Calls a kernel once and returns its outputs. Fails if the kernel changes an input or a guard
    /// element.
    pub(super) fn call_once<T: Storable, U: Storable, const I: usize, const O: usize>(
        &self,
        setup: &CaseSetup,
        inputs: [NamedSlice<'_, T>; I],
        outputs: [NamedSlice<'_, U>; O],
        kernel: impl FnOnce([View<'_, T, AnyDevice>; I], [ViewMut<'_, U, AnyDevice>; O]) -> Result<()>,
    ) -> Verdict<[Vec<U>; O]> {
        let (result, input_operands, output_operands) = self.run(setup, inputs, outputs, kernel)?;
        result?;
        let mut named_operands = inputs.iter().zip(&input_operands);
        named_operands.try_for_each(|((name, _), operand)| operand.unchanged(name))?;
        Ok(array(output_operands.iter().map(Operand::values).collect::<Verdict<_>>()?)?)
    }

    /// Allocates the operands and calls a kernel. Returns the kernel's result, the inputs and the
    /// outputs.
    #[expect(clippy::type_complexity)]
    pub(super) fn run<T: Storable, U: Storable, const I: usize, const O: usize>(
        &self,
        setup: &CaseSetup,
        inputs: [NamedSlice<'_, T>; I],
        outputs: [NamedSlice<'_, U>; O],
        kernel: impl FnOnce([View<'_, T, AnyDevice>; I], [ViewMut<'_, U, AnyDevice>; O]) -> Result<()>,
    ) -> Result<(Result<()>, Vec<Operand<T>>, Vec<Operand<U>>)> {
        self.progress.renew();
        let input_operands = placed(self.device, &inputs, &setup.places)?;
        let mut output_operands = placed(self.device, &outputs, &setup.places[I..])?;
        let views = array(input_operands.iter().map(Operand::view).collect::<Result<_>>()?)?;
        let views_mut =
            array(output_operands.iter_mut().map(Operand::view_mut).collect::<Result<_>>()?)?;
        let result = kernel(views, views_mut);
        Ok((result, input_operands, output_operands))
    }
}

fn placed<T: Storable>(
    device: &AnyDevice,
    operands: &[NamedSlice<'_, T>],
    places: &[Placement],
) -> Result<Vec<Operand<T>>> {
    operands.iter().zip(places).map(|(x, place)| Operand::new(device, x.1, *place)).collect()
}

/// Returns the operands with their elements borrowed as slices.
pub(super) fn as_slices<T, const N: usize>(
    operands: &[NamedValues<T>; N],
) -> [NamedSlice<'_, T>; N] {
    operands.each_ref().map(|(name, values)| (*name, &values[..]))
}

/// Returns the inputs that are as long as an output of `len` elements. A failure message shows the
/// elements of the returned inputs.
fn shown_operands<'a, T>(
    inputs: &[NamedValues<T>],
    wide_values: &'a [Vec<f64>],
    len: usize,
) -> Vec<(&'a str, &'a [f64])> {
    let named_inputs = inputs.iter().zip(wide_values).map(|((name, _), x)| (*name, &x[..]));
    named_inputs.filter(|(_, x)| x.len() == len).collect()
}

fn wide_named<T: Element>((_, values): &NamedValues<T>) -> Vec<f64> {
    wide(values)
}

fn length<T>((name, values): &NamedValues<T>) -> Length {
    (name, values.len())
}

/// Converts a list to an array of `N` elements, or returns an error if the list has a different
/// length.
fn array<V, const N: usize>(items: Vec<V>) -> Result<[V; N]> {
    let message = |items: Vec<V>| format!("{} operands, not {N}", items.len());
    items.try_into().map_err(|items| Error::invalid_input("conformance", message(items)))
}

//! Harness of kernel checks: places operands in memories, calls a kernel and compares its outputs
//! with expected elements.

use super::cases::{CaseSetup, Cases, Length, NamedValues};
use crate::{
    conformance::{
        compare::{expect_bits, expect_nearest, expect_same_bits},
        expected::Expected,
        failure::{Verdict, expect_refused, flaw},
        operand::{Operand, Placement, unset},
        runner::CheckRunner,
        values::{Values, wide},
    },
    device::AnyDevice,
    element::{Element, Storable},
    error::{Error, Result},
    kernel::traits::*,
    memory::{Src, View, ViewMut},
};
use std::fmt::Debug;

/// Name of an operand, and a slice of its elements before the kernel call.
pub(super) type NamedSlice<'a, T> = (&'static str, &'a [T]);

/// Expected elements of an output, and the required accuracy of the device's results.
pub(super) enum ExpectedOutput {
    /// Results must be bit-identical to the given elements.
    Bits(Vec<f64>),
    /// Results must be the given values, rounded to the element type.
    Nearest(Vec<f64>),
    /// Results may differ from the expected values by the rounding error, but must be exact if the
    /// operands are integers.
    Sums(Vec<Expected>),
    /// Results may differ from the expected values by the rounding error, even if the operands are
    /// integers.
    Within(Vec<Expected>),
}

impl ExpectedOutput {
    pub(super) fn compare<T: Element>(&self, name: &str, got: &[T], values: Values) -> Verdict {
        match self {
            Self::Bits(want) => {
                let want: Vec<T> = want.iter().map(|&want| T::from_f64(want)).collect();
                expect_bits(name, got, &want)
            }
            Self::Nearest(want) => expect_nearest(name, got, want),
            Self::Sums(want) => values.compare(name, got, want),
            Self::Within(want) => Values::Reals.compare(name, got, want),
        }
    }
}

impl CheckRunner<'_> {
    /// Runs `test` on all fixed and all random cases of a check.
    pub(super) fn try_all<C: Clone + Debug + 'static>(
        &self,
        cases: &Cases<C>,
        test: impl Fn(&C, &CaseSetup) -> Verdict,
    ) -> Verdict {
        let test = |(case, setup): &(C, CaseSetup)| test(case, setup);
        self.try_cases(&cases.fixed, |case| test(case))?;
        self.try_random((cases.random.clone(), CaseSetup::any()), test)
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
            let mut results = outputs.iter().zip(&got).zip(&want);
            results.try_for_each(|((output, got), want)| want.compare(output.0, got, setup.values))
        })?;
        self.try_cases(&cases.refused, |case| {
            let (inputs, outputs) = operands(case, &CaseSetup::WHOLE);
            let (inputs, outputs) = (inputs.each_ref().map(length), outputs.each_ref().map(length));
            self.check_lengths(inputs, outputs, |x, y| kernel(case, x, y))
        })
    }

    /// Checks a kernel that can run in place: once with a separate source operand, and once with
    /// the source in the output. Also checks that the kernel refuses wrong lengths of each operand.
    ///
    /// `operands` returns the source, the other inputs and the name of the output. The source and
    /// the output of an in-place kernel have the same length.
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
            let others = inputs.each_ref().map(wide_named);
            let want = want(case, &wide(&x), others.each_ref().map(|input| &input[..]));
            let inputs = as_slices(&inputs);
            let [got] = self.call(setup, inputs, [(output, &x)], |inputs, [y]| {
                kernel(case, Src::InPlace, inputs, y)
            })?;
            want.compare(&format!("in place: {output}"), &got, setup.values)?;
            let operand = Operand::new(self.device, &x, setup.places[I + 1])?;
            let [got] = self.call(setup, inputs, [(output, &unset(x.len()))], |inputs, [y]| {
                kernel(case, operand.view()?.into(), inputs, y)
            })?;
            operand.unchanged(source)?;
            want.compare(output, &got, setup.values)
        })?;
        self.try_cases(&cases.refused, |case| {
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
    /// element, or if a second call with the same operands returns different bits. `repetitions`
    /// selects the kernel calls that are made twice.
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
            let (result, read, written) = self.run(setup, inputs, outputs, &mut kernel)?;
            result?;
            inputs
                .iter()
                .zip(&read)
                .try_for_each(|((name, _), operand)| operand.unchanged(name))?;
            calls.push(written.iter().map(Operand::values).collect::<Verdict<Vec<_>>>()?);
        }
        if let [first, second] = &calls[..] {
            let mut results = outputs.iter().zip(first.iter().zip(second));
            results.try_for_each(|((name, _), (first, second))| {
                expect_same_bits(name, first, second)
            })?;
        }
        Ok(array(calls.swap_remove(0))?)
    }

    /// Fails unless a kernel returns an error for operands of the given lengths and leaves the
    /// outputs unchanged. `invalid` describes the wrong operand in the failure message.
    pub(super) fn check_refused<T: Storable, U: Storable, const I: usize, const O: usize>(
        &self,
        invalid: &str,
        inputs: [Length; I],
        outputs: [Length; O],
        kernel: impl FnOnce([View<'_, T, AnyDevice>; I], [ViewMut<'_, U, AnyDevice>; O]) -> Result<()>,
    ) -> Verdict {
        // Zeros are valid labels and indices, so the lengths of the operands are the only error.
        // The output bytes are not 0, so that the check detects a kernel that writes zeros.
        let read = inputs.map(|input| filled::<T>(input, 0));
        let written = outputs.map(|output| filled::<U>(output, 0x3f));
        let setup = CaseSetup::placed(Placement::CORNERS[1]);
        let (result, _, written) =
            self.run(&setup, as_slices(&read), as_slices(&written), kernel)?;
        expect_refused(result, invalid)?;
        outputs.iter().zip(&written).try_for_each(|((name, _), operand)| operand.unchanged(name))
    }

    /// Fails unless the kernel refuses each operand that is one element too short or too long.
    pub(super) fn check_lengths<T: Storable, U: Storable, const I: usize, const O: usize>(
        &self,
        inputs: [Length; I],
        outputs: [Length; O],
        kernel: impl Fn([View<'_, T, AnyDevice>; I], [ViewMut<'_, U, AnyDevice>; O]) -> Result<()>,
    ) -> Verdict {
        for operand in 0..I + O {
            let (name, len) = if operand < I { inputs[operand] } else { outputs[operand - I] };
            for wrong in len.checked_sub(1).into_iter().chain([len + 1]) {
                let (mut inputs, mut outputs) = (inputs, outputs);
                let length =
                    if operand < I { &mut inputs[operand] } else { &mut outputs[operand - I] };
                length.1 = wrong;
                let invalid = format!("`{name}` of {wrong} elements instead of {len}");
                self.check_refused(&invalid, inputs, outputs, &kernel)
                    .map_err(|flaw| flaw.in_case("lengths", &(inputs, outputs)))?;
            }
        }
        Ok(())
    }

    /// Fails unless an invalid kernel call causes an error by the next download of the output. A
    /// second invalid call must cause an error by the next `synchronize`.
    pub(super) fn check_late_error<T: Storable, U: Storable, const I: usize>(
        &self,
        invalid: &str,
        inputs: [NamedSlice<'_, T>; I],
        output: NamedSlice<'_, U>,
        kernel: impl Fn([View<'_, T, AnyDevice>; I], [ViewMut<'_, U, AnyDevice>; 1]) -> Result<()>,
    ) -> Verdict {
        let [whole, part, ..] = Placement::CORNERS;
        let setup = CaseSetup { places: [whole, part, part, part, part], ..CaseSetup::WHOLE };
        for wait in ["download of the output", "synchronize"] {
            let (result, _, written) = self.run(&setup, inputs, [output], &kernel)?;
            let waited = || match wait {
                "synchronize" => self.device.synchronize(),
                _ => written[0].view()?.host().map(drop),
            };
            if result.and_then(|()| waited()).is_ok() {
                return Err(flaw!("accepted {invalid}: expected an error by the next {wait}"));
            }
        }
        Ok(())
    }

    /// Places the operands in memories and calls a kernel. Returns the kernel's result, the inputs
    /// and the outputs.
    #[expect(clippy::type_complexity)]
    fn run<T: Storable, U: Storable, const I: usize, const O: usize>(
        &self,
        setup: &CaseSetup,
        inputs: [NamedSlice<'_, T>; I],
        outputs: [NamedSlice<'_, U>; O],
        kernel: impl FnOnce([View<'_, T, AnyDevice>; I], [ViewMut<'_, U, AnyDevice>; O]) -> Result<()>,
    ) -> Result<(Result<()>, Vec<Operand<T>>, Vec<Operand<U>>)> {
        let read = placed(self.device, &inputs, &setup.places)?;
        let mut written = placed(self.device, &outputs, &setup.places[I..])?;
        let views = array(read.iter().map(Operand::view).collect::<Result<_>>()?)?;
        let views_mut = array(written.iter_mut().map(Operand::view_mut).collect::<Result<_>>()?)?;
        let result = kernel(views, views_mut);
        Ok((result, read, written))
    }
}

fn placed<T: Storable>(
    device: &AnyDevice,
    given: &[NamedSlice<'_, T>],
    places: &[Placement],
) -> Result<Vec<Operand<T>>> {
    given.iter().zip(places).map(|(x, place)| Operand::new(device, x.1, *place)).collect()
}

/// Returns the operands with their elements borrowed as slices.
pub(super) fn as_slices<T, const N: usize>(
    operands: &[NamedValues<T>; N],
) -> [NamedSlice<'_, T>; N] {
    operands.each_ref().map(|(name, values)| (*name, &values[..]))
}

fn wide_named<T: Element>((_, values): &NamedValues<T>) -> Vec<f64> {
    wide(values)
}

fn length<T>((name, values): &NamedValues<T>) -> Length {
    (name, values.len())
}

/// Returns an operand in which every byte is `byte`.
fn filled<T: Storable>((name, len): Length, byte: u8) -> NamedValues<T> {
    let mut values = vec![T::zeroed(); len];
    crate::cast::cast_slice_mut(&mut values).fill(byte);
    (name, values)
}

/// Converts a list to an array of `N` elements, or returns an error if the list has another length.
fn array<V, const N: usize>(items: Vec<V>) -> Result<[V; N]> {
    let wrong = |items: Vec<V>| format!("{} operands, not {N}", items.len());
    items.try_into().map_err(|items| Error::invalid_input("conformance", wrong(items)))
}

//! Checks that a kernel refuses invalid operands.

use super::{
    cases::{CaseSetup, Length, NamedSlice, NamedValues},
    harness::as_slices,
};
use crate::{
    conformance::{
        failure::{CaseFailure, Verdict, expect_refused, flaw},
        operand::Placement,
        runner::CheckRunner,
    },
    device::AnyDevice,
    element::Storable,
    error::Result,
    kernel::traits::*,
    memory::{View, ViewMut},
};

impl CheckRunner<'_> {
    /// Fails unless a kernel call with operands of the given lengths returns an error and leaves
    /// the outputs unchanged. The function calls the kernel twice: with operands that cover a part
    /// of their memory and are valid on the device, and with operands that fill their memory and
    /// are valid on the host. `invalid` describes the wrong operand in the failure message.
    pub(super) fn check_refused<T: Storable, U: Storable, const I: usize, const O: usize>(
        &self,
        invalid: &str,
        inputs: [Length; I],
        outputs: [Length; O],
        mut kernel: impl FnMut(
            [View<'_, T, AnyDevice>; I],
            [ViewMut<'_, U, AnyDevice>; O],
        ) -> Result<()>,
    ) -> Verdict {
        // Zeros are valid labels and indices, so the lengths of the operands are the only error.
        // Inputs other than labels, indices and masks contain bytes that are not 0, so that the
        // check detects a kernel that writes zeros or adds an input to an output.
        let input_values = inputs.map(|(name, len)| match name {
            "label" | "indices" | "mask" => filled::<T>((name, len), 0),
            _ => filled((name, len), 0x3e),
        });
        let output_values = outputs.map(|output| filled::<U>(output, 0x3f));
        let [_, part, whole_on_host, ..] = Placement::CORNERS;
        for place in [part, whole_on_host] {
            let setup = CaseSetup::placed(place);
            let (result, _, output_operands) =
                self.run(&setup, as_slices(&input_values), as_slices(&output_values), &mut kernel)?;
            expect_refused(result, invalid)?;
            let mut named_operands = outputs.iter().zip(&output_operands);
            named_operands.try_for_each(|((name, _), operand)| {
                let in_call = |flaw: CaseFailure| flaw.in_case("in a refused call with", &invalid);
                operand.unchanged(name).map_err(in_call)
            })?;
        }
        Ok(())
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

    /// Fails unless the device reports an invalid kernel call in the next download of the output at
    /// the latest. A second invalid call must cause an error in the next `synchronize` at the
    /// latest.
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
            let wait_result = || match wait {
                "synchronize" => self.device.synchronize(),
                _ => written[0].view()?.host().map(drop),
            };
            if result.and_then(|()| wait_result()).is_ok() {
                return Err(flaw!("accepted {invalid}: expected an error by the next {wait}"));
            }
        }
        Ok(())
    }
}

/// Returns an operand in which every byte is `byte`.
fn filled<T: Storable>((name, len): Length, byte: u8) -> NamedValues<T> {
    let mut values = vec![T::zeroed(); len];
    crate::cast::cast_slice_mut(&mut values).fill(byte);
    (name, values)
}

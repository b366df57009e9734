//! Checks of failures: a failed call returns an error, changes no value, and leaves the device
//! usable.

use crate::{
    conformance::{
        compare::expect_bits,
        failure::{CaseFailure, Verdict, expect_refused, flaw},
        operand::{Operand, Placement, UNSET},
        runner::CheckRunner,
    },
    device::AnyDevice,
    error::{Error, Result},
    kernel::traits::*,
    memory::{Head, SyncedMemory},
    op::{Axis, Gemm, Reduce},
};

/// Number of bytes that is a valid length of a slice but exceeds any address space. `TOO_LARGE` is
/// odd, so that the check detects a device that reports a rounded number.
const TOO_LARGE: usize = isize::MAX as usize / 2;

pub(super) fn out_of_memory(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    for _ in 0..3 {
        let result = expect_out_of_memory(device.alloc(TOO_LARGE).map(drop));
        result.map_err(|CaseFailure(reason)| flaw!("`alloc`: {reason}"))?;
        expect_out_of_memory(device.alloc_host(TOO_LARGE).map(drop))?;
        let mut memory = SyncedMemory::new(device, TOO_LARGE);
        expect_out_of_memory(memory.device().map(drop))?;
        expect_out_of_memory(memory.host().map(drop))?;
        expect_out_of_memory(memory.device_write_only().map(drop))?;
        expect_out_of_memory(memory.host_write_only().map(drop))?;
        if memory.head() != Head::Uninitialized {
            return Err(flaw!("`Head` is {:?} although every allocation failed", memory.head()));
        }
        expect_usable(device)?;
    }
    Ok(())
}

fn expect_out_of_memory(result: Result<()>) -> Verdict {
    match result {
        Ok(()) => Err(flaw!("allocated {TOO_LARGE} bytes; expected an error")),
        Err(error) => match error.root() {
            Error::OutOfMemory { bytes: TOO_LARGE, .. } => Ok(()),
            other => Err(flaw!(
                "allocating {TOO_LARGE} bytes: expected `Error::OutOfMemory` with that number of \
                 bytes, found: {other}"
            )),
        },
    }
}

/// Call of a kernel with operands of 12, 11 and 3 elements.
type Call = fn(&AnyDevice, &Operand<f32>, &mut Operand<f32>, &mut Operand<u32>) -> Result<()>;

/// Kernel call that the device must refuse.
struct RefusedCall {
    kernel: &'static str,
    invalid: &'static str,
    call: Call,
}

const REFUSED_CALLS: [RefusedCall; 5] = [
    RefusedCall {
        kernel: "axpy",
        invalid: "operands of 12 and 11 elements",
        call: |device, x, y, _| device.axpy(1.0, x.view()?, y.view_mut()?),
    },
    RefusedCall {
        kernel: "gemm",
        invalid: "`b` of 12 elements instead of 16",
        call: |device, x, y, _| {
            device.gemm(&Gemm::new(3, 4, 4), x.view()?, x.view()?, y.view_mut()?)
        },
    },
    RefusedCall {
        kernel: "reduce",
        invalid: "`y` of 11 elements instead of 1",
        call: |device, x, y, _| {
            device.reduce(Reduce::Sum, &Axis::new(1, 12, 1)?, x.view()?, y.view_mut()?)
        },
    },
    RefusedCall {
        kernel: "arg_max",
        invalid: "`y` of 3 elements instead of 1",
        call: |device, x, _, z| device.arg_max(&Axis::new(1, 12, 1)?, x.view()?, z.view_mut()?),
    },
    RefusedCall {
        kernel: "dot",
        invalid: "operands of 12 and 11 elements",
        call: |device, x, y, _| device.dot(x.view()?, y.view()?).map(drop),
    },
];

/// Number of times that each call is refused.
const CALLS: usize = 20;

pub(super) fn alive_after_errors(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    let x = Operand::new(device, &[1.0f32; 12], Placement::WHOLE)?;
    let mut y = Operand::new(device, &[2.0f32; 11], Placement::CORNERS[1])?;
    let mut z = Operand::new(device, &[UNSET; 3], Placement::WHOLE)?;
    for RefusedCall { kernel, invalid, call } in REFUSED_CALLS {
        runner.start_step(format!("`synchronize` after refused calls of `{kernel}`"));
        for _ in 0..CALLS {
            let result = call(device, &x, &mut y, &mut z);
            expect_refused(result, &format!("{invalid} in `{kernel}`"))?;
        }
        let check = || {
            device.synchronize()?;
            x.unchanged("x")?;
            y.unchanged("y")?;
            z.unchanged("z")?;
            expect_usable(device)
        };
        check().map_err(|CaseFailure(reason)| {
            flaw!("after {CALLS} refused calls of `{kernel}` with {invalid}: {reason}")
        })?;
    }
    expect_refused(x.view()?.slice(7..13), "the range 7..13 of a view of 12 elements")
}

/// Fails unless a kernel still computes the right result after an error.
pub(super) fn expect_usable(device: &AnyDevice) -> Verdict {
    let check_axpy = || {
        let x = Operand::new(device, &[1.0f32, 2.0, 3.0], Placement::WHOLE)?;
        let mut y = Operand::new(device, &[1.0f32; 3], Placement::WHOLE)?;
        device.axpy(2.0, x.view()?, y.view_mut()?)?;
        expect_bits("y", &y.values()?, &[3.0, 5.0, 7.0])
    };
    check_axpy().map_err(|CaseFailure(reason)| {
        flaw!("`axpy` after an error: {reason}; if the check `axpy` fails, too, mend it first")
    })
}

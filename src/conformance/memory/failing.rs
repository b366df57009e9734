//! Kernels for checks of failures, and functions that check the errors of these kernels.

use crate::{
    conformance::{
        failure::{Verdict, flaw},
        operand::{Operand, Placement},
    },
    device::AnyDevice,
    error::{Error, Result},
    kernel::traits::*,
    memory::ledger::{EventKind, Ledger},
    op::Gemm,
};

/// Reason to skip a check of failures on a device that cannot inject failures.
pub(super) const NOT_INJECTED: &str = "the device does not implement `inject_failure`";

/// Kernel that reads `x` and updates `y`, both of which have four elements.
pub(super) struct Kernel {
    pub(super) name: &'static str,
    pub(super) call: fn(&AnyDevice, &Operand<f32>, &mut Operand<f32>) -> Result<()>,
    /// Value of every element of the result if all elements of `x` are 2 and all elements of `y`
    /// are 3.
    pub(super) result: f32,
}

const KERNELS: [Kernel; 3] = [
    Kernel { name: "scal", call: |device, _, y| device.scal(2.0, y.view_mut()?), result: 6.0 },
    Kernel {
        name: "axpy",
        call: |device, x, y| device.axpy(2.0, x.view()?, y.view_mut()?),
        result: 7.0,
    },
    Kernel {
        name: "gemm",
        call: |device, x, y| {
            device.gemm(&Gemm::new(2, 2, 2).beta(1.0), x.view()?, x.view()?, y.view_mut()?)
        },
        result: 11.0,
    },
];

/// Returns the first kernel of [`KERNELS`] that does not fall back to the host, if any.
pub(super) fn native_kernel(device: &AnyDevice) -> Verdict<Option<&'static Kernel>> {
    for kernel in &KERNELS {
        let (x, mut y) = (operand(device, 2.0)?, operand(device, 3.0)?);
        let ledger = Ledger::new();
        let guard = ledger.open();
        (kernel.call)(device, &x, &mut y)?;
        drop(guard);
        device.synchronize()?;
        if ledger.total(EventKind::Fallback).count == 0 {
            return Ok(Some(kernel));
        }
    }
    Ok(None)
}

pub(super) fn operand(queue: &AnyDevice, value: f32) -> Verdict<Operand<f32>> {
    let operand = Operand::new(queue, &[value; 4], Placement::WHOLE)?;
    queue.synchronize()?;
    Ok(operand)
}

/// Returns the error of a call that must report a failure.
pub(super) fn failed<R>(result: Result<R>, call: &str) -> Verdict<Error> {
    match result {
        Err(error) => Ok(error),
        Ok(_) => Err(flaw!("{call} did not return the error")),
    }
}

/// Fails unless the error message contains the kernel's name.
pub(super) fn expect_named(error: &Error, kernel: &Kernel) -> Verdict {
    match error.to_string().contains(kernel.name) {
        true => Ok(()),
        false => Err(flaw!("the error does not name the kernel `{}`: {error}", kernel.name)),
    }
}

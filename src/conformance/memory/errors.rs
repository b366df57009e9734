//! Failures: they are errors, change nothing, and leave a device that works.

use crate::{
    conformance::{
        runner::CheckRunner,
        compare::same,
        failure::{Verdict, flaw},
        operand::{Operand, Placement, UNSET},
    },
    device::Device,
    error::{Error, Result},
    memory::{Head, SyncedMemory},
    op::{Axis, Gemm, Reduce},
};

/// More than any address space holds, and no more than a slice may.
const ABSURD: usize = isize::MAX as usize / 2 / 4096 * 4096;

pub(super) fn out_of_memory<D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    for _ in 0..3 {
        ran_out(device.alloc(ABSURD).map(drop))?;
        ran_out(device.alloc_host(ABSURD).map(drop))?;
        let mut memory = SyncedMemory::new(device, ABSURD);
        ran_out(memory.device().map(drop))?;
        ran_out(memory.host().map(drop))?;
        ran_out(memory.device_write_only().map(drop))?;
        ran_out(memory.host_write_only().map(drop))?;
        if memory.head() != Head::Uninitialized {
            return Err(flaw!("the head is {:?} after failures alone", memory.head()));
        }
        works(device)?;
    }
    Ok(())
}

fn ran_out(result: Result<()>) -> Verdict {
    match result {
        Ok(()) => Err(flaw!("allocated {ABSURD} bytes")),
        Err(error) => match error.root() {
            Error::OutOfMemory { .. } | Error::Device { .. } => Ok(()),
            other => Err(flaw!("too large an allocation is another error: {other}")),
        },
    }
}

pub(super) fn alive_after_errors<D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    let x = Operand::input(device, &[1.0f32; 12], Placement::WHOLE)?;
    let mut y = Operand::output(device, &[2.0f32; 11], Placement::CORNERS[1])?;
    let mut z = Operand::output(device, &[UNSET; 3], Placement::WHOLE)?;
    let (product, axis) = (Gemm::<f32>::new(3, 4, 4), Axis::new(1, 12, 1)?);
    for _ in 0..20 {
        refused("axpy", device.axpy(1.0, x.view()?, y.view_mut()?))?;
        refused("gemm", device.gemm(&product, x.view()?, x.view()?, y.view_mut()?))?;
        refused("reduce", device.reduce(Reduce::Sum, &axis, x.view()?, y.view_mut()?))?;
        refused("arg_max", device.arg_max(&axis, x.view()?, z.view_mut()?))?;
        refused("dot", device.dot(x.view()?, y.view()?))?;
        refused("slice", x.view()?.slice(7..13))?;
    }
    device.synchronize()?;
    x.unchanged("x")?;
    y.unchanged("y")?;
    z.unchanged("z")?;
    works(device)
}

fn refused<R>(kernel: &str, result: Result<R>) -> Verdict {
    result.err().map(drop).ok_or_else(|| flaw!("`{kernel}` took operands that do not fit"))
}

/// A kernel gives what it should.
fn works<D: Device>(device: &D) -> Verdict {
    let x = Operand::input(device, &[1.0f32, 2.0, 3.0], Placement::WHOLE)?;
    let mut y = Operand::output(device, &[1.0f32; 3], Placement::WHOLE)?;
    device.axpy(2.0, x.view()?, y.view_mut()?)?;
    same("y after an error", &y.finish()?, &[3.0, 5.0, 7.0])
}

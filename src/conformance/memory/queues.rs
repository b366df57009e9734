//! Checks of queues: the order of queued work, and the lifetime of memory that queued work uses.

use crate::{
    conformance::{
        compare::expect_bits,
        failure::{Verdict, flaw},
        operand::{Operand, Placement},
        runner::CheckRunner,
    },
    device::AnyDevice,
    kernel::traits::*,
};

/// Number of elements of each operand in the checks of queues. A kernel on an operand of 2¹⁶
/// elements runs longer than the call that queues the kernel.
const LEN: usize = 1 << 16;

/// Number of kernel calls that a check queues in a row.
const CALLS: usize = 12;

/// Expected element after all kernel calls: 1 plus the sum of the indices of the calls.
const EXPECTED_SUM: f32 = 1.0 + (CALLS * (CALLS - 1) / 2) as f32;

pub(super) fn queues(runner: &CheckRunner<'_>) -> Verdict {
    runner.start_step("download of the result of kernels whose operands were dropped");
    drops_operands_in_flight(runner.device)?;
    runner.start_step("download on a forked queue that waits for kernels on the device's queue");
    downloads_after_kernels(runner.device)?;
    runner.start_step("download after uploads on a fork, with each queue ordered after the other");
    uploads_between_kernels(runner.device, Some(&runner.device.fork_queue()?))?;
    runner.start_step("`synchronize` after uploads between kernels");
    uploads_between_kernels(runner.device, None)
}

fn filled(device: &AnyDevice, value: f32) -> Verdict<Operand<f32>> {
    Ok(Operand::new(device, &vec![value; LEN], Placement::WHOLE)?)
}

/// Drops operands while queued kernels still read the operands, and allocates memory that must stay
/// zero.
fn drops_operands_in_flight(device: &AnyDevice) -> Verdict {
    let mut y = filled(device, 1.0)?;
    let mut new_buffers = Vec::new();
    for i in 0..CALLS {
        let x = filled(device, i as f32)?;
        device.axpy(1.0, x.view()?, y.view_mut()?)?;
        drop(x);
        new_buffers.push(device.alloc(size_of::<f32>() * LEN)?);
    }
    expect_bits("sum of dropped operands", &y.values()?, &vec![EXPECTED_SUM; LEN])?;
    let (mut got, zeros) = (vec![0xff; size_of::<f32>() * LEN], vec![0; size_of::<f32>() * LEN]);
    for buffer in new_buffers {
        device.download(&buffer, 0, &mut got)?;
        expect_bits("byte of memory allocated after operands were dropped", &got, &zeros)?;
    }
    Ok(())
}

/// Doubles an operand of ones `CALLS` times with queued kernels, and downloads the result on a queue
/// that is ordered after the kernels.
fn downloads_after_kernels(device: &AnyDevice) -> Verdict {
    let fork = device.fork_queue()?;
    if fork.name() != device.name() {
        return Err(flaw!("a fork of `{}` has the name `{}`", device.name(), fork.name()));
    }
    let mut y = filled(device, 1.0)?;
    for _ in 0..CALLS {
        device.scal(2.0, y.view_mut()?)?;
    }
    let slice = y.view()?.device()?;
    fork.order_after(device)?;
    let mut got = vec![0.0f32; LEN];
    fork.download(slice.buffer, slice.offset, crate::cast::cast_slice_mut(&mut got))?;
    expect_bits("element downloaded on another queue", &got, &vec![(1u32 << CALLS) as f32; LEN])
}

/// Uploads `x` between kernels that read `x`, either on the device's own queue or on a forked
/// queue. Uploads on the forked queue are ordered after earlier kernels and before later kernels.
fn uploads_between_kernels(device: &AnyDevice, fork: Option<&AnyDevice>) -> Verdict {
    let (mut x, mut y) = (filled(device, 1.0)?, filled(device, 1.0)?);
    for i in 0..CALLS {
        let values = vec![i as f32; LEN];
        let mut view = x.view_mut()?;
        let slice = view.device_write_only()?;
        fork.map_or(Ok(()), |fork| fork.order_after(device))?;
        let queue = fork.unwrap_or(device);
        queue.upload(crate::cast::cast_slice(&values), slice.buffer, slice.offset)?;
        fork.map_or(Ok(()), |fork| device.order_after(fork))?;
        device.axpy(1.0, x.view()?, y.view_mut()?)?;
    }
    if fork.is_none() {
        device.synchronize()?;
    }
    let name = if fork.is_some() { "sum of uploads on a fork" } else { "sum of uploads" };
    expect_bits(name, &y.values()?, &vec![EXPECTED_SUM; LEN])
}

//! Queues: what is ordered before what, and how long memory lives that queued work uses.

use crate::{
    conformance::{
        runner::CheckRunner,
        compare::same,
        failure::Verdict,
        operand::{Operand, Placement},
    },
    device::Device,
    memory::Memory,
};

/// Elements; enough that a kernel on them takes a device longer than it takes to call it.
const LEN: usize = 1 << 16;

/// Kernels in a row.
const CALLS: usize = 12;

pub(super) fn queues<D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    dropped_in_flight(bench.device)?;
    downloads_after(bench.device)?;
    computes_after(bench.device)?;
    uploads_after(bench.device)
}

fn ones<D: Memory>(device: &D) -> Verdict<Operand<f32, D>> {
    Ok(Operand::input(device, &vec![1.0f32; LEN], Placement::WHOLE)?)
}

/// Memory may be dropped while queued work uses it: that gets what it should, and leaves memory
/// allocated since then alone.
fn dropped_in_flight<D: Device>(device: &D) -> Verdict {
    let mut y = ones(device)?;
    let mut fresh = Vec::new();
    for i in 0..CALLS {
        let x = Operand::input(device, &vec![i as f32; LEN], Placement::WHOLE)?;
        device.axpy(1.0, x.view()?, y.view_mut()?)?;
        drop(x);
        fresh.push(device.alloc(size_of::<f32>() * LEN)?);
    }
    let sum = 1.0 + (0..CALLS).sum::<usize>() as f32;
    same("sum of dropped operands", &y.finish()?, &vec![sum; LEN])?;
    let (mut got, zeros) = (vec![0xff; size_of::<f32>() * LEN], vec![0; size_of::<f32>() * LEN]);
    for buffer in fresh {
        device.download(&buffer, 0, &mut got)?;
        same("byte of memory allocated since", &got, &zeros)?;
    }
    Ok(())
}

/// `2^CALLS`, by as many calls.
fn doubled<D: Device>(device: &D) -> Verdict<(Operand<f32, D>, Vec<f32>)> {
    let mut y = ones(device)?;
    for _ in 0..CALLS {
        device.scal(2.0, y.view_mut()?)?;
    }
    Ok((y, vec![(1u32 << CALLS) as f32; LEN]))
}

/// A copy on another queue sees what was computed before it was told to come after.
fn downloads_after<D: Device>(device: &D) -> Verdict {
    let fork = device.fork_queue()?;
    let (y, want) = doubled(device)?;
    let slice = y.view()?.device()?;
    fork.order_after(device)?;
    let mut got = vec![0.0f32; LEN];
    fork.download(slice.buffer, slice.offset, bytemuck::cast_slice_mut(&mut got))?;
    same("element downloaded on another queue", &got, &want)
}

/// A kernel sees what another queue uploaded before it was told to come after.
fn computes_after<D: Device>(device: &D) -> Verdict {
    let fork = device.fork_queue()?;
    let (mut x, mut y) = (ones(device)?, ones(device)?);
    for i in 0..CALLS {
        let values = vec![i as f32; LEN];
        let mut view = x.view_mut()?;
        let slice = view.device_write_only()?;
        fork.order_after(device)?;
        fork.upload(bytemuck::cast_slice(&values), slice.buffer, slice.offset)?;
        device.order_after(&fork)?;
        device.axpy(1.0, x.view()?, y.view_mut()?)?;
    }
    let sum = 1.0 + (0..CALLS).sum::<usize>() as f32;
    same("sum of what another queue uploaded", &y.finish()?, &vec![sum; LEN])
}

/// An upload waits for kernels that still read what it replaces, and `synchronize` for all.
fn uploads_after<D: Device>(device: &D) -> Verdict {
    let (mut x, mut y) = (ones(device)?, ones(device)?);
    for i in 0..CALLS {
        let values = vec![i as f32; LEN];
        let mut view = x.view_mut()?;
        let slice = view.device_write_only()?;
        device.upload(bytemuck::cast_slice(&values), slice.buffer, slice.offset)?;
        device.axpy(1.0, x.view()?, y.view_mut()?)?;
    }
    device.synchronize()?;
    let sum = 1.0 + (0..CALLS).sum::<usize>() as f32;
    same("sum of what was uploaded", &y.finish()?, &vec![sum; LEN])
}

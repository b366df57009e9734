//! Checks of freed memory: memory that a queue still uses, and memory that is allocated again.

use crate::{
    conformance::{
        compare::expect_bits,
        failure::{CaseFailure, Verdict, flaw},
        operand::{Operand, Placement},
        runner::CheckRunner,
    },
    device::AnyDevice,
    kernel::traits::*,
    memory::AnyBuffer,
};

/// Number of elements of an operand that is freed while a queue uses it.
const LEN: usize = 1 << 15;

/// Number of bytes of an operand or buffer that is freed while a queue uses it.
const BYTES: usize = size_of::<f32>() * LEN;

/// Number of times that memory is freed while a queue uses it.
const ROUNDS: usize = 4;

/// Number of kernels that a queue runs first, so that its use of the memory is still pending when
/// the memory is freed.
const DELAYS: usize = 8;

/// Nonzero byte that fills memory before it is freed.
const DIRTY: u8 = 0x5a;

/// Sizes, in bytes, of blocks that are freed and allocated again. Allocators treat blocks of a
/// page, of the size of a huge page, and of odd sizes differently.
const BLOCKS: [usize; 6] = [4096, 1 << 16, 1 << 18, 1 << 20, (1 << 20) + 12, 1 << 22];

pub(super) fn freed_in_flight(runner: &CheckRunner<'_>) -> Verdict {
    let (device, fork) = (runner.device, &runner.device.fork_queue()?);
    for (name, owner, user) in [
        ("memory that the device's queue allocated and uses", device, device),
        ("memory that the device's queue allocated and a fork uses", device, fork),
        ("memory that a fork allocated and the device's queue uses", fork, device),
    ] {
        runner.start_step(format!("waits after a free of {name}"));
        let in_case = |CaseFailure(reason)| flaw!("free of {name}: {reason}");
        frees_during_upload(owner, user).map_err(in_case)?;
        frees_during_kernel(owner, user, false).map_err(in_case)?;
        frees_during_kernel(owner, user, true).map_err(in_case)?;
    }
    Ok(())
}

fn delay_queue(queue: &AnyDevice) -> Verdict {
    let mut delay = Operand::new(queue, &[1.0f32; LEN], Placement::WHOLE)?;
    (0..DELAYS).try_for_each(|_| Ok(queue.scal(1.0, delay.view_mut()?)?))
}

/// Drops buffers of `owner` while an upload on the queue `user` is pending. The upload must not
/// change memory that `owner` allocates afterwards.
fn frees_during_upload(owner: &AnyDevice, user: &AnyDevice) -> Verdict {
    let mut new_buffers = Vec::new();
    for _ in 0..ROUNDS {
        let mut buffer = owner.alloc(BYTES)?;
        user.order_after(owner)?;
        delay_queue(user)?;
        user.upload(&[DIRTY; BYTES], &mut buffer, 0)?;
        drop(buffer);
        new_buffers.push(owner.alloc(BYTES)?);
    }
    owner.synchronize()?;
    user.synchronize()?;
    new_buffers.iter().try_for_each(|buffer| expect_zeros(owner, buffer, BYTES))
}

/// Drops operands of `owner` while a kernel that reads them is pending on the queue `user`, and
/// overwrites memory that `owner` allocates afterwards. With `uploads_again`, an upload to the
/// operand is pending, too, and runs after the kernel.
fn frees_during_kernel(owner: &AnyDevice, user: &AnyDevice, uploads_again: bool) -> Verdict {
    let mut y = Operand::new(user, &[1.0f32; LEN], Placement::WHOLE)?;
    let (mut sum, mut new_buffers) = (1.0, Vec::new());
    for round in 1..=ROUNDS {
        let mut x = Operand::new(owner, &[round as f32; LEN], Placement::WHOLE)?;
        user.order_after(owner)?;
        delay_queue(user)?;
        user.axpy(1.0, x.view()?, y.view_mut()?)?;
        sum += round as f32;
        if uploads_again {
            let mut view = x.view_mut()?;
            let slice = view.device_write_only()?;
            user.upload(&[0xff; BYTES], slice.buffer, slice.offset)?;
        }
        drop(x);
        let mut buffer = owner.alloc(BYTES)?;
        owner.upload(&[DIRTY; BYTES], &mut buffer, 0)?;
        owner.synchronize()?;
        new_buffers.push(buffer);
    }
    expect_bits("sum of the freed operands", &y.values()?, &vec![sum; LEN])?;
    user.synchronize()?;
    let mut got = vec![0; BYTES];
    for buffer in new_buffers {
        owner.download(&buffer, 0, &mut got)?;
        expect_bytes("byte of memory allocated after the operand was freed", &got, DIRTY)?;
    }
    Ok(())
}

pub(super) fn reused_memory(runner: &CheckRunner<'_>) -> Verdict {
    let (device, fork) = (runner.device, &runner.device.fork_queue()?);
    let queues = [("the device", device), ("a fork", fork)];
    for bytes in BLOCKS {
        runner.start_step(format!("downloads of new memory of {bytes} bytes"));
        for (writer_name, writer) in queues {
            for (reader_name, reader) in queues {
                dirty(writer, &[bytes])?;
                let zeros = expect_zeros(reader, &reader.alloc(bytes)?, bytes);
                zeros.map_err(|CaseFailure(reason)| {
                    flaw!(
                        "{bytes} bytes, written and freed by {writer_name}, allocated by \
                         {reader_name}: {reason}"
                    )
                })?;
            }
        }
    }
    runner.start_step(
        "downloads of new memory after frees of kernel outputs and of blocks of other sizes",
    );
    for queue in [device, fork] {
        let mut x = Operand::new(queue, &[1.0f32; LEN], Placement::WHOLE)?;
        queue.scal(2.0, x.view_mut()?)?;
        drop(x);
        let zeros = expect_zeros(queue, &queue.alloc(BYTES)?, BYTES);
        zeros.map_err(|CaseFailure(reason)| {
            flaw!("{BYTES} bytes, written by a kernel and freed: {reason}")
        })?;
    }
    let (small, large) = (1 << 20, 1 << 22);
    for (before, after) in [(vec![large], vec![small; 4]), (vec![small; 4], vec![large])] {
        dirty(device, &before)?;
        let buffers = after.iter().map(|&bytes| Ok((device.alloc(bytes)?, bytes)));
        for (buffer, bytes) in buffers.collect::<Verdict<Vec<_>>>()? {
            expect_zeros(device, &buffer, bytes).map_err(|CaseFailure(reason)| {
                flaw!("blocks of {after:?} bytes, after {before:?} bytes were freed: {reason}")
            })?;
        }
    }
    for bytes in [small, large] {
        for _ in 0..2 {
            let mut host = device.alloc_host(bytes)?;
            expect_bytes("byte of new host memory", &host, 0)?;
            host.fill(DIRTY);
        }
    }
    Ok(())
}

/// Allocates blocks on `queue`, fills them with bytes that are not zero, and frees them.
fn dirty(queue: &AnyDevice, blocks: &[usize]) -> Verdict {
    let mut buffers = Vec::new();
    for &bytes in blocks {
        let mut buffer = queue.alloc(bytes)?;
        queue.upload(&vec![DIRTY; bytes], &mut buffer, 0)?;
        buffers.push(buffer);
    }
    Ok(())
}

fn expect_zeros(queue: &AnyDevice, buffer: &AnyBuffer, bytes: usize) -> Verdict {
    let mut got = vec![0xff; bytes];
    queue.download(buffer, 0, &mut got)?;
    expect_bytes("byte of new memory", &got, 0)
}

/// Fails unless all bytes are `want`. Compares whole slices first, because a debug build compares
/// single bytes slowly.
fn expect_bytes(name: &str, got: &[u8], want: u8) -> Verdict {
    let want_bytes = vec![want; got.len()];
    if got == want_bytes { Ok(()) } else { expect_bits(name, got, &want_bytes) }
}

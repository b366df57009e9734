//! Check of the order of queues: repeated and alternating use of `order_after`, between any two
//! queues, and through a third queue.

use crate::{
    conformance::{
        compare::expect_bits,
        failure::{CaseFailure, Verdict, flaw},
        operand::{Operand, Placement},
        runner::CheckRunner,
    },
    device::AnyDevice,
    kernel::traits::*,
};

/// Number of elements of an operand.
const LEN: usize = 1 << 15;

/// Number of kernels that delay an upload. If a queue did not wait for the upload, it would run its
/// kernel before the upload.
const DELAYS: usize = 12;

/// Number of times that the check orders each queue of a pair after the other queue.
const ROUNDS: usize = 4;

pub(super) fn queue_order(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    let (first, second) = (device.fork_queue()?, device.fork_queue()?);
    let fork_of_fork = first.fork_queue()?;
    let [none, idle, busy] = [None, Some((&second, false)), Some((&second, true))];
    // The cases with an idle fork come first, because no work may ever have been queued on this
    // fork.
    let cases = [
        ("the device after a fork, through an idle fork", &first, idle, device),
        ("a fork after the device, through an idle fork", device, idle, &first),
        ("the device after a fork", &first, none, device),
        ("a fork after the device", device, none, &first),
        ("a fork after another fork", &first, none, &second),
        ("a fork after its parent fork", &first, none, &fork_of_fork),
        ("the device after a fork, through a busy fork", &first, busy, device),
    ];
    for (name, from, via, to) in cases {
        runner.start_step(format!("`order_after`: {name}"));
        adds_after_uploads(from, via, to)
            .map_err(|CaseFailure(reason)| flaw!("`order_after`, {name}: {reason}"))?;
    }
    runner.start_step("`order_after` of a queue and itself");
    for handle in [device, &first] {
        handle.order_after(handle)?;
        handle.order_after(&handle.clone())?;
    }
    runner.start_step("download from a queue that is ordered after a dropped fork");
    uploads_on_a_dropped_fork(device)
}

fn ones(queue: &AnyDevice) -> Verdict<Operand<f32>> {
    Ok(Operand::new(queue, &[1.0; LEN], Placement::WHOLE)?)
}

/// Uploads `x` after a delay on the queue `from`, and adds `x` to `y` on the queue `to`, which is
/// ordered after `from`, directly or through the queue `via`. The flag next to the queue in `via`
/// says whether the check queues a kernel on that queue.
fn adds_after_uploads(
    from: &AnyDevice,
    via: Option<(&AnyDevice, bool)>,
    to: &AnyDevice,
) -> Verdict {
    let (mut x, mut y, mut delay) = (ones(to)?, ones(to)?, ones(from)?);
    let mut sum = 1.0;
    for round in 1..=ROUNDS {
        // The upload of a round must wait for the addition of the previous round, which reads `x`.
        from.order_after(to)?;
        for _ in 0..DELAYS {
            from.scal(1.0, delay.view_mut()?)?;
        }
        sum += round as f32;
        let mut view = x.view_mut()?;
        let slice = view.device_write_only()?;
        let values = vec![round as f32; LEN];
        from.upload(crate::cast::cast_slice(&values), slice.buffer, slice.offset)?;
        if let Some((via, is_busy)) = via {
            via.order_after(from)?;
            if is_busy {
                via.scal(1.0, ones(via)?.view_mut()?)?;
            }
            to.order_after(via)?;
        } else {
            to.order_after(from)?;
        }
        to.axpy(1.0, x.view()?, y.view_mut()?)?;
    }
    from.order_after(to)?;
    expect_bits("sum of the uploads", &y.values()?, &vec![sum; LEN])
}

/// Checks that an upload takes place although the last handle of its queue is dropped, if another
/// queue was ordered after the upload.
fn uploads_on_a_dropped_fork(device: &AnyDevice) -> Verdict {
    let fork = device.fork_queue()?;
    let mut x = ones(device)?;
    let mut view = x.view_mut()?;
    let slice = view.device_write_only()?;
    fork.order_after(device)?;
    fork.upload(crate::cast::cast_slice(&[2.0f32; LEN]), slice.buffer, slice.offset)?;
    device.order_after(&fork)?;
    drop(fork);
    expect_bits("element uploaded on a dropped fork", &x.values()?, &[2.0; LEN])
}

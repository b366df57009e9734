//! Check of failures on one of several queues: which queue reports the failure, even if the handle
//! of the queue is dropped.

use super::{
    errors::expect_usable,
    failing::{Kernel, NOT_INJECTED, expect_named, failed, native_kernel, operand},
};
use crate::{
    conformance::{
        failure::{CaseFailure, Verdict, flaw},
        operand::Operand,
        runner::CheckRunner,
    },
    device::AnyDevice,
    error::{Error, Result},
    kernel::traits::*,
    memory::{AnyBuffer, FailureKind},
};

/// Number of rounds, each with a failure on one queue and a wait for another queue. If the queues
/// of a device run concurrently, a wait for the wrong queue may return the failure only in some
/// rounds.
const ROUNDS: usize = 9;

/// Number of ways in which [`Operands::wait`] can wait for a queue.
const WAITS: usize = 3;

/// Number of ways in which [`Operands::wait`] can wait for a queue without a kernel call.
const WAITS_WITHOUT_WORK: usize = 2;

/// Number of bytes of an upload that fails.
const BYTES: usize = 300;

/// Queued work that fails.
#[derive(Clone, Copy)]
enum Work {
    Kernel(&'static Kernel),
    Upload,
}

/// Whether the device injected a failure, and which call returns the error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failing {
    /// The device does not inject failures of this kind.
    NotInjected,
    /// The call that queues the work returned the error.
    AtOnce,
    /// The next wait for the queue must return the error.
    Queued,
}

/// Operands of queued work.
struct Operands {
    x: Operand<f32>,
    y: Operand<f32>,
    buffer: AnyBuffer,
}

impl Operands {
    fn new(owner: &AnyDevice) -> Verdict<Self> {
        let (x, y) = (operand(owner, 2.0)?, operand(owner, 3.0)?);
        let buffer = owner.alloc(BYTES)?;
        owner.synchronize()?;
        Ok(Self { x, y, buffer })
    }

    /// Waits for `queue` in one of [`WAITS`] ways, selected by `wait`.
    fn wait(&self, queue: &AnyDevice, wait: usize) -> Result<()> {
        match wait {
            0 => queue.synchronize(),
            1 => queue.download(&self.buffer, 0, &mut [0; BYTES]),
            _ => queue.asum(self.x.view()?).map(drop),
        }
    }
}

impl Work {
    /// Queues the work on `queue` with an injected failure. The caller must have waited for all
    /// queues.
    fn fail(self, queue: &AnyDevice, operands: &mut Operands) -> Failing {
        let kind = match self {
            Self::Kernel(_) => FailureKind::QueuedKernel,
            Self::Upload => FailureKind::QueuedUpload,
        };
        if !queue.inject_failure(kind) {
            return Failing::NotInjected;
        }
        let call_result = match self {
            Self::Kernel(kernel) => (kernel.call)(queue, &operands.x, &mut operands.y),
            Self::Upload => queue.upload(&[1; BYTES], &mut operands.buffer, 0),
        };
        if call_result.is_ok() { Failing::Queued } else { Failing::AtOnce }
    }

    fn expect_named(self, error: &Error) -> Verdict {
        match self {
            Self::Kernel(kernel) => expect_named(error, kernel),
            Self::Upload => Ok(()),
        }
    }
}

pub(super) fn queue_failures(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    let forks = [device.fork_queue()?, device.fork_queue()?];
    let kinds_of_work = native_kernel(device)?.map(Work::Kernel).into_iter().chain([Work::Upload]);
    let mut results = Vec::new();
    for work in kinds_of_work {
        for (name, queues) in [
            ("the device", [device, &forks[0], &forks[1]]),
            ("the first fork", [&forks[0], device, &forks[1]]),
            ("the second fork", [&forks[1], &forks[0], device]),
        ] {
            runner.start_step(format!("failure of queued work on {name}"));
            let in_case = |CaseFailure(reason)| flaw!("queued work of {name} failed: {reason}");
            results.push(FailingQueue { work, queues }.run().map_err(in_case)?);
        }
        for (name, ordered) in [("the device", device), ("a fork", &forks[0])] {
            runner.start_step(format!("failure on a dropped fork, after which {name} is ordered"));
            fails_on_a_dropped_fork(device, ordered, work).map_err(|CaseFailure(reason)| {
                flaw!(
                    "queued work of a dropped fork failed, and {name} is ordered after it: {reason}"
                )
            })?;
        }
    }
    if results.iter().all(|&result| result == Failing::NotInjected) {
        runner.skip(NOT_INJECTED.into());
    } else if !results.contains(&Failing::Queued) {
        runner
            .skip("every call returns its own failure, so no later wait returns a failure".into());
    }
    Ok(())
}

/// Work that fails on the first of three queues of a device.
struct FailingQueue<'d> {
    work: Work,
    queues: [&'d AnyDevice; 3],
}

impl FailingQueue<'_> {
    fn run(&self) -> Verdict<Failing> {
        let [_, second, third] = self.queues;
        let (failure, is_separate) = self.check_without_order(second)?;
        if failure == Failing::Queued && is_separate && self.check_without_order(third)?.1 {
            self.check_with_order()?;
        }
        self.queues.into_iter().try_for_each(expect_usable)?;
        Ok(failure)
    }

    /// Waits for all queues, and then queues the work on the first queue with an injected failure.
    fn fail(&self) -> Verdict<Failing> {
        let mut operands = Operands::new(self.queues[0])?;
        self.queues.into_iter().try_for_each(|queue| queue.synchronize())?;
        Ok(self.work.fail(self.queues[0], &mut operands))
    }

    /// Fails if a wait for `other` returns the failure of the first queue, although `other` is not
    /// ordered after the first queue. The flag in the result tells whether the two handles have
    /// separate queues. By default, the handle that `fork_queue` returns shares the queue of the
    /// device, so a wait for either handle returns the failure.
    fn check_without_order(&self, other: &AnyDevice) -> Verdict<(Failing, bool)> {
        let (mut is_separate, mut foreign_error) = (false, None);
        for round in 0..ROUNDS {
            let operands = Operands::new(other)?;
            let failure = self.fail()?;
            if failure != Failing::Queued {
                return Ok((failure, false));
            }
            // Only the failing queue has work, so the failure cannot affect work of the other
            // queue.
            let wait = round % WAITS_WITHOUT_WORK;
            match (operands.wait(other, wait), self.queues[0].synchronize()) {
                (Ok(()), Ok(())) => return Err(flaw!("no wait returned the failure")),
                (Ok(()), Err(_)) => is_separate = true,
                (Err(error), Ok(())) => foreign_error = Some(error),
                (Err(error), Err(_)) => {
                    return Err(flaw!("waits for two queues returned the same failure: {error}"));
                }
            }
        }
        match foreign_error {
            Some(error) if is_separate => Err(flaw!(
                "a wait for another queue, which is not ordered after the work, returned the \
                 failure: {error}; store the failure with its queue, not with the device"
            )),
            _ => Ok((Failing::Queued, is_separate)),
        }
    }

    /// Orders the second queue after the first queue and waits for the second queue. Fails unless a
    /// wait for the first queue still returns the failure, and a wait for the third queue does not.
    fn check_with_order(&self) -> Verdict {
        let [queue, ordered, unordered] = self.queues;
        if self.fail()? != Failing::Queued {
            return Ok(());
        }
        // A device may implement `order_after` as a wait for the queue `queue`. On such a device,
        // `order_after` returns the failure of `queue`.
        if ordered.order_after(queue).is_err() {
            return Ok(());
        }
        // A wait for the queue `ordered`, which is ordered after the failed work, may return the
        // failure, too.
        let _ = ordered.synchronize();
        unordered.synchronize().map_err(|error| {
            flaw!(
                "a wait for a third queue, which is not ordered after the work, returned the \
                 failure: {error}"
            )
        })?;
        let call = "`synchronize` of the queue, after a wait for a queue that is ordered after it,";
        failed(queue.synchronize(), call).map(drop)
    }
}

/// Fails unless a queue that is ordered after failed work of a dropped fork returns the failure.
fn fails_on_a_dropped_fork(device: &AnyDevice, ordered: &AnyDevice, work: Work) -> Verdict {
    for wait in 0..WAITS {
        let fork = device.fork_queue()?;
        let (mut operands, others) = (Operands::new(device)?, Operands::new(ordered)?);
        [device, ordered, &fork].into_iter().try_for_each(|queue| queue.synchronize())?;
        if work.fail(&fork, &mut operands) != Failing::Queued {
            return Ok(());
        }
        let order = ordered.order_after(&fork);
        drop(fork);
        let wait_result = order.and_then(|()| others.wait(ordered, wait));
        work.expect_named(&failed(
            wait_result,
            "the next wait for a queue that is ordered after a dropped fork",
        )?)?;
        for queue in [device, ordered] {
            let expect_no_failure = || {
                queue.synchronize()?;
                expect_usable(queue)
            };
            expect_no_failure().map_err(|CaseFailure(reason)| {
                flaw!(
                    "a wait for a queue returned the failure a second time, or a wait for a queue \
                     that is not ordered after the failed work returned it: {reason}; if the \
                     device uses a `BufferPool`, the driver's `order_after` must not pass on \
                     failures"
                )
            })?;
        }
    }
    Ok(())
}

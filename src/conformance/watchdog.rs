//! Watchdog of conformance checks: a check that makes no progress, for example because two queues
//! of the device wait for each other, fails instead of blocking the conformance kit.

use crate::{memory::ledger::LedgerContext, sync::Mutex};
use std::{
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// The step that a check is running, which the watchdog reads on another thread.
#[derive(Clone)]
pub(super) struct Progress(Arc<Mutex<Step>>);

struct Step {
    start: Instant,
    name: String,
}

impl Progress {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Step { start: Instant::now(), name: "start".into() })))
    }

    /// Starts the step `name` of the check.
    pub(super) fn start(&self, name: String) {
        *self.0.lock() = Step { start: Instant::now(), name };
    }

    /// Restarts the timer of the current step, because the step has made progress.
    pub(super) fn renew(&self) {
        self.0.lock().start = Instant::now();
    }

    /// Returns the time until the current step has run for `timeout`, or `None` if the step has
    /// already run for `timeout`.
    fn time_left(&self, timeout: Duration) -> Option<Duration> {
        timeout
            .checked_sub(self.0.lock().start.elapsed())
            .filter(|remaining_time| !remaining_time.is_zero())
    }
}

/// Runs `body` on a thread called `name`, in the ledger context of the calling thread, and returns
/// its result.
///
/// # Errors
/// Returns a message if a step of `body` runs longer than `timeout`. After a timeout, the thread
/// that runs `body` continues to run.
pub(super) fn watch<R: Send + 'static>(
    name: &str,
    timeout: Duration,
    body: impl FnOnce(&Progress) -> R + Send + 'static,
) -> Result<R, String> {
    let (progress, context) = (Progress::new(), LedgerContext::current());
    if cfg!(target_family = "wasm") {
        // On WebAssembly, the standard library cannot start a thread, so `body` runs on the calling
        // thread, without a timeout.
        return Ok(body(&progress));
    }
    let (sender, result) = channel();
    let observed_progress = progress.clone();
    let run = move || {
        let _context = context.enter();
        // Sending fails if the watchdog has returned an error, because no thread receives the
        // result.
        let _ = sender.send(body(&progress));
    };
    let spawn_result = thread::Builder::new().name(name.to_owned()).spawn(run);
    spawn_result.map_err(|error| format!("cannot start a thread: {error}"))?;
    loop {
        let remaining_time = observed_progress.time_left(timeout).unwrap_or_default();
        match result.recv_timeout(remaining_time) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => {
                return Err("the thread of the check ended without a result".into());
            }
            Err(RecvTimeoutError::Timeout) if observed_progress.time_left(timeout).is_some() => {}
            Err(RecvTimeoutError::Timeout) => {
                let step = observed_progress.0.lock().name.clone();
                return Err(format!(
                    "hangs: the check has waited for more than {timeout:?} in the step: {step}\n  \
                     a queue may wait for itself or for another queue, or a lock may be taken \
                     twice; CORTADO_TIMEOUT or `Kit::timeout` sets the time"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timeout of the tests, long enough that a slow thread on a busy machine does not count as
    /// hanging.
    const TIMEOUT: Duration = Duration::from_secs(1);

    #[test]
    fn a_body_that_makes_progress_may_run_longer_than_the_timeout() {
        let result = watch("slow", TIMEOUT, |progress| {
            for step in 0..4 {
                progress.start(step.to_string());
                thread::sleep(TIMEOUT / 4);
                progress.renew();
                thread::sleep(TIMEOUT / 4);
            }
            7
        });
        assert_eq!(result, Ok(7));
    }

    #[test]
    fn a_body_that_hangs_is_reported_with_its_step() {
        let result = watch("hanging", TIMEOUT, |progress| {
            progress.start("a wait without end".into());
            loop {
                thread::park();
            }
        });
        let message: String = result.map(|()| String::new()).unwrap_err();
        assert!(message.contains("more than 1s in the step: a wait without end"), "{message}");
    }
}

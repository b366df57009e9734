//! Worker threads of the data pipeline: joining, errors and panics.

use crate::{
    error::{Error, Result},
    memory::ledger::LedgerContext,
    sync::{
        Mutex,
        thread::{Builder, JoinHandle},
    },
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A thread handle that joins the thread when dropped. Before dropping the handle, the owner must
/// stop the thread; otherwise the drop may wait forever.
pub(super) struct JoinOnDrop(Option<JoinHandle<()>>);

impl JoinOnDrop {
    /// Starts a thread that runs `body` in the ledger context of the calling thread.
    pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<Self> {
        let context = LedgerContext::current();
        let handle = Builder::new().name(name.into()).spawn(move || {
            let _context = context.enter();
            body();
        });
        let thread = handle.map_err(|error| {
            Error::invalid_input("data_param", format!("cannot start a thread: {error}"))
        })?;
        Ok(Self(Some(thread)))
    }
}

impl Drop for JoinOnDrop {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // The thread's body catches panics, so the result of `join` is always `Ok`.
            let _ = thread.join();
        }
    }
}

/// The error that ended a worker thread; empty if there is no error, or after a caller has taken
/// the error.
///
/// Dropping a `WorkerError` logs an error that no caller has taken, so that the log shows a failing
/// device or file even if the net never requested the failed batch.
pub(super) struct WorkerError(Mutex<Option<Error>>);

impl WorkerError {
    pub(super) fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn set(&self, error: Error) {
        *self.0.lock() = Some(error);
    }

    pub(super) fn take(&self) -> Option<Error> {
        self.0.lock().take()
    }
}

impl Drop for WorkerError {
    fn drop(&mut self) {
        if let Some(error) = self.take() {
            log::warn!("{error} (while prefetching data that was not used)");
        }
    }
}

pub(super) fn catch_panic<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::InvalidData(format!("panicked: {}", text.unwrap_or("without a message"))))
    })
}

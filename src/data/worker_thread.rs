//! Threads that end with their owner.

use crate::{
    error::{Error, Result},
    sync::{
        Mutex,
        thread::{Builder, JoinHandle},
    },
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A thread that is waited for when this is dropped; its owner tells it before that it may end.
pub(super) struct JoinOnDrop(Option<JoinHandle<()>>);

impl JoinOnDrop {
    pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<Self> {
        let spawned = Builder::new().name(name.into()).spawn(body);
        let thread = spawned.map_err(|error| {
            Error::invalid_input("data_param", format!("starting a thread: {error}"))
        })?;
        Ok(Self(Some(thread)))
    }
}

impl Drop for JoinOnDrop {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // Its panics were caught.
            let _ = thread.join();
        }
    }
}

/// What ended a thread that works ahead, until somebody asks for it. What nobody has asked for when
/// this is dropped is told to the log: a failing device or file is worth a word even to those who
/// did not get as far.
pub(super) struct WorkerError(Mutex<Option<Error>>);

impl WorkerError {
    /// None so far.
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
            log::warn!("{error} (read ahead, and not used)");
        }
    }
}

/// Does `work`, whose panic becomes an error.
pub(super) fn catch_panic<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::InvalidData(format!("panicked: {}", text.unwrap_or("with no message"))))
    })
}

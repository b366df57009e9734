//! Test utilities: a source that fails or is slow, and a logger that records warnings.

use super::{record::Record, source::Source};
use crate::{error::Result, sync::Mutex};
use log::{LevelFilter, Log, Metadata, set_logger, set_max_level};
use std::{
    sync::{Arc, LazyLock, Weak},
    thread,
    time::{Duration, Instant},
};

/// The time after which a waiting test fails.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// The warnings that all tests of this process logged.
struct RecordingLogger(Mutex<Vec<String>>);

static LOGGER: LazyLock<RecordingLogger> =
    LazyLock::new(|| RecordingLogger(Mutex::new(Vec::new())));

impl Log for RecordingLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().push(record.args().to_string());
    }
    fn flush(&self) {}
}

pub(super) fn record_warnings() {
    // `set_logger` fails if another test has already set the logger.
    let _ = set_logger(&*LOGGER);
    set_max_level(LevelFilter::Warn);
}

/// Returns the recorded warnings that contain `text`.
pub(super) fn warnings(text: &str) -> Vec<String> {
    LOGGER.0.lock().iter().filter(|line| line.contains(text)).cloned().collect()
}

/// Waits until `done` returns true. Panics with `message` if the wait exceeds [`TIMEOUT`].
pub(super) fn wait_until(done: impl Fn() -> bool, message: &str) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < TIMEOUT, "{message}");
        thread::yield_now();
    }
}

pub(super) type Fault = fn(&mut Record) -> Result<()>;

/// A source whose record i has the values i and i + 0.5 and the label 2i, for i below `count`. For
/// each record from `fault_at` on, the source calls `fault`, which changes the record, fails,
/// panics or is slow.
pub(super) struct Numbers {
    count: u64,
    next: u64,
    fault_at: u64,
    fault: Fault,
    alive: Arc<()>,
}

impl Numbers {
    pub(super) fn new(count: u64) -> Self {
        Self::failing(count, u64::MAX, |_| Ok(()))
    }

    pub(super) fn failing(count: u64, fault_at: u64, fault: Fault) -> Self {
        Self { count, next: 0, fault_at, fault, alive: Arc::new(()) }
    }

    /// Returns a weak reference that expires when the reader thread drops the source.
    pub(super) fn watch(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }
}

/// A fault that delays reading and causes no error.
pub(super) fn slow(_: &mut Record) -> Result<()> {
    thread::sleep(Duration::from_millis(20));
    Ok(())
}

/// A fault that gives the record a different shape.
pub(super) fn reshape(record: &mut Record) -> Result<()> {
    record.floats_mut([1, 2, 2]).map(|_| ())
}

impl Source for Numbers {
    fn describe(&self) -> String {
        "numbers".into()
    }
    fn records(&self) -> Option<u64> {
        Some(self.count)
    }
    fn read(&mut self, record: &mut Record) -> Result<()> {
        let i = self.next % self.count;
        record.floats_mut([1, 1, 2])?.copy_from_slice(&[i as f32, i as f32 + 0.5]);
        record.set_label(2 * i as i32);
        self.next += 1;
        if self.next > self.fault_at { (self.fault)(record) } else { Ok(()) }
    }
}

//! A source for tests, in which things go wrong.

use super::{Record, Source};
use crate::error::Result;
use log::{LevelFilter, Log, Metadata, set_logger, set_max_level};
use parking_lot::Mutex;
use std::{
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

/// What all tests of this process together told the log.
struct Told(Mutex<Vec<String>>);

static TOLD: Told = Told(Mutex::new(Vec::new()));

impl Log for Told {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().push(record.args().to_string());
    }
    fn flush(&self) {}
}

/// Listens to warnings from now on.
pub(super) fn listen() {
    // The second time it is set already.
    let _ = set_logger(&TOLD);
    set_max_level(LevelFilter::Warn);
}

/// Those heard so far that have `words` in them.
pub(super) fn heard(words: &str) -> Vec<String> {
    TOLD.0.lock().iter().filter(|line| line.contains(words)).cloned().collect()
}

pub(super) type Mishap = fn(&mut Record) -> Result<()>;

/// Record i of `count` has the values i and i + 0.5 and the label 2i; what goes wrong from record
/// `at` on is up to `mishap`.
pub(super) struct Numbers {
    pub(super) count: u64,
    pub(super) next: u64,
    pub(super) at: u64,
    pub(super) mishap: Mishap,
    alive: Arc<()>,
}

impl Numbers {
    pub(super) fn new(count: u64) -> Self {
        Self { count, next: 0, at: u64::MAX, mishap: |_| Ok(()), alive: Arc::new(()) }
    }

    pub(super) fn failing(count: u64, at: u64, mishap: Mishap) -> Self {
        Self { at, mishap, ..Self::new(count) }
    }

    /// Tells whether the source, and so the thread that reads it, is gone.
    pub(super) fn watch(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }
}

/// A mishap that takes its time and does no harm.
pub(super) fn slow(_: &mut Record) -> Result<()> {
    thread::sleep(Duration::from_millis(20));
    Ok(())
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
        if self.next > self.at { (self.mishap)(record) } else { Ok(()) }
    }
}

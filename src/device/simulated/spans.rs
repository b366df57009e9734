//! Recording of the times at which a queue runs its work.

use crate::{
    memory::{DeviceSpan, DeviceWork},
    sync::Mutex,
};
use std::{mem, time::Instant};

/// The recorded spans of a queue; `None` if the queue does not record.
#[derive(Default)]
pub(super) struct Spans(Mutex<Option<Recording>>);

struct Recording {
    start: Instant,
    spans: Vec<DeviceSpan>,
}

impl Spans {
    /// Starts a new recording if `on` is true, and otherwise ends the recording.
    pub(super) fn record(&self, on: bool) {
        *self.0.lock() = on.then(|| Recording { start: Instant::now(), spans: Vec::new() });
    }

    /// Returns the recorded spans, and removes them from the recording.
    pub(super) fn take(&self) -> Vec<DeviceSpan> {
        self.0.lock().as_mut().map_or_else(Vec::new, |recording| mem::take(&mut recording.spans))
    }

    /// Runs `body`. If the queue records, stores the time span of `body` as a span of the kind
    /// `work`.
    pub(super) fn measure<R>(&self, work: DeviceWork, body: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = body();
        if let Some(recording) = &mut *self.0.lock() {
            let (start, duration) = (start - recording.start, start.elapsed());
            recording.spans.push(DeviceSpan { work, start, duration });
        }
        result
    }
}

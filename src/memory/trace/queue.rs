//! Rows of a trace for device queues.

use super::recorder::{QueueRecorder, Trace};
use crate::{error::Result, memory::memory_trait::Memory};

impl Trace {
    /// Makes the queue of `device` a row of the trace, and starts to record the spans that the
    /// device measures. Returns whether the device can measure spans. Forked queues, such as those
    /// that upload batches, do not record spans. Recording slows the queue down.
    ///
    /// A solver collects the spans after each iteration. Other programs must call
    /// [`collect`](Self::collect) regularly, so that the device's memory for spans stays bounded,
    /// and [`end_queues`](Self::end_queues) at the end.
    ///
    /// # Errors
    /// Returns any error from [`Memory::record_spans`].
    pub fn record_queue<D: Memory>(&self, device: &D) -> Result<bool> {
        if !device.record_spans(true)? {
            return Ok(false);
        }
        let (spans, recording) = (device.clone(), device.clone());
        self.add_queue(QueueRecorder {
            name: format!("queue of {}", device.name()),
            take_spans: Box::new(move || spans.take_spans()),
            end: Box::new(move || recording.record_spans(false).map(drop)),
        });
        Ok(true)
    }
}

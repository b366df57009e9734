//! Recording of the times at which the GPU executes the work of a queue, by CUDA events.

use super::{error::CudaFailure, event::Event};
use crate::{
    error::{Error, Result},
    memory::{DeviceSpan, DeviceWork},
    sync::Mutex,
};
use cust::sys::CUstream;
use std::{
    mem,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

/// The recorded spans of a queue. While the queue does not record, the overhead per launch or
/// transfer is one relaxed atomic load.
#[derive(Default)]
pub(super) struct Spans {
    is_recording: AtomicBool,
    recording: Mutex<Option<Recording>>,
}

struct Recording {
    /// An event, and its time since the start of the recording. The driver returns times as `f32`,
    /// which cannot represent long times precisely, so each call of `take` sets a new origin.
    origin: (Event, Duration),
    /// Recorded work, with an event before and an event after the work.
    spans: Vec<(DeviceWork, Event, Event)>,
}

impl Spans {
    /// Starts a new recording of the stream if `on` is true, and otherwise ends the recording. The
    /// stream's context must be current.
    pub(super) fn record(&self, stream: CUstream, on: bool) -> Result<(), CudaFailure> {
        let mut recording = self.recording.lock();
        *recording = match on {
            true => {
                let origin = Event::timed()?;
                origin.record(stream)?;
                Some(Recording { origin: (origin, Duration::ZERO), spans: Vec::new() })
            }
            false => None,
        };
        self.is_recording.store(on, Relaxed);
        Ok(())
    }

    /// Returns whether the queue records.
    pub(super) fn is_recording(&self) -> bool {
        self.is_recording.load(Relaxed)
    }

    /// Calls `enqueue`, which queues work on the stream. Records the work's span if the queue
    /// records spans. If the driver cannot record the span, returns the error that `error` makes of
    /// the driver's failure. The stream's context must be current.
    pub(super) fn measure(
        &self,
        stream: CUstream,
        work: impl FnOnce() -> DeviceWork,
        enqueue: impl FnOnce() -> Result<()>,
        error: impl Fn(CudaFailure) -> Error,
    ) -> Result<()> {
        // Hold the lock for the whole call, so that no other thread queues work between the start
        // event and the end event.
        let mut recording = self.recording.lock();
        let Some(Recording { spans, .. }) = &mut *recording else { return enqueue() };
        let (start, end) = Event::timed()
            .and_then(|start| {
                start.record(stream)?;
                Ok((start, Event::timed()?))
            })
            .map_err(&error)?;
        enqueue()?;
        end.record(stream).map_err(error)?;
        spans.push((work(), start, end));
        Ok(())
    }

    /// Returns the recorded spans, and removes them from the recording. The stream must have been
    /// synchronized, and its context must be current.
    pub(super) fn take(&self) -> Result<Vec<DeviceSpan>, CudaFailure> {
        let mut recording = self.recording.lock();
        let Some(Recording { origin, spans }) = &mut *recording else { return Ok(Vec::new()) };
        let measured = mem::take(spans);
        let mut spans = Vec::with_capacity(measured.len());
        for (work, start, end) in &measured {
            let (origin, origin_time) = origin;
            let start_time = *origin_time + origin.elapsed_until(start)?;
            spans.push(DeviceSpan {
                work: *work,
                start: start_time,
                duration: start.elapsed_until(end)?,
            });
        }
        if let (Some(last), Some((_, _, end))) = (spans.last(), measured.into_iter().last()) {
            *origin = (end, last.start + last.duration);
        }
        Ok(spans)
    }
}

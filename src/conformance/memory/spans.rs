//! Check of recorded spans: the list of launches and transfers, and their times.

use crate::{
    conformance::{
        failure::{CaseFailure, Verdict, flaw},
        operand::{Operand, Placement},
        runner::CheckRunner,
    },
    device::AnyDevice,
    kernel::traits::*,
    memory::{
        DeviceSpan, DeviceWork,
        ledger::{EventKind, Ledger},
    },
};
use std::time::{Duration, Instant};

/// Number of calls of the kernel `scal` in a recording.
const CALLS: usize = 3;

/// Numbers of elements of the operands of `scal`.
const LENGTHS: [usize; 2] = [1, 1 << 20];

/// Numbers of bytes of the transfers.
const BYTES: [usize; 2] = [16, 16 << 20];

/// Largest permitted error of a time, because devices may measure times as `f32` in milliseconds.
const RESOLUTION: Duration = Duration::from_micros(1);

pub(super) fn spans(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    runner.start_step("`record_spans`");
    if !device.record_spans(true)? {
        runner.skip("the device does not implement `record_spans`".into());
        return expect_none(device, "although the device cannot record");
    }
    device.record_spans(false)?;
    let has_kernel = has_native_kernel(device)?;
    let mut works = [Work::new(device, 0)?, Work::new(device, 1)?];
    device.synchronize()?;
    runner.start_step("spans of kernels and transfers");
    let start = Instant::now();
    if !device.record_spans(true)? {
        return Err(flaw!("`record_spans` returned true and then false"));
    }
    let [mut small, mut large] = [Duration::ZERO; 2].map(|shortest| (shortest, shortest));
    let mut previous_end = Duration::ZERO;
    for (work, shortest) in works.iter_mut().zip([&mut small, &mut large]) {
        work.queue(device, has_kernel)?;
        let spans = device.take_spans()?;
        let limits = previous_end..start.elapsed();
        previous_end = check_times(&spans, limits).map_err(|flaw| with_spans(flaw, &spans))?;
        *shortest = check_work(&spans, work.bytes.len(), has_kernel)
            .map_err(|flaw| with_spans(flaw, &spans))?;
        expect_none(device, "although `take_spans` has returned all spans")?;
    }
    let names = ["upload", "kernel call"];
    for (name, (small, large)) in names.into_iter().zip([(small.0, large.0), (small.1, large.1)]) {
        if small >= large && (name == "upload" || has_kernel) {
            return Err(flaw!(
                "the shortest {name} with few elements took {small:?}, and with many {large:?}"
            ));
        }
    }
    runner.start_step("spans of a forked queue");
    let fork = device.fork_queue()?;
    works[0].queue(&fork, false)?;
    expect_none(&fork, "on a fork of a queue that records")?;
    expect_none(device, "of the work on a fork")?;
    runner.start_step("spans after the end of the recording");
    works[0].queue(device, has_kernel)?;
    device.record_spans(false)?;
    works[0].queue(device, has_kernel)?;
    expect_none(device, "after the end of the recording")
}

/// Returns whether the device runs `scal` itself.
fn has_native_kernel(device: &AnyDevice) -> Verdict<bool> {
    let mut x = Operand::new(device, &[1.0f32], Placement::WHOLE)?;
    let ledger = Ledger::new();
    let guard = ledger.open();
    device.scal(1.0, x.view_mut()?)?;
    drop(guard);
    device.synchronize()?;
    Ok(ledger.total(EventKind::Fallback).count == 0)
}

/// An upload, kernels and a download.
struct Work {
    x: Operand<f32>,
    buffer: crate::memory::AnyBuffer,
    bytes: Vec<u8>,
}

impl Work {
    fn new(device: &AnyDevice, size: usize) -> Verdict<Self> {
        let x = Operand::new(device, &vec![1.0; LENGTHS[size]], Placement::WHOLE)?;
        let (buffer, bytes) = (device.alloc(BYTES[size])?, vec![1; BYTES[size]]);
        Ok(Self { x, buffer, bytes })
    }

    fn queue(&mut self, queue: &AnyDevice, has_kernel: bool) -> Verdict {
        queue.upload(&self.bytes, &mut self.buffer, 0)?;
        for _ in 0..if has_kernel { CALLS } else { 0 } {
            queue.scal(1.0, self.x.view_mut()?)?;
        }
        Ok(queue.download(&self.buffer, 0, &mut self.bytes)?)
    }
}

/// Checks that the spans follow each other within `limits`, and returns the end of the last span.
fn check_times(spans: &[DeviceSpan], limits: std::ops::Range<Duration>) -> Verdict<Duration> {
    let mut end = limits.start;
    for (i, span) in spans.iter().enumerate() {
        if span.start + RESOLUTION < end {
            return Err(flaw!("span {i} starts at {:?}, before the end {end:?}", span.start));
        }
        end = span.start.saturating_add(span.duration);
    }
    if end > limits.end + RESOLUTION {
        return Err(flaw!("the last span ends at {end:?}, after `take_spans` at {:?}", limits.end));
    }
    Ok(end)
}

/// Checks that the spans are those of [`Work`] with transfers of `bytes` bytes. Returns the
/// durations of the shortest upload and of the shortest kernel.
fn check_work(
    spans: &[DeviceSpan],
    bytes: usize,
    has_kernel: bool,
) -> Verdict<(Duration, Duration)> {
    let (mut moved, mut launches, mut steps) = ([0, 0], 0, Vec::new());
    let [mut upload, mut kernel] = [Duration::MAX; 2];
    for span in spans {
        steps.push(match span.work {
            DeviceWork::Upload { bytes } => {
                moved[0] += bytes;
                upload = upload.min(span.duration);
                0
            }
            DeviceWork::Kernel { call, .. } => {
                if call.name != "scal" || call.site.file() != file!() {
                    return Err(flaw!("unexpected kernel call: {call}"));
                }
                launches += 1;
                kernel = kernel.min(span.duration);
                1
            }
            DeviceWork::Download { bytes } => {
                moved[1] += bytes;
                2
            }
        });
    }
    if moved != [bytes; 2] {
        return Err(flaw!("found spans of {moved:?} transferred bytes, expected {bytes} each"));
    }
    let calls = if has_kernel { CALLS } else { 0 };
    let is_complete =
        if calls == 0 { launches == 0 } else { launches > 0 && launches % calls == 0 };
    if !is_complete {
        return Err(flaw!("found spans of {launches} launches, expected a multiple of {calls}"));
    }
    if !steps.is_sorted() {
        return Err(flaw!("the spans are not in the order of the work"));
    }
    Ok((upload, kernel))
}

fn expect_none(queue: &AnyDevice, when: &str) -> Verdict {
    match queue.take_spans()?.len() {
        0 => Ok(()),
        count => Err(flaw!("`take_spans` returned {count} spans {when}")),
    }
}

fn with_spans(CaseFailure(reason): CaseFailure, spans: &[DeviceSpan]) -> CaseFailure {
    flaw!("{reason}; spans: {spans:?}")
}

//! The flags `--trace` and `--trace-limit`, which record a timeline of a subcommand.

use super::processes::Processes;
use clap::Args;
use cortado::{
    communicator::all_gather,
    error::Result,
    memory::Memory,
    trace::{Trace, TraceGuard, TraceOptions},
};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Command-line flags that record a timeline.
#[derive(Args)]
pub(super) struct TraceArgs {
    /// Write a timeline of layers, kernels, transfers, waits and threads to FILE, for
    /// ui.perfetto.dev or chrome://tracing. In a run with several processes, process 1 writes to
    /// FILE with .1 before its extension, process 2 with .2, and so on
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Largest number of spans in the timeline; later spans are counted and dropped
    #[arg(long, value_name = "N", requires = "trace", default_value_t = TraceOptions::default().max_spans)]
    trace_limit: usize,
}

/// The recording of a timeline, or nothing without the flag `--trace`.
pub(super) struct TraceRecording(Option<(PathBuf, Trace, TraceGuard)>);

impl TraceArgs {
    /// Starts the recording on the calling thread. `processes` are the processes of the run, which
    /// must all have the flag `--trace` or all lack it.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(super) fn start(&self, processes: Option<&mut Processes>) -> Result<TraceRecording> {
        let Some(path) = &self.trace else { return Ok(TraceRecording(None)) };
        let (rank, origin) = match processes {
            Some(processes) => (processes.rank(), common_origin(processes)?),
            None => (0, None),
        };
        let trace = Trace::with_options(TraceOptions { max_spans: self.trace_limit, rank, origin });
        let path = path_of_process(path, rank);
        // Write the file now, so that an unwritable path is an error before training and not after
        // hours of training. A pipe receives only the final timeline, because its reader expects
        // one document.
        if fs::metadata(&path).map_or(true, |found| found.is_file()) {
            trace.write(&path)?;
        }
        let guard = trace.open();
        Ok(TraceRecording(Some((path, trace, guard))))
    }
}

impl TraceRecording {
    /// Returns whether a timeline is recorded.
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a row with the times that the queue of `device` measures.
    pub(super) fn record_queue<D: Memory>(&self, device: &D) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |(_, trace, _)| trace.record_queue(device).map(drop))
    }

    /// Moves the times that the device has measured so far to the timeline.
    pub(super) fn collect(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |(_, trace, _)| trace.collect())
    }

    /// Writes the file, even if `outcome`, the outcome of the subcommand, is an error. Returns the
    /// error in `outcome`, or else the first error of the timeline.
    pub(super) fn finish(self, outcome: Result<()>) -> Result<()> {
        let Some((path, trace, guard)) = self.0 else { return outcome };
        drop(guard);
        let ended = trace.end_queues();
        let written = trace.write(&path).map(|()| report(&path, &trace));
        match (&outcome, &written) {
            (Err(_), Err(error)) => log::warn!("--trace: {error}"),
            _ => return outcome.and(ended).and(written),
        }
        outcome
    }
}

fn report(path: &Path, trace: &Trace) {
    let (spans, dropped) = (trace.span_count(), trace.dropped());
    log::info!("Wrote {spans} spans to {}; open it with ui.perfetto.dev", path.display());
    if dropped > 0 {
        log::warn!(
            "--trace: the timeline lacks {dropped} later spans; raise --trace-limit, which was {}",
            trace.max_spans()
        );
    }
}

/// Returns the common origin of the timelines of all processes: the earliest time at which one of
/// the processes calls `common_origin`. Returns `None` in a run with one process.
fn common_origin(processes: &mut Processes) -> Result<Option<SystemTime>> {
    let Some(communicator) = processes.communicator() else { return Ok(None) };
    let since_epoch = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let nanoseconds = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
    let times = all_gather(communicator, &nanoseconds.to_le_bytes())?;
    let times = times.iter().filter_map(|time| time.first_chunk().copied());
    let earliest = times.map(u64::from_le_bytes).min();
    Ok(earliest.map(|time| SystemTime::UNIX_EPOCH + Duration::from_nanos(time)))
}

/// Returns the path of the timeline of the process with rank `rank`: process 1 writes `out.1.json`
/// instead of `out.json`.
fn path_of_process(path: &Path, rank: usize) -> PathBuf {
    match path.extension() {
        _ if rank == 0 => path.to_owned(),
        Some(extension) => path.with_extension(format!("{rank}.{}", extension.display())),
        None => path.with_extension(rank.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_writes_its_own_file() {
        let paths = |path: &str| [0, 12].map(|rank| path_of_process(Path::new(path), rank));
        assert_eq!(paths("runs/a.json"), [Path::new("runs/a.json"), Path::new("runs/a.12.json")]);
        assert_eq!(paths("b"), [Path::new("b"), Path::new("b.12")]);
    }
}

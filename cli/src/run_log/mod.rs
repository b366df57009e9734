//! Files that record a training run, as JSON Lines and as a plot.

mod chart;
mod curves;
mod json_lines;
mod outputs;
mod plot;

use super::suffix::check_svg;
use clap::Args;
use cortado::{
    error::{Error, Result},
    solver::{Event, Solver},
};
use json_lines::JsonLines;
use plot::Plot;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// The flags `--log-json` and `--plot` of `cortado train`.
#[derive(Args)]
pub(super) struct RunLogArgs {
    /// Log events to this file as JSON Lines, or to standard output if the file is -
    ///
    /// Each object has `event` (start, display, diverged, test, snapshot or end), `iteration` (the
    /// number of updates so far) and `seconds` (since the start). A `display` object also has
    /// `loss`, `rate`, `iterations_per_second`, `waited` and `outputs`. `waited` is the number of
    /// seconds that the net waited for data since the last `display` object, or null if the net
    /// reads no data. `outputs` holds a number per output name, or an array for an output with
    /// several elements. A `test` object also has `net` and `outputs`; a `snapshot` object has
    /// `model` and `state`. A `diverged` object has `layer` and `blob`, the location of the first
    /// NaN or infinite value, and `loss` as text. In every other field, a value that is not finite
    /// is written as null. With --snapshot, training appends to an existing log file.
    #[arg(long, value_name = "FILE")]
    log_json: Option<PathBuf>,
    /// Plot losses and scores as an SVG image, redrawn at each test, at each snapshot and at the
    /// end
    ///
    /// With --snapshot, training continues the curves of an existing plot.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// First error that occurs while writing the log or the plot, reported at the end of training.
pub(super) struct RunLogError(Arc<Mutex<Option<Error>>>);

impl RunLogArgs {
    /// Creates the JSON Lines log and the plot, or continues the existing files if `resume` is
    /// true.
    pub(super) fn start(&self, solver: &mut Solver<f32>, resume: bool) -> Result<RunLogError> {
        let failure = RunLogError(Arc::default());
        // Check the plot's path first, because opening the log empties an existing log.
        if let Some(path) = &self.plot {
            check_svg(path)?;
            if path.as_os_str() == "-" {
                let reason = "--plot: cannot redraw the plot on standard output; pass a file";
                return Err(Error::InvalidData(reason.into()));
            }
        }
        if let Some(path) = &self.log_json {
            let mut json_lines = JsonLines::open(path, resume)?;
            failure.observe(solver, move |event| json_lines.record(event));
        }
        if let Some(path) = &self.plot {
            let mut plot = Plot::open(path, resume, solver.param().display() > 0)?;
            failure.observe(solver, move |event| plot.record(event));
        }
        Ok(failure)
    }
}

impl RunLogError {
    /// Passes the solver's events to the function `record`. After `record` has failed once,
    /// training continues without further calls to `record`.
    fn observe(
        &self,
        solver: &mut Solver<f32>,
        mut record: impl FnMut(&Event<'_>) -> Result<()> + Send + 'static,
    ) {
        let (first_error, mut enabled) = (Arc::clone(&self.0), true);
        solver.add_observer(move |event| {
            if enabled && let Err(error) = record(event) {
                log::warn!("{error}; training continues without this file");
                first_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                enabled = false;
            }
        });
    }

    /// Returns the first error that occurred while writing the log or the plot, if any.
    pub(super) fn result(self) -> Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

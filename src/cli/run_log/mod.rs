//! Files in which a training run tells of itself.

mod chart;
mod curves;
mod json_lines;
mod plot;

use crate::{
    device::Device,
    error::{Error, Result},
    solver::{Event, Score, Solver},
};
use clap::Args;
use json_lines::JsonLines;
use parking_lot::Mutex;
use plot::Plot;
use std::{path::PathBuf, sync::Arc};

/// Which files.
#[derive(Args)]
pub(super) struct RunLogArgs {
    /// Writes what happens to this file as JSON, one object a line
    ///
    /// The member `event` is start, display, test, snapshot or end, `iteration` the updates made
    /// before, `seconds` the time since the start. Displays have `loss`, `rate`,
    /// `iterations_per_second`, `waited` (seconds since the last one in which the net waited for
    /// data; null if it reads none) and `outputs`, which are numbers by name, arrays where there
    /// are several; tests `net` and `outputs`; snapshots `model` and `state`. What is not finite
    /// is null. With --snapshot, lines are added to those that are there.
    #[arg(long, value_name = "FILE")]
    log_json: Option<PathBuf>,
    /// Draws the curves of losses and scores, anew at each test and snapshot and at the end
    ///
    /// With --snapshot, the curves in the file are gone on with.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// Why a file was given up, once training is over.
pub(super) struct RunLogError(Arc<Mutex<Option<Error>>>);

impl RunLogArgs {
    /// Starts the files, or goes on with them if training does.
    pub(super) fn start<D: Device>(
        &self,
        solver: &mut Solver<f32, D>,
        goes_on: bool,
    ) -> Result<RunLogError> {
        let failure = RunLogError(Arc::default());
        if let Some(path) = &self.log_json {
            let mut journal = JsonLines::open(path, goes_on)?;
            failure.observe(solver, move |event| journal.tell(event));
        }
        if let Some(path) = &self.plot {
            let mut plot = Plot::open(path, goes_on, solver.param().display() > 0)?;
            failure.observe(solver, move |event| plot.tell(event));
        }
        Ok(failure)
    }
}

impl RunLogError {
    /// Training is worth more than what is told of it, and goes on without a file that fails.
    fn observe<D: Device>(
        &self,
        solver: &mut Solver<f32, D>,
        mut tell: impl FnMut(&Event<'_>) -> Result<()> + Send + 'static,
    ) {
        let (first, mut works) = (Arc::clone(&self.0), true);
        solver.add_observer(move |event| {
            if works && let Err(error) = tell(event) {
                log::warn!("{error}; training goes on without it");
                first.lock().get_or_insert(error);
                works = false;
            }
        });
    }

    /// The first of them, if any.
    pub(super) fn result(self) -> Result<()> {
        self.0.lock().take().map_or(Ok(()), Err)
    }
}

/// Outputs by name, in their order: all elements of each, and its weight in the objective.
fn by_name(scores: &[Score]) -> Vec<(&str, Vec<f64>, f32)> {
    let mut outputs: Vec<(&str, Vec<f64>, f32)> = Vec::new();
    for Score { name, value, loss_weight } in scores {
        match outputs.last_mut() {
            Some((last, values, _)) if last == name => values.push(*value),
            _ => outputs.push((name, vec![*value], *loss_weight)),
        }
    }
    outputs
}

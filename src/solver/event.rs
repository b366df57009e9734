//! Events that a solver reports, and actions that a callback requests from it.

use super::score::Score;
use std::{path::Path, time::Duration};

/// An event of a solver. The field `iteration` is the number of updates made so far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Training starts.
    Started {
        /// Name of the net.
        net: &'a str,
        /// Name of the learning rate policy.
        policy: &'a str,
        /// Iteration at which training starts.
        iteration: usize,
        /// Iteration at which training will end.
        end: usize,
    },
    /// The gradients of an iteration are computed; the update follows.
    Iterated {
        /// Updates made so far.
        iteration: usize,
        /// Objective, averaged over `iter_size` batches.
        loss: f64,
        /// Mean of the last `average_loss` objectives.
        smoothed: f64,
        /// Learning rate of the next update.
        rate: f64,
        /// Total time that the train net has waited for data; `None` if it reads none.
        waited: Option<Duration>,
    },
    /// Like [`Event::Iterated`], but every `display` iterations and with the net's outputs.
    Displayed {
        /// Updates made so far.
        iteration: usize,
        /// Objective, averaged over `average_loss` iterations.
        loss: f64,
        /// Learning rate of the next update.
        rate: f64,
        /// Outputs of the train net.
        outputs: &'a [Score],
        /// Iterations since the last display.
        passed: usize,
        /// Seconds since the last display.
        seconds: f64,
        /// Part of `seconds` in which the net waited for data; `None` if it reads none.
        waited: Option<f64>,
        /// Iterations between displays.
        display: usize,
    },
    /// Mean magnitude of a blob of a layer. With `debug_info`, reported in displayed iterations and
    /// in tests.
    Traced {
        /// Name of the layer.
        layer: &'a str,
        /// Kind of the blob.
        what: TracedBlob,
        /// Name of the blob. For a parameter, its shared name or its index.
        name: &'a str,
        /// Mean of the absolute values.
        mean: f64,
    },
    /// Norms of all parameters and their gradients, after a backward pass with
    /// [`Traced`](Self::Traced) events.
    Norms {
        /// L1 norms of the values and of the gradients.
        l1: [f64; 2],
        /// L2 norms of the values and of the gradients.
        l2: [f64; 2],
    },
    /// The norm of the gradient exceeded `clip_gradients`.
    Clipped {
        /// Updates made so far.
        iteration: usize,
        /// L2 norm of the gradient, which is the sum over `iter_size` batches.
        norm: f64,
        /// Norm after clipping: `clip_gradients`.
        limit: f64,
        /// Factor that scales the gradient: `limit / norm`.
        scale: f64,
    },
    /// A test starts.
    Testing {
        /// Updates made so far.
        iteration: usize,
        /// Index of the test net.
        net: usize,
    },
    /// A test has ended.
    Tested {
        /// Updates made so far.
        iteration: usize,
        /// Index of the test net.
        net: usize,
        /// Means of the outputs.
        outputs: &'a [Score],
        /// Mean of the objective if `test_compute_loss` is set.
        loss: Option<f64>,
    },
    /// [`Action::Stop`] ended a test early.
    Interrupted {
        /// Updates made so far.
        iteration: usize,
        /// Index of the test net.
        net: usize,
    },
    /// A snapshot was written.
    Snapshot {
        /// Updates made so far.
        iteration: usize,
        /// File of the weights.
        model: &'a Path,
        /// File of the solver's state.
        state: &'a Path,
    },
    /// Training ends.
    Finished {
        /// Updates made.
        iteration: usize,
        /// Mean of the last `average_loss` objectives, including that of one further batch;
        /// `None` unless a display is due at the end.
        loss: Option<f64>,
        /// Whether [`Action::Stop`] ended training early.
        early: bool,
    },
}

/// Kind of a traced blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TracedBlob {
    /// Values of a top, after the forward pass.
    Top,
    /// Values of a parameter, after the forward pass.
    Param,
    /// Gradient of a bottom, after the backward pass.
    BottomDiff,
    /// Gradient of a parameter, after the backward pass.
    ParamDiff,
}

/// The solver's next action. A callback returns it after each iteration and before each test batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "SolverAction")]
pub enum Action {
    /// Continue.
    Continue,
    /// Write a snapshot and continue.
    Snapshot,
    /// Stop. [`Solver::solve`](super::Solver::solve) still writes the snapshot after training.
    Stop,
}

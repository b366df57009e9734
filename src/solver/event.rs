//! What a solver tells its observers, and what it is told.

use super::Score;
use std::{path::Path, time::Duration};

/// What happened. Iterations count the updates made before.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Training starts.
    Started {
        /// Name of the net.
        net: &'a str,
        /// Name of the learning rate's policy.
        policy: &'a str,
        /// Where it starts.
        iteration: usize,
        /// Where it is to end.
        end: usize,
    },
    /// An iteration's gradients are computed.
    Iterated {
        /// Updates made before.
        iteration: usize,
        /// Objective, the mean over `iter_size` batches.
        loss: f64,
        /// Mean of the last `average_loss` objectives.
        smoothed: f64,
        /// Learning rate of the update to come.
        rate: f64,
        /// How long the train net has waited for data so far; `None` if it reads none.
        waited: Option<Duration>,
    },
    /// As [`Event::Iterated`], every `display` iterations, with the net's outputs.
    Displayed {
        /// Updates made before.
        iteration: usize,
        /// Objective, averaged over `average_loss` iterations.
        loss: f64,
        /// Learning rate of the update to come.
        rate: f64,
        /// The train net's outputs.
        outputs: &'a [Score],
        /// Iterations since the last display.
        passed: usize,
        /// Seconds since the last display.
        seconds: f64,
        /// Seconds of these in which the net waited for data; `None` if it reads none.
        waited: Option<f64>,
        /// Iterations from one display to the next.
        display: usize,
    },
    /// Mean magnitude of what a layer computed: with `debug_info`, in iterations that are
    /// displayed and in tests.
    Traced {
        /// Name of the layer.
        layer: &'a str,
        /// Which of its blobs.
        what: TracedBlob,
        /// Name of the blob; of a parameter the name by which it is shared, or its place.
        name: &'a str,
        /// Mean of the absolute values.
        mean: f64,
    },
    /// Norms of all parameters and their gradients, after a backward pass that was
    /// [`Traced`](Self::Traced).
    Norms {
        /// Sums of the absolute values: of the values, of the gradients.
        l1: [f64; 2],
        /// Euclidean norms, alike.
        l2: [f64; 2],
    },
    /// The gradient was longer than `clip_gradients`.
    Clipped {
        /// Updates made before.
        iteration: usize,
        /// Euclidean norm of the gradient, of `iter_size` batches together.
        norm: f64,
        /// What it is cut to.
        limit: f64,
        /// The gradient's factor.
        scale: f64,
    },
    /// A test starts.
    Testing {
        /// Updates made before.
        iteration: usize,
        /// Which test net.
        net: usize,
    },
    /// A test is done.
    Tested {
        /// Updates made before.
        iteration: usize,
        /// Which test net.
        net: usize,
        /// Means of its outputs.
        outputs: &'a [Score],
        /// Mean of its objective, if `test_compute_loss` asks for it.
        loss: Option<f64>,
    },
    /// A request stopped a test.
    Interrupted {
        /// Updates made before.
        iteration: usize,
        /// Which test net.
        net: usize,
    },
    /// A snapshot was written.
    Snapshot {
        /// Updates made before.
        iteration: usize,
        /// The weights.
        model: &'a Path,
        /// The solver's state.
        state: &'a Path,
    },
    /// Training ends.
    Finished {
        /// Updates made.
        iteration: usize,
        /// Mean of the last `average_loss` objectives, with one more batch's, if a display falls
        /// due at the end.
        loss: Option<f64>,
        /// Whether a request ended it early.
        early: bool,
    },
}

/// Which of a layer's blobs.
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

/// What a solver is asked to do after an iteration or before a batch of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "SolverAction")]
pub enum Action {
    /// Go on.
    Continue,
    /// Write a snapshot and go on.
    Snapshot,
    /// Stop; a snapshot is written as after training.
    Stop,
}

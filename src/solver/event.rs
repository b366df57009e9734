//! What a solver tells its observers, and what it is told.

use std::path::Path;

/// An element of a net's output.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The output's name.
    pub name: String,
    /// Its value, or the mean over a test.
    pub value: f64,
    /// The output's weight in the objective; 0 if it has none.
    pub loss_weight: f32,
}

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
        /// Objective, averaged over `average_loss` iterations.
        loss: f64,
        /// Learning rate of the update to come.
        rate: f64,
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
        /// Iterations from one display to the next.
        display: usize,
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
    /// A snapshot was written.
    Snapshot {
        /// The weights.
        model: &'a Path,
        /// The solver's state.
        state: &'a Path,
    },
    /// Training ends.
    Finished {
        /// Updates made.
        iteration: usize,
        /// Objective of one more batch, if a display falls due at the end.
        loss: Option<f64>,
        /// Whether a request ended it early.
        early: bool,
    },
}

/// What a solver is asked to do after an iteration.
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

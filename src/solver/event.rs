//! Events that a solver reports, and actions that a callback requests from the solver.

use super::score::Score;
use std::{path::Path, time::Duration};

/// An event that a solver reports to its observers.
///
/// In the following code, `text` is the definition from the example of [`Solver`](super::Solver).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text, solver::Event};
/// use std::sync::mpsc;
///
/// # let text = r#"base_lr: 0.5 lr_policy: "fixed" snapshot_after_train: false
/// #     net_param {
/// #       layer { type: "DummyData" top: "x" top: "t"
/// #         dummy_data_param { shape { dim: 1 dim: 1 } data_filler { value: 1 } } }
/// #       layer { type: "InnerProduct" bottom: "x" top: "y"
/// #         inner_product_param { num_output: 1 bias_term: false } }
/// #       layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } }"#;
/// let mut solver = Solver::<f32>::new(parse_text(text, "solver")?, &CpuDevice::new())?;
/// let (sender, losses) = mpsc::channel();
/// solver.add_observer(move |event| {
///     if let Event::Iterated { loss, .. } = event {
///         sender.send(*loss).unwrap();
///     }
/// });
/// solver.step(3)?;
/// assert_eq!(losses.try_iter().collect::<Vec<_>>(), [0.5, 0.125, 0.03125]);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Training starts.
    Started {
        /// The name of the train net.
        net: &'a str,
        /// The name of the learning rate policy.
        policy: &'a str,
        /// The iteration at which training starts.
        iteration: usize,
        /// The iteration at which training will end, which is `max_iter`.
        end: usize,
    },
    /// The solver has computed the gradients of an iteration and is about to update the weights.
    Iterated {
        /// The number of updates made so far.
        iteration: usize,
        /// The objective of the iteration, averaged over `iter_size` batches and over all shards.
        loss: f64,
        /// The mean objective of the last `average_loss` iterations.
        smoothed: f64,
        /// The learning rate of the next update.
        rate: f64,
        /// The total time for which the train net has waited for data; `None` if the net reads no
        /// data.
        waited: Option<Duration>,
        /// The total time for which the solver has waited for other processes; `None` in a run with
        /// one process.
        waited_for_processes: Option<Duration>,
    },
    /// Like [`Event::Iterated`], but with the net's outputs. The solver reports this event only
    /// every `display` iterations.
    Displayed {
        /// The number of updates made so far.
        iteration: usize,
        /// The objective, averaged over the last `average_loss` iterations.
        loss: f64,
        /// The learning rate of the next update.
        rate: f64,
        /// The outputs of the train net, averaged over all shards.
        outputs: &'a [Score],
        /// The number of iterations since the previous `Displayed` event.
        passed: usize,
        /// The number of seconds since the previous `Displayed` event.
        seconds: f64,
        /// The part of `seconds` for which the train net waited for data; `None` if the net reads
        /// no data.
        waited: Option<f64>,
        /// The part of `seconds` for which the solver waited for other processes; `None` in a run
        /// with one process.
        waited_for_processes: Option<f64>,
        /// The number of seconds for which the solver's communication thread exchanged data with
        /// other processes since the previous `Displayed` event; `None` in a run with one process.
        /// The solver computes during exchanges, and waits only for exchanges that have not ended
        /// when it needs the result. Computation therefore hides `exchanged` minus
        /// `waited_for_processes`.
        exchanged: Option<f64>,
        /// The number of iterations between two `Displayed` events.
        display: usize,
    },
    /// The solver has computed the mean absolute value of the elements of a layer's blob. With
    /// `debug_info`, the solver reports a `Traced` event in displayed iterations and in tests.
    Traced {
        /// The name of the layer to which the traced blob belongs.
        layer: &'a str,
        /// The kind of the traced blob: top, parameter or gradient.
        what: TracedBlob,
        /// The name of the traced blob. For an unnamed parameter, and for the gradient of any
        /// parameter, the name is the index of the parameter in the layer.
        name: &'a str,
        /// The mean of the absolute values of the traced blob's elements.
        mean: f64,
    },
    /// The solver has computed the L1 and L2 norms of the parameters and of their gradients, after
    /// a backward pass with [`Traced`](Self::Traced) events.
    Norms {
        /// The L1 norm over all parameter values, and the L1 norm over all gradients.
        l1: [f64; 2],
        /// The L2 norm over all parameter values, and the L2 norm over all gradients.
        l2: [f64; 2],
    },
    /// The solver has clipped the gradient, whose L2 norm exceeded `clip_gradients`.
    Clipped {
        /// The number of updates made so far.
        iteration: usize,
        /// The L2 norm of the gradient before clipping. The gradient is the sum over `iter_size`
        /// batches, averaged over all shards.
        norm: f64,
        /// The L2 norm of the gradient after clipping, which is `clip_gradients`.
        limit: f64,
        /// The factor by which clipping scales the gradient: `limit / norm`.
        scale: f64,
    },
    /// The objective of an iteration, or a weight before a snapshot, is NaN or infinite. A solver
    /// that continues after this event reports `Diverged` again only after a finite objective.
    Diverged {
        /// The number of updates made so far.
        iteration: usize,
        /// The objective; `None` if the solver found a NaN or infinite weight before a snapshot.
        loss: Option<f64>,
        /// The first NaN or infinite value, in the order of the layers: the name of the layer,
        /// whether the value is in a parameter or in a top, and the index of the parameter or the
        /// name of the top. `None` if only the objective is NaN or infinite.
        first: Option<(&'a str, TracedBlob, &'a str)>,
        /// The shard to whose train net `first` belongs.
        shard: usize,
    },
    /// The solver starts to test a test net.
    Testing {
        /// The number of updates made so far.
        iteration: usize,
        /// The index of the test net.
        net: usize,
    },
    /// The solver has finished the test of a test net.
    Tested {
        /// The number of updates made so far.
        iteration: usize,
        /// The index of the test net.
        net: usize,
        /// The outputs of the test net, averaged over the batches of the test.
        outputs: &'a [Score],
        /// The objective, averaged over the batches of the test; `None` unless `test_compute_loss`
        /// is set.
        loss: Option<f64>,
    },
    /// [`Action::Stop`] has ended the test of a test net early.
    Interrupted {
        /// The number of updates made so far.
        iteration: usize,
        /// The index of the test net.
        net: usize,
    },
    /// The solver has written a snapshot.
    Snapshot {
        /// The number of updates made so far.
        iteration: usize,
        /// The path of the snapshot's weights file.
        model: &'a Path,
        /// The path of the snapshot's solver state file.
        state: &'a Path,
    },
    /// Training ends.
    Finished {
        /// The total number of updates made.
        iteration: usize,
        /// The mean of the last `average_loss` objectives, which include the objective of one
        /// forward pass after the last update. The field `loss` is `None` after [`Action::Stop`],
        /// and if `display` does not divide the number of updates.
        loss: Option<f64>,
        /// Whether [`Action::Stop`] ended training early.
        early: bool,
    },
}

/// The kind of a blob in an [`Event::Traced`].
///
/// In the following code, `text` is the definition from the example of [`Solver`](super::Solver),
/// with `debug_info` added.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text, solver::{Event, TracedBlob}};
///
/// # let text = r#"base_lr: 0.5 lr_policy: "fixed" snapshot_after_train: false
/// #     debug_info: true display: 1
/// #     net_param {
/// #       layer { type: "DummyData" top: "x" top: "t"
/// #         dummy_data_param { shape { dim: 1 dim: 1 } data_filler { value: 1 } } }
/// #       layer { type: "InnerProduct" bottom: "x" top: "y"
/// #         inner_product_param { num_output: 1 bias_term: false } }
/// #       layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } }"#;
/// let mut solver = Solver::<f32>::new(parse_text(text, "solver")?, &CpuDevice::new())?;
/// let (sender, means) = std::sync::mpsc::channel();
/// solver.add_observer(move |event| match event {
///     Event::Traced { what: TracedBlob::ParamDiff, mean, .. } => sender.send(*mean).unwrap(),
///     _ => {}
/// });
/// solver.step(1)?;
/// assert_eq!(means.recv(), Ok(1.0));
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TracedBlob {
    /// The values of a top, after the forward pass.
    Top,
    /// The values of a parameter, after the forward pass.
    Param,
    /// The gradient of a bottom, after the backward pass.
    BottomDiff,
    /// The gradient of a parameter, after the backward pass.
    ParamDiff,
}

/// An action that a callback requests from the solver. The solver calls the callback after each
/// iteration and before each test batch.
///
/// In the following code, `text` is the definition from the example of [`Solver`](super::Solver).
///
/// ```
/// use cortado::{prelude::*, proto::parse_text, solver::Action};
///
/// # let text = r#"base_lr: 0.5 lr_policy: "fixed" snapshot_after_train: false max_iter: 1000
/// #     net_param {
/// #       layer { type: "DummyData" top: "x" top: "t"
/// #         dummy_data_param { shape { dim: 1 dim: 1 } data_filler { value: 1 } } }
/// #       layer { type: "InnerProduct" bottom: "x" top: "y"
/// #         inner_product_param { num_output: 1 bias_term: false } }
/// #       layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } }"#;
/// let mut solver = Solver::<f32>::new(parse_text(text, "solver")?, &CpuDevice::new())?;
/// let mut remaining_iterations = 3;
/// solver.set_action_function(move || {
///     remaining_iterations -= 1;
///     if remaining_iterations == 0 { Action::Stop } else { Action::Continue }
/// });
/// solver.solve()?;
/// assert_eq!(solver.iteration(), 3);
/// # Ok::<(), cortado::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "SolverAction")]
pub enum Action {
    /// Continues training or the current test.
    Continue,
    /// Writes a snapshot and continues training or the current test.
    Snapshot,
    /// Ends training or the current test. [`Solver::solve`](super::Solver::solve) still writes the
    /// snapshot after training, unless `snapshot_after_train` is `false`.
    Stop,
}

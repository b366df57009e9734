//! The state of a solver: nets, method, iteration and observers.

use super::{
    event::{Action, Event},
    lr_policy::LrPolicy,
    method::Method,
    nets::Nets,
    on_nan::OnNan,
    param_state::ParamState,
    processes::Processes,
    shard_range::ShardRange,
};
use crate::{
    element::Element,
    net::Net,
    op::Regularization,
    proto::{NetRunState, SolverParameter},
};
use std::time::{Duration, Instant};

type Observer = Box<dyn FnMut(&Event<'_>) + Send>;

#[derive(Default)]
pub(super) struct Observers(Vec<Observer>);

impl Observers {
    pub(super) fn notify(&mut self, event: &Event<'_>) {
        self.0.iter_mut().for_each(|observer| observer(event));
    }
}

type ActionFunction = Box<dyn FnMut() -> Action + Send>;

/// A solver, which trains a net.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"base_lr: 0.5 lr_policy: "fixed" snapshot_after_train: false
///     net_param {
///       layer { type: "DummyData" top: "x" top: "t"
///         dummy_data_param { shape { dim: 1 dim: 1 } data_filler { value: 1 } } }
///       layer { type: "InnerProduct" bottom: "x" top: "y"
///         inner_product_param { num_output: 1 bias_term: false } }
///       layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } }"#;
/// let mut solver = Solver::<f32>::new(parse_text(text, "solver")?, &CpuDevice::new())?;
/// solver.step(2)?; // the loss is (w − 1)² / 2
/// assert_eq!(solver.net().params()[0].blob().to_vec()?, [0.75]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct Solver<T: Element> {
    pub(super) param: SolverParameter,
    pub(super) lr_policy: LrPolicy,
    pub(super) regularization: Regularization,
    pub(super) nets: Nets<T>,
    pub(super) processes: Processes,
    pub(super) shards: ShardRange,
    pub(super) allow_other_shards: bool,
    pub(super) method: Box<dyn Method<T>>,
    pub(super) state: ParamState<T>,
    pub(super) iteration: usize,
    pub(super) observers: Observers,
    pub(super) action_function: ActionFunction,
    pub(super) last_display: LastDisplay,
    pub(super) on_nan: OnNan,
    /// Whether a warning about divergence has been logged since the last finite objective.
    pub(super) warned: bool,
    /// Whether writing the last snapshot failed.
    pub(super) snapshot_failed: bool,
    /// The states of the test nets before the tests of the current iteration, until these tests are
    /// complete; otherwise `None`.
    pub(super) states_before_tests: Option<Vec<NetRunState>>,
    /// Whether an [`Action::Stop`] has ended training or the current test.
    pub(super) stopped: bool,
}

/// The iteration and time of the last [`Event::Displayed`], or of the start of training.
#[derive(Clone, Copy)]
pub(super) struct LastDisplay {
    pub(super) time: Instant,
    pub(super) iteration: usize,
    pub(super) data_wait: Duration,
    pub(super) process_wait: Duration,
    pub(super) exchange_time: Duration,
}

impl<T: Element> Solver<T> {
    /// Returns the solver's definition.
    pub fn param(&self) -> &SolverParameter {
        &self.param
    }

    /// Returns the solver's train net; in a run with several shards, that of the first shard of this
    /// process.
    pub fn net(&self) -> &Net<T> {
        &self.nets.train
    }

    /// Returns mutable access to the train net, for copying weights or writing inputs. In a run with
    /// several processes, every process makes the same changes to the weights.
    /// [`shard_nets_mut`](Self::shard_nets_mut) returns the train nets of all shards of this process.
    pub fn net_mut(&mut self) -> &mut Net<T> {
        &mut self.nets.train
    }

    /// Returns the solver's test nets.
    pub fn test_nets(&self) -> impl ExactSizeIterator<Item = &Net<T>> {
        self.nets.tests.iter().map(|test| &test.net)
    }

    /// Returns the number of solver updates made.
    #[doc(alias = "iter")]
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// Returns the learning rate of the next solver update.
    #[doc(alias = "GetLearningRate")]
    pub fn learning_rate(&self) -> f64 {
        self.lr_policy.rate_at(self.iteration)
    }

    /// Adds an observer, which the solver calls for every later event. The observer must be `Send`,
    /// so an observer that collects values writes to an `Arc<Mutex<_>>` or to a channel.
    pub fn add_observer(&mut self, observer: impl FnMut(&Event<'_>) + Send + 'static) {
        self.observers.0.push(Box::new(observer));
    }

    /// Sets the function that the solver calls after each iteration and before each test batch. The
    /// solver performs the [`Action`] that the function returns.
    #[doc(alias = "SetActionFunction")]
    pub fn set_action_function(&mut self, function: impl FnMut() -> Action + Send + 'static) {
        self.action_function = Box::new(function);
    }
}

//! Solvers: the training loop.
//!
//! A [`Solver`] owns a train net, test nets that share its weights, and the state of its
//! [`Method`]. It prints nothing: what happens is told to observers as [`Event`]s.
//!
//! ```
//! use cortado::{CpuDevice, Solver, proto, solver::Event};
//!
//! let text = r#"
//!     type: "Adam" base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 max_iter: 20
//!     test_iter: 2 test_interval: 10 snapshot_after_train: false random_seed: 1
//!     net_param {
//!       layer { name: "data" type: "Data" top: "data" top: "label"
//!         data_param { source: "digits:train?count=64&seed=1" batch_size: 16 }
//!         transform_param { scale: 0.00390625 } }
//!       layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
//!         inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
//!       layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
//!     }"#;
//! let mut solver = Solver::<f32, _>::new(proto::parse_text(text, "text")?, &CpuDevice::new())?;
//! solver.observe(|event| {
//!     if let Event::Tested { iteration, outputs, .. } = event {
//!         println!("after {iteration} updates: {} {}", outputs[0].name, outputs[0].value);
//!     }
//! });
//! solver.step(5)?; // as many updates as one likes, with the tests and snapshots that fall due
//! let before = solver.net_mut().forward()?;
//! solver.solve()?; // the rest
//! assert!(solver.net_mut().forward()? < before);
//! # Ok::<(), cortado::Error>(())
//! ```

mod builder;
mod event;
mod method;
mod nets;
mod lr_policy;
mod registry;
mod score;
mod smoothed_loss;
mod snapshot;
mod param_state;
mod debug_info;
mod train;
mod update;

pub use builder::{SolverBuilder, read_definition};
pub use event::{Action, Event, TracedBlob};
pub use method::{LearnableParam, Method, UpdateParams};
pub use lr_policy::LrPolicy;
pub use registry::MethodRegistry;
pub use score::{Score, mean_scores};

use crate::{
    device::Device, element::Element, error::Result, net::Net, op::Regularization,
    proto::SolverParameter,
};
use nets::Nets;
use param_state::ParamState;
use std::{
    path::Path,
    time::{Duration, Instant},
};

type Observer = Box<dyn FnMut(&Event<'_>) + Send>;
type Request = Box<dyn FnMut() -> Action + Send>;

/// Trains a net.
pub struct Solver<T: Element, D: Device> {
    param: SolverParameter,
    rates: LrPolicy,
    regularization: Regularization,
    nets: Nets<T, D>,
    method: Box<dyn Method<T, D>>,
    state: ParamState<T, D>,
    /// Updates made.
    iteration: usize,
    observers: Vec<Observer>,
    request: Request,
    /// Where it stood when progress was last shown.
    shown: Shown,
    stopped: bool,
}

/// How far training was at some time.
#[derive(Clone, Copy)]
struct Shown {
    at: Instant,
    iteration: usize,
    /// How long the train net had waited for data.
    waited: Duration,
}

impl<T: Element, D: Device> Solver<T, D> {
    /// Starts building a solver on `device`, with layers, sources or methods of one's own.
    pub fn builder(device: &D) -> SolverBuilder<T, D> {
        SolverBuilder::new(device)
    }

    /// Reads a solver's definition from a text file. Files it names are relative to the current
    /// folder; without a `snapshot_prefix`, snapshots go beside the file, under its name.
    ///
    /// # Errors
    /// Those of [`SolverBuilder::from_file`].
    pub fn from_file(path: impl AsRef<Path>, device: &D) -> Result<Self> {
        Self::builder(device).from_file(path)
    }

    /// Builds the nets of a solver's definition.
    ///
    /// # Errors
    /// Those of [`SolverBuilder::build`].
    pub fn new(param: SolverParameter, device: &D) -> Result<Self> {
        Self::builder(device).build(param)
    }

    /// The definition.
    pub fn param(&self) -> &SolverParameter {
        &self.param
    }

    /// The net being trained.
    pub fn net(&self) -> &Net<T, D> {
        &self.nets.train
    }

    /// The net being trained, to be changed: weights copied in, inputs written.
    pub fn net_mut(&mut self) -> &mut Net<T, D> {
        &mut self.nets.train
    }

    /// The nets it is tested with.
    pub fn test_nets(&self) -> impl ExactSizeIterator<Item = &Net<T, D>> {
        self.nets.tests.iter().map(|test| &test.net)
    }

    /// Updates made so far.
    #[doc(alias = "iter")]
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// The learning rate of the next update.
    #[doc(alias = "GetLearningRate")]
    pub fn learning_rate(&self) -> f64 {
        self.rates.rate_at(self.iteration)
    }

    /// Tells `observer` of all that happens from now on.
    pub fn add_observer(&mut self, observer: impl FnMut(&Event<'_>) + Send + 'static) {
        self.observers.push(Box::new(observer));
    }

    /// Asks `request` after each iteration whether to go on.
    #[doc(alias = "SetActionFunction")]
    pub fn set_action_function(&mut self, request: impl FnMut() -> Action + Send + 'static) {
        self.request = Box::new(request);
    }

    fn tell(&mut self, event: &Event<'_>) {
        for observer in &mut self.observers {
            observer(event);
        }
    }
}

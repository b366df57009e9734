//! Construction of a solver from its definition.

use super::{
    agreement::agree_on_settings,
    event::Action,
    lr_policy::LrPolicy,
    nets::{self, Nets},
    on_nan::OnNan,
    param_state::ParamState,
    processes::Processes,
    registry::MethodRegistry,
    shard_range::ShardRange,
    snapshot::check_writable,
    test::TestKind,
    training_run::{LastDisplay, Observers, Solver},
    update::regularization,
};
use crate::{
    communicator::Communicator,
    data::SourceRegistry,
    device::Device,
    element::{Element, compiled_for},
    error::{Error, Result},
    layer::LayerRegistry,
    limits,
    net::{Net, NetBuilder},
    proto::{self, SolverParameter, SolverState},
};
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Options for building a solver and its nets.
///
/// In the following code, `text` is the solver definition from the example of
/// [`Solver`](super::Solver), with `type: "Plain"` added.
///
/// ```
/// use cortado::{op::UpdateRule, prelude::*, proto::parse_text, solver::MethodRegistry};
///
/// # let text = r#"base_lr: 0.5 lr_policy: "fixed" snapshot_after_train: false type: "Plain"
/// #     net_param {
/// #       layer { type: "DummyData" top: "x" top: "t"
/// #         dummy_data_param { shape { dim: 1 dim: 1 } data_filler { value: 1 } } }
/// #       layer { type: "InnerProduct" bottom: "x" top: "y"
/// #         inner_product_param { num_output: 1 bias_term: false } }
/// #       layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" } }"#;
/// let plain = UpdateRule::Sgd { momentum: 0.0 };
/// let methods = MethodRegistry::standard().with("Plain", move |_| Ok(plain));
/// let builder = Solver::<f32>::builder(&CpuDevice::new()).methods(methods);
/// let mut solver = builder.build(parse_text(text, "solver")?)?;
/// solver.step(1)?;
/// assert_eq!(solver.net().params()[0].blob().item()?, 0.5);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct SolverBuilder<T: Element> {
    nets: NetBuilder<T>,
    methods: MethodRegistry<T>,
    snapshot: Option<PathBuf>,
    communicator: Option<Box<dyn Communicator>>,
    shards: Option<usize>,
    allow_other_shards: bool,
}

impl<T: Element> Solver<T> {
    /// Returns a solver builder for `device`. The builder accepts custom layers, data sources and
    /// solver methods.
    pub fn builder(device: &impl Device) -> SolverBuilder<T> {
        let (nets, methods) = (Net::builder(device), MethodRegistry::standard());
        SolverBuilder {
            nets,
            methods,
            snapshot: None,
            communicator: None,
            shards: None,
            allow_other_shards: false,
        }
    }

    /// Builds the solver that a text file defines. File names in the definition are relative to the
    /// current directory. Without a `snapshot_prefix`, the solver writes snapshots to the directory
    /// of the definition file, with the file's name as the prefix.
    ///
    /// # Errors
    /// Returns any error from [`SolverBuilder::from_file`].
    pub fn from_file(path: impl AsRef<Path>, device: &impl Device) -> Result<Self> {
        Self::builder(device).from_file(path)
    }

    /// Builds the solver that `param` defines.
    ///
    /// # Errors
    /// Returns any error from [`SolverBuilder::build`].
    pub fn new(param: SolverParameter, device: &impl Device) -> Result<Self> {
        Self::builder(device).build(param)
    }
}

impl<T: Element> SolverBuilder<T> {
    /// Sets the registry that creates the solver method; the default is
    /// [`MethodRegistry::standard`].
    #[must_use]
    pub fn methods(self, methods: MethodRegistry<T>) -> Self {
        Self { methods, ..self }
    }

    /// Sets the registry that creates layers; the default is [`LayerRegistry::standard`].
    #[must_use]
    pub fn layers(self, layers: LayerRegistry<T>) -> Self {
        Self { nets: self.nets.registry(layers), ..self }
    }

    /// Sets the registry that opens data sources; the default is [`SourceRegistry::default`].
    #[must_use]
    pub fn sources(self, sources: SourceRegistry) -> Self {
        Self { nets: self.nets.sources(sources), ..self }
    }

    /// Makes the solver resume from the solver state file `snapshot`, like [`Solver::restore`]. If
    /// the definition has no `random_seed`, the solver uses the seed in the snapshot.
    #[must_use]
    pub fn resume(self, snapshot: impl AsRef<Path>) -> Self {
        Self { snapshot: Some(snapshot.as_ref().into()), ..self }
    }

    /// Connects the solver to the solvers of other processes, which train together. By default, the
    /// solver trains alone. The number of processes is a power of two.
    ///
    /// Every process calls the same methods of its solver in the same order: the methods that
    /// train, test or write snapshots exchange data with the other processes. Process 0 writes the
    /// snapshots. If the action function of one process returns an [`Action`], all processes take
    /// this action. After an error, the solver leaves the run, and the other processes fail with
    /// [`Error::Communication`].
    ///
    /// ```
    /// use cortado::{communicator::ThreadCommunicator, prelude::*, proto::parse_text};
    /// use std::thread;
    ///
    /// const TEXT: &str = r#"base_lr: 0.5 lr_policy: "fixed" snapshot_after_train: false
    ///     net_param {
    ///       layer { name: "data" type: "Data" top: "x" top: "label"
    ///         data_param { source: "digits:train?count=64" batch_size: 4 } }
    ///       layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
    ///         inner_product_param { num_output: 10 } }
    ///       layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" } }"#;
    /// let train = |communicator| -> Result<Vec<f32>> {
    ///     let builder = Solver::<f32>::builder(&CpuDevice::new()).communicator(communicator);
    ///     let mut solver = builder.shards(4).build(parse_text(TEXT, "solver")?)?;
    ///     solver.step(3)?;
    ///     solver.net().params()[0].blob().to_vec()
    /// };
    /// let weights = |processes| -> Vec<Vec<f32>> {
    ///     let group = ThreadCommunicator::group(processes);
    ///     let threads: Vec<_> = group.into_iter().map(|c| thread::spawn(move || train(c))).collect();
    ///     threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    /// };
    /// assert_eq!(weights(1)[0], weights(2)[1]); // bit-identical for any number of processes
    /// ```
    #[must_use]
    pub fn communicator(self, communicator: impl Communicator + 'static) -> Self {
        Self { communicator: Some(Box::new(communicator)), ..self }
    }

    /// Sets the number of shards, which is a power of two and at least the number of processes. The
    /// default is the number of shards in the snapshot from which the solver
    /// [resumes](Self::resume), or else the number of processes.
    ///
    /// Each shard has a train net with its own batches. The gradient of an iteration is the mean over
    /// the shards, so `shards` multiplies the effective batch size. Results depend on the number of
    /// shards, but not on the number of processes.
    #[must_use]
    pub fn shards(self, shards: usize) -> Self {
        Self { shards: Some(shards), ..self }
    }

    /// Sets whether the solver may resume from a snapshot of a run with another number of shards. The
    /// default is `false`. The data layers go on with the first records that the earlier run did not
    /// use, but the results differ from those of the earlier run.
    #[must_use]
    pub fn allow_other_shards(self, allow: bool) -> Self {
        Self { allow_other_shards: allow, ..self }
    }

    /// Builds the solver that a text file defines, like [`Solver::from_file`].
    ///
    /// # Errors
    /// Returns [`Error::Io`], [`Error::Parse`], and any error from [`build`](Self::build) with the
    /// file name added.
    pub fn from_file(self, path: impl AsRef<Path>) -> Result<Solver<T>> {
        let path = path.as_ref();
        let result = self.build(read_definition(path)?);
        result.map_err(|error| error.context(path.display().to_string()))
    }

    /// Builds the solver that `param` defines, and the solver's nets.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] for an invalid definition, an invalid number of shards or
    /// processes, and processes that do not have the same definition, weights and settings. Returns
    /// any error from building the nets,
    /// and any error from [`Solver::restore`] for a solver that [resumes](Self::resume).
    pub fn build(self, param: SolverParameter) -> Result<Solver<T>> {
        compiled_for!(T, fn(SolverBuilder<T>, SolverParameter) -> Result<Solver<T>> = SolverBuilder::construct)(
            self, param,
        )
    }

    fn construct(self, param: SolverParameter) -> Result<Solver<T>> {
        let mut param = proto::log_changes(proto::upgrade::solver(param), "solver")?;
        if param.iter_size() < 1 || param.average_loss() < 1 {
            return Err(Error::InvalidData("iter_size and average_loss must be positive".into()));
        }
        if param.base_lr.is_none() {
            log::warn!("solver: base_lr is missing, so the learning rate is 0");
        } else if param.base_lr().is_nan() {
            log::warn!("solver: base_lr is NaN");
        }
        let state = self.snapshot.as_ref().map(proto::read_solver_state).transpose()?;
        if param.random_seed() < 0 {
            let run = state.as_ref().and_then(|state| state.run.as_ref());
            param.random_seed = run.and_then(|run| run.random_seed).or(param.random_seed);
        }
        let mut processes = match self.communicator {
            Some(communicator) => Processes::new(communicator)?,
            None => Processes::single(),
        };
        let shards = match self.shards {
            Some(shards) => shards,
            None => snapshot_shards(state.as_ref())?.unwrap_or(processes.size()),
        };
        let shards = ShardRange::new(shards, &processes)?;
        let seed =
            agree_on_settings::<T>(&mut processes, &param, shards.count, nets::seed(&param))?;
        let method = self.methods.make(&param)?;
        let lr_policy = LrPolicy::new(&param)?;
        let regularization = regularization(&param)?;
        TestKind::new(&param)?;
        let nets = Nets::new(&param, self.nets, seed, shards)?;
        let history = ParamState::new(&nets.train, method.histories())?;
        if processes.rank() == 0 {
            check_writable(&param, &nets.train)?;
        }
        let mut solver = Solver {
            param,
            lr_policy,
            regularization,
            nets,
            processes,
            shards,
            allow_other_shards: self.allow_other_shards,
            method,
            state: history,
            iteration: 0,
            observers: Observers::default(),
            action_function: Box::new(|| Action::Continue),
            last_display: LastDisplay {
                time: Instant::now(),
                iteration: 0,
                data_wait: Duration::ZERO,
                process_wait: Duration::ZERO,
                exchange_time: Duration::ZERO,
            },
            on_nan: OnNan::default(),
            warned: false,
            snapshot_failed: false,
            states_before_tests: None,
            stopped: false,
        };
        if let (Some(state), Some(path)) = (&state, &self.snapshot) {
            solver.resume(state, path)?;
        }
        solver.agree_on_nets()?;
        Ok(solver)
    }
}

/// Returns the number of shards of the run that wrote a snapshot; `None` for Caffe's snapshots.
fn snapshot_shards(state: Option<&SolverState>) -> Result<Option<usize>> {
    let Some(run) = state.and_then(|state| state.run.as_ref()) else { return Ok(None) };
    match usize::try_from(run.shards()) {
        Ok(shards) if (1..=limits::SHARDS).contains(&shards) => Ok(Some(shards)),
        _ => Err(Error::InvalidData(format!(
            "snapshot: expected 1 to {} shards, found {}",
            limits::SHARDS,
            run.shards()
        ))),
    }
}

/// Reads a solver's definition from a text file in Caffe's current or an older format. Derives a
/// missing `snapshot_prefix` from the name of the definition file, and appends this name to a
/// `snapshot_prefix` that is a directory.
///
/// # Errors
/// Returns any error from [`proto::read_solver`].
pub fn read_definition(path: impl AsRef<Path>) -> Result<SolverParameter> {
    let path = path.as_ref();
    let mut param = proto::read_solver(path)?;
    let stem = path.file_stem().unwrap_or_default();
    let prefix = match param.snapshot_prefix.as_deref() {
        None | Some("") => path.with_extension(""),
        Some(prefix) if Path::new(prefix).is_dir() => Path::new(prefix).join(stem),
        Some(prefix) => prefix.into(),
    };
    param.snapshot_prefix = Some(prefix.to_string_lossy().into_owned());
    Ok(param)
}

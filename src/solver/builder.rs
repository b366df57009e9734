//! Construction of a solver from its definition.

use super::{
    event::Action,
    lr_policy::LrPolicy,
    nets::Nets,
    on_nan::OnNan,
    param_state::ParamState,
    registry::MethodRegistry,
    snapshot::check_writable,
    training_run::{LastDisplay, Observers, Solver},
    update::regularization,
};
use crate::{
    data::SourceRegistry,
    device::Device,
    element::{Element, compiled_for},
    error::{Error, Result},
    layer::LayerRegistry,
    net::{Net, NetBuilder},
    proto::{self, SolverParameter},
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
}

impl<T: Element> Solver<T> {
    /// Returns a solver builder for `device`. The builder accepts custom layers, data sources and
    /// solver methods.
    pub fn builder(device: &impl Device) -> SolverBuilder<T> {
        let (nets, methods) = (Net::builder(device), MethodRegistry::standard());
        SolverBuilder { nets, methods, snapshot: None }
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
    /// Returns [`Error::InvalidData`] for an invalid definition, any error from building the nets,
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
        let method = self.methods.make(&param)?;
        let lr_policy = LrPolicy::new(&param)?;
        let regularization = regularization(&param)?;
        let nets = Nets::new(&param, self.nets)?;
        let history = ParamState::new(&nets.train, method.histories())?;
        check_writable(&param, &nets.train)?;
        let mut solver = Solver {
            param,
            lr_policy,
            regularization,
            nets,
            method,
            state: history,
            iteration: 0,
            observers: Observers::default(),
            action_function: Box::new(|| Action::Continue),
            last_display: LastDisplay {
                time: Instant::now(),
                iteration: 0,
                data_wait: Duration::ZERO,
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
        Ok(solver)
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

//! From a definition to a solver.

use super::{
    Action, LrPolicy, MethodRegistry, Shown, Solver, nets::Nets, snapshot, param_state::ParamState,
    update,
};
use crate::{
    data::SourceRegistry,
    device::Device,
    element::Element,
    error::{Error, Result},
    layer::LayerRegistry,
    net::{Net, NetBuilder},
    proto::{self, SolverParameter},
};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// How to build a solver and its nets.
pub struct SolverBuilder<T: Element, D: Device> {
    nets: NetBuilder<T, D>,
    methods: MethodRegistry<T, D>,
}

impl<T: Element, D: Device> SolverBuilder<T, D> {
    pub(super) fn new(device: &D) -> Self {
        Self { nets: Net::builder(device), methods: MethodRegistry::standard() }
    }

    /// Makes the method with this registry instead of the standard one.
    #[must_use]
    pub fn methods(self, methods: MethodRegistry<T, D>) -> Self {
        Self { methods, ..self }
    }

    /// Makes layers with this registry instead of the standard one.
    #[must_use]
    pub fn layers(self, layers: LayerRegistry<T, D>) -> Self {
        Self { nets: self.nets.registry(layers), ..self }
    }

    /// Finds records with these instead of the standard sources.
    #[must_use]
    pub fn sources(self, sources: SourceRegistry) -> Self {
        Self { nets: self.nets.sources(sources), ..self }
    }

    /// Builds the solver of a definition in a text file, as [`Solver::from_file`] says.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Parse`]; those of [`build`](Self::build), with the file's name.
    pub fn from_file(self, path: impl AsRef<Path>) -> Result<Solver<T, D>> {
        let path = path.as_ref();
        let built = self.build(read_definition(path)?);
        built.map_err(|error| error.context(path.display().to_string()))
    }

    /// Builds the solver and the nets of a definition.
    ///
    /// # Errors
    /// [`Error::InvalidData`] if the definition makes no solver; those of the nets.
    pub fn build(self, param: SolverParameter) -> Result<Solver<T, D>> {
        let param = proto::logged(proto::upgrade::solver(param), "solver")?;
        if param.iter_size() < 1 || param.average_loss() < 1 {
            return Err(Error::InvalidData("iter_size and average_loss must be positive".into()));
        }
        let method = self.methods.make(&param)?;
        let rates = LrPolicy::new(&param)?;
        let regularization = update::regularization(&param)?;
        let nets = Nets::new(&param, self.nets)?;
        let state = ParamState::new(&nets.train, method.histories())?;
        snapshot::check_writable(&param, &nets.train)?;
        Ok(Solver {
            param,
            rates,
            regularization,
            nets,
            method,
            state,
            iteration: 0,
            observers: Vec::new(),
            request: Box::new(|| Action::Continue),
            shown: Shown { at: Instant::now(), iteration: 0, waited: Duration::ZERO },
            stopped: false,
        })
    }
}

/// Reads a solver's definition from a text file of any age; without a `snapshot_prefix`, or with a
/// folder as one, the file's own name completes it.
///
/// # Errors
/// Those of [`proto::read_solver`].
pub fn read_definition(path: &Path) -> Result<SolverParameter> {
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

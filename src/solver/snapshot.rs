//! Snapshots of a training run.

use super::{Event, Solver};
use crate::{
    device::Device,
    element::Element,
    error::{Error, Result},
    net::Net,
    proto::{self, NetParameter, SolverParameter, SolverState, solver_parameter::SnapshotFormat},
};
use std::path::{Path, PathBuf};

impl<T: Element, D: Device> Solver<T, D> {
    /// Writes the weights to `<prefix>_iter_<n>.caffemodel` and the solver's state to
    /// `….solverstate`, with `.h5` behind both if the `snapshot_format` is HDF5; returns both paths.
    /// Either file appears whole or not at all, the weights first.
    ///
    /// # Errors
    /// [`Error::Io`] names the file; those of the device.
    #[doc(alias = "Snapshot")]
    pub fn snapshot(&mut self) -> Result<(PathBuf, PathBuf)> {
        let stem = format!("{}_iter_{}", self.param.snapshot_prefix(), self.iteration);
        let hdf5 = self.param.snapshot_format() == SnapshotFormat::Hdf5;
        let end = if hdf5 { ".h5" } else { "" };
        let model = PathBuf::from(format!("{stem}.caffemodel{end}"));
        let state = PathBuf::from(format!("{stem}.solverstate{end}"));
        let mut trained = self.trained()?;
        if hdf5 {
            self.nets.train.strip_shared_params(&mut trained);
        }
        proto::write_trained_net(&model, &trained)?;
        proto::write_solver_state(&state, &self.state_of(&model)?)?;
        let iteration = self.iteration;
        self.tell(&Event::Snapshot { iteration, model: &model, state: &state });
        Ok((model, state))
    }

    /// Goes on from a snapshot: reads the solver's state, and the weights it names, which may also
    /// lie beside it.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::InvalidData`] for files that cannot be read, or are of another type of
    /// solver; [`Error::Shape`] if they are of another net. The message names both files.
    #[doc(alias = "Restore")]
    pub fn restore(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let state = proto::read_solver_state(path)?;
        self.resume(&state, path).map_err(|error| error.context(path.display().to_string()))
    }

    fn resume(&mut self, state: &SolverState, path: &Path) -> Result<()> {
        let negative = |_| Error::InvalidData(format!("a state after {} iterations", state.iter()));
        let iteration = usize::try_from(state.iter()).map_err(negative)?;
        // All that may be wrong is read before anything changes.
        let history = self.state.read_history(&self.nets.train, &state.history)?;
        if let Some(model) = state.learned_net.as_deref().filter(|model| !model.is_empty()) {
            let model = beside(path, Path::new(model));
            let weights = proto::read_trained_net(&model)?;
            let set = self.set_trained(&weights);
            set.map_err(|error| error.context(model.display().to_string()))?;
        }
        self.state.set_history(history);
        self.iteration = iteration;
        Ok(())
    }

    /// The weights as a message; where there are masters, these.
    fn trained(&self) -> Result<NetParameter> {
        let net = &self.nets.train;
        let mut message = net.to_proto(self.param.snapshot_diff())?;
        self.state.put_masters(net, &mut message)?;
        Ok(message)
    }

    fn set_trained(&mut self, weights: &NetParameter) -> Result<()> {
        let net = &mut self.nets.train;
        net.copy_some_from(weights)?;
        self.state.set_masters(net, weights)
    }

    /// The solver's state as a message that names the weights' file.
    fn state_of(&self, model: &Path) -> Result<SolverState> {
        let too_many = || Error::InvalidData("more iterations than a snapshot can count".into());
        Ok(SolverState {
            iter: Some(i32::try_from(self.iteration).map_err(|_| too_many())?),
            learned_net: Some(model.to_string_lossy().into_owned()),
            history: self.state.history()?,
            // As many as the last update's rate had taken.
            current_step: Some(self.rates.steps(self.iteration.saturating_sub(1))),
        })
    }
}

/// The model that a state names: where it says, else beside the state.
fn beside(state: &Path, model: &Path) -> PathBuf {
    let beside = state.parent().zip(model.file_name()).map(|(folder, file)| folder.join(file));
    beside.filter(|beside| !model.exists() && beside.exists()).unwrap_or_else(|| model.into())
}

/// Fails early if snapshots could not be written.
pub(super) fn check_writable<T: Element, D: Device>(
    param: &SolverParameter,
    net: &Net<T, D>,
) -> Result<()> {
    if param.snapshot() <= 0 && !param.snapshot_after_train() {
        return Ok(());
    }
    if param.snapshot_format() == SnapshotFormat::Hdf5 {
        proto::expect_hdf5(net.layer_names())
            .map_err(|error| error.context("snapshot_format HDF5 (or use BINARYPROTO)"))?;
    }
    let prefix = Path::new(param.snapshot_prefix());
    let folder = match prefix.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    tempfile::tempfile_in(folder).map(drop).map_err(|error| {
        Error::io(folder, error).context("cannot write snapshots (snapshot_prefix)")
    })
}

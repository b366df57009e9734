//! Snapshots of a training run.

use super::{Event, Solver};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    net::Net,
    proto::{self, SolverParameter, SolverState, solver_parameter::SnapshotFormat},
};
use std::path::{Path, PathBuf};

impl<T: Element, D: Device> Solver<T, D> {
    /// Writes the weights to `<prefix>_iter_<n>.caffemodel` and the solver's state to
    /// `….solverstate`, with `.h5` behind both if the `snapshot_format` is HDF5; returns both paths.
    /// Either file appears whole or not at all.
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
        let mut trained = self.nets.train.to_proto(self.param.snapshot_diff())?;
        if hdf5 {
            self.nets.train.leave_out_shared(&mut trained);
        }
        proto::write_trained_net(&model, &trained)?;
        proto::write_solver_state(&state, &self.state(&model)?)?;
        self.tell(&Event::Snapshot { model: &model, state: &state });
        Ok((model, state))
    }

    /// Goes on from a snapshot: reads the solver's state, and the weights it names.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Invalid`] for files that cannot be read; [`Error::Shape`] if
    /// they are of another net. The message names both files.
    #[doc(alias = "Restore")]
    pub fn restore(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let within = |error: Error| error.within(path.display().to_string());
        let state = proto::read_solver_state(path)?;
        let history = &mut self.method.history;
        if state.history.len() != history.len() {
            let (theirs, ours) = (state.history.len(), history.len());
            let why = format!("holds the state of {theirs} parameters, this net has {ours}");
            return Err(within(Error::Invalid(why)));
        }
        for (ours, theirs) in history.iter_mut().zip(&state.history) {
            ours.from_proto(theirs, false).map_err(within)?;
        }
        if let Some(model) = state.learned_net.as_deref().filter(|model| !model.is_empty()) {
            self.restore_weights(model).map_err(within)?;
        }
        self.iteration = usize::try_from(state.iter()).unwrap_or(0);
        Ok(())
    }

    fn restore_weights(&mut self, model: &str) -> Result<()> {
        let weights = proto::read_trained_net(model)?;
        let net = &mut self.nets.train;
        let copied = net.copy_trained_from(&weights).map_err(|error| error.within(model))?;
        if copied.is_empty() && net.learnable().len() > 0 {
            let why = "no layer of the net has trained weights in this file";
            return Err(Error::Invalid(why.into()).within(model));
        }
        Ok(())
    }

    fn state(&self, model: &Path) -> Result<SolverState> {
        let history = self.method.history.iter().map(|blob: &Blob<T, D>| blob.to_proto(false));
        let too_many = || Error::Invalid("more iterations than a snapshot can count".into());
        Ok(SolverState {
            iter: Some(i32::try_from(self.iteration).map_err(|_| too_many())?),
            learned_net: Some(model.to_string_lossy().into_owned()),
            history: history.collect::<Result<_>>()?,
            current_step: Some(self.rates.steps(self.iteration)),
        })
    }
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
            .map_err(|error| error.within("snapshot_format HDF5 (or use BINARYPROTO)"))?;
    }
    let prefix = Path::new(param.snapshot_prefix());
    let folder = match prefix.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    tempfile::tempfile_in(folder).map(drop).map_err(|error| {
        Error::io(folder, error).within("cannot write snapshots (snapshot_prefix)")
    })
}

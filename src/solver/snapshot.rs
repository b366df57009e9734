//! Snapshots of a training run: writing and restoring.

use super::{event::Event, training_run::Solver};
use crate::{
    atomic_fs,
    element::{Element, compiled_for},
    error::{Error, Result},
    memory::trace,
    net::Net,
    proto::{
        self, Message, NetParameter, RunState, SolverParameter, SolverState,
        solver_parameter::SnapshotFormat,
    },
};
use std::{
    io,
    path::{Path, PathBuf},
};

impl<T: Element> Solver<T> {
    /// Writes the weights to `<prefix>_iter_<n>.caffemodel` and the solver's state to
    /// `<prefix>_iter_<n>.solverstate`, each atomically. If `snapshot_format` is HDF5, `.h5` is
    /// appended to both file names. Returns the paths of the weights file and the solver state
    /// file.
    ///
    /// # Errors
    /// Returns [`Error::Io`] with the file's name, [`Error::Diverged`] as
    /// [`OnNan`](super::OnNan) describes, and any error that the device returns.
    #[doc(alias = "Snapshot")]
    pub fn snapshot(&mut self) -> Result<(PathBuf, PathBuf)> {
        compiled_for!(T, fn(&mut Solver<T>) -> Result<(PathBuf, PathBuf)> = Solver::write_snapshot)(
            self,
        )
    }

    fn write_snapshot(&mut self) -> Result<(PathBuf, PathBuf)> {
        self.check_weights()?;
        self.write_snapshot_as("")
    }

    /// Writes a snapshot. If a file cannot be written, logs a warning and does not fail: training
    /// goes on, and the next snapshot may succeed.
    pub(super) fn snapshot_or_warn(&mut self) -> Result<()> {
        match self.snapshot() {
            Err(error) if matches!(error.root(), Error::Io { .. }) => {
                self.snapshot_failed = true;
                log::warn!("snapshot of iteration {}: {error}; training goes on", self.iteration);
                Ok(())
            }
            written => written.map(drop),
        }
    }

    /// Writes a snapshot whose file names have `mark` after the prefix.
    pub(super) fn write_snapshot_as(&mut self, mark: &str) -> Result<(PathBuf, PathBuf)> {
        let _span = trace::span("snapshot");
        let stem = format!("{}{mark}_iter_{}", self.param.snapshot_prefix(), self.iteration);
        let hdf5 = self.param.snapshot_format() == SnapshotFormat::Hdf5;
        let suffix = if hdf5 { ".h5" } else { "" };
        let model = PathBuf::from(format!("{stem}.caffemodel{suffix}"));
        let state = PathBuf::from(format!("{stem}.solverstate{suffix}"));
        let run = self.run_state()?;
        let written = match self.processes.rank() {
            0 => self.write_files(&model, &state, run),
            _ => Ok(()),
        };
        self.share_outcome(written)?;
        self.snapshot_failed = false;
        let iteration = self.iteration;
        self.observers.notify(&Event::Snapshot { iteration, model: &model, state: &state });
        Ok((model, state))
    }

    fn write_files(&self, model: &Path, state: &Path, run: RunState) -> Result<()> {
        let mut trained = self.weights_message()?;
        if self.param.snapshot_format() == SnapshotFormat::Hdf5 {
            self.nets.train.strip_shared_params(&mut trained);
        }
        proto::write_trained_net(model, &trained)?;
        proto::write_solver_state(state, &self.state_message(model, run)?)
    }

    /// Sends the outcome of process 0, which has written a snapshot, to all processes, and returns
    /// this outcome. All processes therefore treat a failed write alike: they all continue after an
    /// [`Error::Io`], and all fail after another error.
    fn share_outcome(&mut self, outcome: Result<()>) -> Result<()> {
        if self.processes.size() == 1 {
            return outcome;
        }
        let message = match outcome.as_ref().map_err(Error::root) {
            Ok(()) => String::new(),
            Err(Error::Io { path, source }) => format!("{}\n{source}", path.display()),
            Err(error) => format!("\n{error}"),
        };
        let messages = self.processes.all_gather(message.into_bytes())?;
        let message = messages.first().map(|message| String::from_utf8_lossy(message).into_owned());
        match message.as_deref().unwrap_or_default().split_once('\n') {
            _ if self.processes.rank() == 0 => outcome,
            None => Ok(()),
            Some(("", reason)) => Err(Error::InvalidData(format!("process 0: {reason}"))),
            Some((path, reason)) => {
                Err(Error::io(path, io::Error::other(format!("{reason} (in process 0)"))))
            }
        }
    }

    /// Resumes from a snapshot: reads the solver's state from `path` and the weights from the file
    /// that the solver state names. If the weights file does not exist, `restore` reads a weights
    /// file with the same name in the directory of `path`.
    ///
    /// The results of the resumed run are bit-identical to those of an uninterrupted run: each data
    /// layer continues with the next record, and random numbers depend on the seed and on the
    /// numbers of preceding forward passes, which the snapshot contains. If the definition of the
    /// solver has no `random_seed`, build the solver with
    /// [`SolverBuilder::resume`](super::SolverBuilder::resume), which takes the seed from the
    /// snapshot. A snapshot that Caffe wrote does not contain the positions of data layers, so each
    /// data layer starts with the first record.
    ///
    /// ```no_run
    /// use cortado::prelude::*;
    ///
    /// let mut solver = Solver::<f32>::from_file("solver.prototxt", &CpuDevice::new())?;
    /// solver.restore("snapshots/lenet_iter_5000.solverstate")?;
    /// assert_eq!(solver.iteration(), 5000);
    /// solver.solve()?; // the remaining iterations
    /// # Ok::<(), cortado::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Io`] or [`Error::InvalidData`] if a file cannot be read or belongs to a
    /// different type of solver. Returns [`Error::Shape`] if a file belongs to a different net. The
    /// error message names the solver state file and the weights file. On an error, the weights,
    /// the history and the iteration are unchanged, but data layers may have moved to their
    /// positions in the snapshot.
    #[doc(alias = "Restore")]
    pub fn restore(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let state = proto::read_solver_state(path)?;
        self.resume(&state, path)
    }

    /// Resumes from `state`, which was read from the file `path`.
    pub(super) fn resume(&mut self, state: &SolverState, path: &Path) -> Result<()> {
        let result = self.apply(state, path);
        result.map_err(|error| error.context(path.display().to_string()))
    }

    fn apply(&mut self, state: &SolverState, path: &Path) -> Result<()> {
        let negative_error = |_| Error::InvalidData(format!("negative iteration {}", state.iter()));
        let iteration = usize::try_from(state.iter()).map_err(negative_error)?;
        // Read and check the whole solver state before changing the solver, so that an error leaves
        // the solver unchanged.
        let history = self.state.read_history(&self.nets.train, &state.history)?;
        let model = state.learned_net.as_deref().filter(|model| !model.is_empty());
        let model = model.map(|model| find_model(path, Path::new(model)));
        let weights = model.as_ref().map(proto::read_trained_net).transpose()?;
        match &state.run {
            Some(run) => self.resume_nets(run)?,
            None => log::info!(
                "{}: contains no positions, like Caffe's snapshots; data layers start with \
                 the first record",
                path.display()
            ),
        }
        if let (Some(model), Some(weights)) = (model, weights) {
            let result = self.set_weights(&weights);
            result.map_err(|error| error.context(model.display().to_string()))?;
        }
        self.state.set_history(history);
        self.iteration = iteration;
        Ok(())
    }

    fn resume_nets(&mut self, run: &RunState) -> Result<()> {
        let (expected, found) = (self.shards.count, run.shards());
        if !self.allow_other_shards && usize::try_from(found) != Ok(expected) {
            return Err(Error::InvalidData(format!(
                "shards: expected {expected}, found {found}; train with {found} shards, or allow \
                 other shards (SolverBuilder::allow_other_shards), which changes the results"
            )));
        }
        if run.random_seed.is_some_and(|seed| u64::try_from(seed) != Ok(self.nets.seed)) {
            log::warn!(
                "the snapshot's run has the random seed {}, this solver has {}: random numbers, such as those of \
                 Dropout, differ from those of an uninterrupted run",
                run.random_seed(),
                self.nets.seed
            );
        }
        self.nets.set_state(run, self.shards)
    }

    /// Returns the train net's weights as a protobuf message, with master weights instead of 16-bit
    /// weights.
    fn weights_message(&self) -> Result<NetParameter> {
        let net = &self.nets.train;
        let mut message = net.to_proto(self.param.snapshot_diff())?;
        self.state.write_masters(net, &mut message)?;
        Ok(message)
    }

    fn set_weights(&mut self, weights: &NetParameter) -> Result<()> {
        let net = &mut self.nets.train;
        net.copy_trained_from(weights)?;
        self.state.read_masters(net, weights)
    }

    fn state_message(&self, model: &Path, run: RunState) -> Result<SolverState> {
        let too_many_error =
            || Error::InvalidData("iteration does not fit in a snapshot's 32-bit integer".into());
        Ok(SolverState {
            iter: Some(i32::try_from(self.iteration).map_err(|_| too_many_error())?),
            learned_net: Some(model.to_string_lossy().into_owned()),
            history: self.state.history()?,
            // The number of times that the policy has changed the learning rate up to the last
            // update.
            current_step: Some(self.lr_policy.steps(self.iteration.saturating_sub(1))),
            run: Some(run),
        })
    }

    /// Returns the states of the train nets of all shards and of the test nets.
    fn run_state(&mut self) -> Result<RunState> {
        let own = RunState { net: self.nets.shard_states()?, ..RunState::default() };
        let mut shard = match self.processes.size() {
            1 => own.net,
            _ => {
                let messages = self.processes.all_gather(own.encode_to_vec())?;
                let decode = |message: &Vec<u8>| RunState::decode(&message[..]);
                let states = messages.iter().map(decode).collect::<Result<Vec<_>, _>>();
                let states = states.map_err(|error| Error::InvalidData(error.to_string()))?;
                states.into_iter().flat_map(|state| state.net).collect()
            }
        };
        let mut net = vec![shard.remove(0)];
        match &self.states_before_tests {
            Some(states) => net.extend(states.iter().cloned()),
            None => net.extend(self.nets.test_states()?),
        }
        // The snapshot of a run that is not divided has the same bytes as those of older versions.
        let shards = (self.shards.count > 1).then_some(self.shards.count);
        let shards = shards.and_then(|count| i32::try_from(count).ok());
        Ok(RunState { random_seed: i64::try_from(self.nets.seed).ok(), net, shards, shard })
    }
}

/// Returns the path of the weights file: normally `model`, the path in the solver state. If `model`
/// does not exist, but the directory of the solver state file contains a file of the same name,
/// returns the path of that file.
fn find_model(state: &Path, model: &Path) -> PathBuf {
    let moved_model = state.parent().zip(model.file_name()).map(|(folder, file)| folder.join(file));
    moved_model.filter(|path| !model.exists() && path.exists()).unwrap_or_else(|| model.into())
}

/// Fails if the solver cannot write snapshots. The solver's builder calls `check_writable`, because
/// trained weights would be lost if the snapshot failed after training.
pub(super) fn check_writable<T: Element>(param: &SolverParameter, net: &Net<T>) -> Result<()> {
    if param.snapshot() <= 0 && !param.snapshot_after_train() {
        return Ok(());
    }
    if param.snapshot_format() == SnapshotFormat::Hdf5 {
        proto::check_hdf5_names(net.layer_names())
            .map_err(|error| error.context("snapshot_format HDF5 (or use BINARYPROTO)"))?;
    }
    let prefix = Path::new(param.snapshot_prefix());
    let folder = match prefix.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    atomic_fs::check_writable(folder)
        .map_err(|error| error.context("cannot write snapshots (snapshot_prefix)"))
}

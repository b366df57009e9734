//! The command `cortado train`, which trains a net from a solver definition.

use super::{
    caffe_log::{self, CaffeLog},
    copy_args::CopyArgs,
    device_args::DeviceArgs,
    logger,
    net_state_args::NetStateArgs,
    output::print,
    prefix_lock::PrefixLock,
    processes::Processes,
    progress::Progress,
    resume_command::ResumeCommand,
    run_log::RunLogArgs,
    signals::Signals,
    snapshot_keep::SnapshotKeep,
    trace_args::{TraceArgs, TraceRecording},
};
use clap::{Args, ValueEnum};
use cortado::{
    error::{Error, Result},
    memory::ledger::Ledger,
    proto::{SolverParameter, solver_parameter::SolverMode},
    solver::{OnNan, Solver, read_definition},
};
use log::Level;
use std::{
    path::{Path, PathBuf},
    slice,
};

/// Train a net from a solver definition
///
/// Paths in the solver definition are relative to the current folder, as in Caffe. After Ctrl-C or
/// SIGTERM, training finishes the current iteration, writes a snapshot and stops. A second Ctrl-C
/// ends the process immediately, without a snapshot. On SIGHUP, training writes a snapshot and
/// continues.
///
/// `mpiexec -n P cortado train` trains with P processes, if the command was built with the feature
/// `mpi`. The number of shards defines the result, which is the same for every number of processes.
#[derive(Args)]
#[command(after_help = "Example: cortado train --solver examples/digits/solver.prototxt")]
pub(super) struct Train {
    /// Solver definition, in text format
    #[arg(long, value_name = "FILE")]
    solver: PathBuf,
    /// Solver state to resume from: .solverstate or .solverstate.h5. The extension .h5 may be
    /// omitted
    #[arg(long, value_name = "FILE", conflicts_with = "weights")]
    snapshot: Option<PathBuf>,
    /// Trained weights to start from, in a .safetensors, .npz, .h5 or .caffemodel file, matched by
    /// layer name
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    weights: Vec<PathBuf>,
    /// What to do when the loss or a weight becomes NaN or infinite: stop, with a snapshot whose
    /// name contains _nan; warn once and continue; or ignore it, like Caffe
    #[arg(long, value_name = "EFFECT", value_enum, ignore_case = true, default_value = "stop")]
    on_nan: OnNanArg,
    /// Number of snapshots to keep; older snapshots with the same prefix are removed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    snapshot_keep: Option<u32>,
    /// Number of shards, a power of two and at least the number of processes. Each shard computes
    /// the gradients of its own batches. The default is the number of shards in --snapshot, or else
    /// the number of processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    shards: Option<u32>,
    /// Allow another number of shards than in --snapshot, which changes the results
    #[arg(long, requires = "snapshot")]
    allow_other_shards: bool,
    /// After training, print all transfers and all fallbacks to the host, by kernel and call site
    #[arg(long, alias = "ledger")]
    transfer_report: bool,
    #[command(flatten)]
    copy: CopyArgs,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    run_log: RunLogArgs,
    #[command(flatten)]
    signals: Signals,
    #[command(flatten)]
    net_state: NetStateArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Value of the flag `--on-nan`.
#[derive(Clone, Copy, ValueEnum)]
enum OnNanArg {
    Stop,
    Warn,
    Ignore,
}

impl Train {
    pub(super) fn run(self) -> Result<()> {
        let mut processes = Processes::connect("train")?;
        let recording = self.trace.start(Some(&mut processes));
        let outcome = recording.and_then(|recording| {
            let outcome = self.run_in(&mut processes, &recording);
            recording.finish(outcome)
        });
        processes.finish(outcome)
    }

    /// Reads the solver definition and applies the net-state flags to the train net's state.
    fn definition(&self) -> Result<SolverParameter> {
        let mut param = read_definition(&self.solver)?;
        let file = self.solver.display();
        if param.base_lr.is_none() {
            let reason = "base_lr is missing; set the learning rate, such as `base_lr: 0.01`";
            return Err(Error::InvalidData(reason.into()).context(file.to_string()));
        }
        match param.max_iter {
            None => {
                let reason =
                    "max_iter is missing; set the number of iterations, such as `max_iter: 1000`";
                return Err(Error::InvalidData(reason.into()).context(file.to_string()));
            }
            Some(end) if end <= 0 => log::warn!("{file}: max_iter is {end}, so nothing is trained"),
            Some(_) => {}
        }
        if param.solver_mode.is_some() && param.solver_mode() == SolverMode::Gpu {
            log::info!("{file}: solver_mode is ignored; --device or --gpu chooses the device");
        }
        self.net_state.apply(param.train_state.get_or_insert_default());
        Ok(param)
    }

    fn run_in(self, processes: &mut Processes, recording: &TraceRecording) -> Result<()> {
        let device = processes.device_args(&self.device)?.open()?;
        recording.record_queue(&device)?;
        let is_first = processes.rank() == 0;
        let ledger = self.transfer_report.then(Ledger::new);
        let _ledger_guard = ledger.as_ref().map(Ledger::open);
        let mut builder = processes.connect_solver(Solver::<f32>::builder(&device));
        if let Some(shards) = self.shards {
            builder = builder.shards(usize::try_from(shards).unwrap_or(usize::MAX));
        }
        builder = builder.allow_other_shards(self.allow_other_shards);
        if let Some(state) = &self.snapshot {
            let state = existing_state(state);
            check_solver_state(&state)?;
            log::info!("Resuming from {}", state.display());
            builder = builder.resume(&state);
        }
        let mut solver = builder
            .build(self.definition()?)
            .map_err(|error| error.context(self.solver.display().to_string()))?;
        let _lock = is_first.then(|| PrefixLock::acquire(solver.param().snapshot_prefix()));
        for path in &self.weights {
            log::info!("Finetuning from {}", path.display());
            self.copy.copy(solver.net_mut(), slice::from_ref(path))?;
        }
        solver.set_on_nan(match self.on_nan {
            OnNanArg::Stop => OnNan::Stop,
            OnNanArg::Warn => OnNan::Warn,
            OnNanArg::Ignore => OnNan::Ignore,
        });
        solver.set_action_function(self.signals.install()?);
        // The other processes report the same events.
        if !is_first {
            return solver.solve();
        }
        if let Some(count) = self.snapshot_keep {
            let keep = SnapshotKeep { count: usize::try_from(count).unwrap_or(usize::MAX) };
            solver.add_observer(move |event| keep.observe(event));
        }
        show_progress(&mut solver);
        let mut resume = ResumeCommand::new(processes.size());
        solver.add_observer(move |event| resume.observe(event));
        let failure = self.run_log.start(&mut solver, self.snapshot.is_some())?;
        let outcome = solver.solve();
        if let Some(ledger) = ledger {
            print(&ledger.to_string())?;
        }
        outcome.and_then(|()| failure.result())
    }
}

/// Returns the path of the solver state `state`: with the extension `.h5` if only a file with this
/// extension exists. Some of Caffe's scripts omit the extension `.h5`, although their solvers write
/// HDF5 files.
fn existing_state(state: &Path) -> PathBuf {
    let mut hdf5 = state.as_os_str().to_owned();
    hdf5.push(".h5");
    let hdf5 = PathBuf::from(hdf5);
    if state.exists() || !hdf5.exists() {
        return state.to_owned();
    }
    log::warn!("--snapshot: {} does not exist; using {}", state.display(), hdf5.display());
    hdf5
}

/// Fails if the user passed a caffemodel to `--snapshot` instead of a solver state.
fn check_solver_state(path: &Path) -> Result<()> {
    let name = path.to_string_lossy();
    if path.exists() && (name.ends_with(".caffemodel") || name.ends_with(".caffemodel.h5")) {
        let reason = "contains weights, not a solver state; pass its .solverstate to --snapshot, or \
                      this file to --weights";
        return Err(Error::InvalidData(reason.into()).context(path.display().to_string()));
    }
    Ok(())
}

/// Shows the progress of training: as a progress line or as Caffe's log lines on standard error,
/// and as log lines in the log files. If the log level excludes `Info`, shows no progress.
fn show_progress(solver: &mut Solver<f32>) {
    if logger::shows_progress_line() {
        let mut progress = Progress::new(solver.param().max_iter());
        solver.add_observer(move |event| progress.show(event));
    }
    if log::log_enabled!(target: caffe_log::TARGET, Level::Info) {
        solver.add_observer(|event| CaffeLog.show(event));
    }
}

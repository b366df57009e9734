//! `cortado train`

use super::{
    definition::read_solver, caffe_log::CaffeLog, net_state_args::NetStateArgs, device_args::DeviceArgs, print,
    progress::Progress, run_log::RunLogArgs, signals::Signals,
};
use crate::{
    device::{Device, DeviceJob},
    error::{Error, Result},
    tensor_io::{self, Tensor},
    memory::ledger::Ledger,
    net::Net,
    proto::{self, SolverParameter, solver_parameter::SolverMode},
    solver::Solver,
};
use clap::Args;
use log::Level;
use std::{
    ffi::OsStr,
    io::IsTerminal,
    path::{Path, PathBuf},
};

/// Trains a net as a solver file says
///
/// Files that the solver names are relative to the current folder. Ctrl-C stops after the current
/// iteration and writes a snapshot, as SIGTERM does; a second Ctrl-C leaves at once. A hangup writes
/// a snapshot.
#[derive(Args)]
#[command(after_help = "Example: cortado train --solver examples/digits/solver.prototxt")]
pub(super) struct Train {
    /// Solver definition, in text format
    #[arg(long, value_name = "FILE")]
    solver: PathBuf,
    /// Goes on from this solver state: .solverstate, or .solverstate.h5
    #[arg(long, value_name = "FILE", conflicts_with = "weights")]
    snapshot: Option<PathBuf>,
    /// Starts from these trained weights, copied by layer name: .safetensors, .npz, .h5, or else a
    /// caffemodel
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    weights: Vec<PathBuf>,
    /// At the end, prints what was copied and what fell back to the host, by kernel and call
    #[arg(long)]
    ledger: bool,
    #[command(flatten)]
    records: RunLogArgs,
    #[command(flatten)]
    signals: Signals,
    #[command(flatten)]
    stages: NetStateArgs,
    #[command(flatten)]
    place: DeviceArgs,
}

impl Train {
    pub(super) fn run(self) -> Result<()> {
        self.place.clone().run(self)
    }

    /// The solver's definition with what the flags say of its train net.
    fn definition(&self) -> Result<SolverParameter> {
        let mut param = read_solver(&self.solver)?;
        let file = self.solver.display();
        match param.max_iter {
            None => {
                let why = "no max_iter: say how many updates to make, such as `max_iter: 1000`";
                return Err(Error::InvalidData(why.into()).context(file.to_string()));
            }
            Some(end) if end <= 0 => log::warn!("{file}: no updates are made: max_iter is {end}"),
            Some(_) => {}
        }
        if param.solver_mode.is_some() && param.solver_mode() == SolverMode::Gpu {
            log::info!("{file}: solver_mode does not choose the device: --device or --gpu does");
        }
        self.stages.put(param.train_state.get_or_insert_default());
        Ok(param)
    }
}

impl DeviceJob for Train {
    type Output = ();

    fn run<D: Device>(self, device: D) -> Result<()> {
        let ledger = self.ledger.then(Ledger::new);
        let _open = ledger.as_ref().map(Ledger::open);
        let mut solver = Solver::<f32, D>::new(self.definition()?, &device)
            .map_err(|error| error.context(self.solver.display().to_string()))?;
        if let Some(state) = &self.snapshot {
            log::info!("Resuming from {}", state.display());
            solver.restore(state).map_err(|error| explained(state, error))?;
        }
        for path in &self.weights {
            log::info!("Finetuning from {}", path.display());
            copy_weights(solver.net_mut(), path)?;
        }
        show(&mut solver);
        let failure = self.records.start(&mut solver, self.snapshot.is_some())?;
        solver.set_action_function(self.signals.watch()?);
        let solved = solver.solve();
        if let Some(ledger) = ledger {
            print(&ledger.to_string())?;
        }
        solved.and_then(|()| failure.result())
    }
}

/// Weights are mistaken for a solver's state more often than others.
fn explained(state: &Path, error: Error) -> Error {
    match state.to_string_lossy().contains(".caffemodel") {
        true => {
            let why = "weights without a solver's state: give the .solverstate beside it, or this \
                       to --weights";
            Error::InvalidData(why.into()).context(state.display().to_string())
        }
        false => error,
    }
}

/// Tells of training on standard error: a person at a terminal by a progress line, others by the
/// log, or as little as the log's level asks for.
fn show<D: Device>(solver: &mut Solver<f32, D>) {
    match log::max_level().to_level() {
        Some(Level::Info) if std::io::stderr().is_terminal() => {
            let mut progress = Progress::new(solver.param().max_iter());
            solver.add_observer(move |event| progress.show(event));
        }
        Some(level) if level >= Level::Info => solver.add_observer(|event| CaffeLog.show(event)),
        _ => {}
    }
}

/// Copies trained layers from a file of weights, whose format its name's ending tells; at least one
/// has to match.
pub(super) fn copy_weights<D: Device>(net: &mut Net<f32, D>, path: &Path) -> Result<()> {
    let copied = match path.extension().and_then(OsStr::to_str) {
        Some("safetensors") => copy_tensors(net, &tensor_io::read_safetensors(path)?),
        Some("npz") => copy_tensors(net, &tensor_io::read_npz(path)?),
        _ => net.copy_some_from(&proto::read_trained_net(path)?),
    };
    copied.map_err(|error| error.context(path.display().to_string()))
}

fn copy_tensors<D: Device>(net: &mut Net<f32, D>, tensors: &[(String, Tensor)]) -> Result<()> {
    let copied = net.copy_tensors_from(tensors)?;
    net.check_copied(&copied, tensors.iter().map(|(name, _)| name.as_str()))
}

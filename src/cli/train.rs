//! `cortado train`

use super::{Place, lines::Lines, progress::Progress};
use crate::{
    device::{Device, OnDevice, on_device},
    error::{Error, Result},
    interchange,
    memory::ledger::Ledger,
    net::Net,
    proto,
    solver::{Action, Solver},
};
use clap::Args;
use std::{
    ffi::OsStr,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::exit,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Trains a net as a solver file says
///
/// Files that the solver names are relative to the current folder. Ctrl-C stops after the current
/// iteration and writes a snapshot; a second Ctrl-C leaves at once.
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
    place: Place,
}

impl Train {
    pub(super) fn run(self) -> Result<()> {
        let Place { device, threads } = &self.place;
        on_device(&device.clone(), usize::from(*threads), self)
    }
}

impl OnDevice for Train {
    type Output = ();

    fn run<D: Device>(self, device: D) -> Result<()> {
        log::info!("Use {}, {} host threads.", device.name(), device.workers().count());
        let ledger = self.ledger.then(Ledger::new);
        let _open = ledger.as_ref().map(Ledger::open);
        let mut solver = Solver::<f32, D>::from_file(&self.solver, &device)?;
        if let Some(state) = &self.snapshot {
            log::info!("Resuming from {}", state.display());
            solver.restore(state)?;
        }
        for path in &self.weights {
            log::info!("Finetuning from {}", path.display());
            copy_weights(solver.net_mut(), path)?;
        }
        if std::io::stderr().is_terminal() {
            let mut progress = Progress::new(solver.param().max_iter());
            solver.observe(move |event| progress.show(event));
        } else {
            solver.observe(|event| Lines.show(event));
        }
        solver.ask(stop_on_signal()?);
        let solved = solver.solve();
        if let Some(ledger) = ledger {
            let written = write!(std::io::stdout(), "{ledger}");
            written.map_err(|error| Error::io("standard output", error))?;
        }
        solved
    }
}

/// Copies trained layers from a file of weights, whose format its name's ending tells; at least one
/// has to match.
pub(super) fn copy_weights<D: Device>(net: &mut Net<f32, D>, path: &Path) -> Result<()> {
    let within = |error: Error| error.within(path.display().to_string());
    let copied = match path.extension().and_then(OsStr::to_str) {
        Some("safetensors") => net.copy_tensors_from(&interchange::read_safetensors(path)?),
        Some("npz") => net.copy_tensors_from(&interchange::read_npz(path)?),
        _ => net.copy_trained_from(&proto::read_trained_net(path)?),
    };
    let copied = copied.map_err(within)?;
    if copied.is_empty() {
        let why = "no layer of the net has trained weights in this file";
        return Err(within(Error::Invalid(why.into())));
    }
    Ok(())
}

/// Asks the solver to stop once the process got a signal; a second signal ends the process.
fn stop_on_signal() -> Result<impl FnMut() -> Action + Send + 'static> {
    static STOP: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| {
        if STOP.swap(true, Relaxed) {
            exit(130);
        }
    })
    .map_err(|error| Error::Invalid(format!("cannot watch for signals: {error}")))?;
    Ok(|| if STOP.load(Relaxed) { Action::Stop } else { Action::Continue })
}

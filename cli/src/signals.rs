//! Signal handling of a training run: the effects of SIGINT, SIGTERM and SIGHUP.

use clap::{Args, ValueEnum};
use cortado::{
    error::{Error, Result},
    solver::Action,
};
#[cfg(unix)]
use signal_hook::consts::SIGHUP;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};
use std::{
    ffi::c_int,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Command-line flags that select the effects of SIGINT and SIGHUP.
#[derive(Args)]
pub(super) struct Signals {
    /// Effect of Ctrl-C
    #[arg(long, value_name = "EFFECT", value_enum, ignore_case = true, default_value = "stop")]
    sigint_effect: Effect,
    /// Effect of SIGHUP, which the process receives when its terminal is closed
    #[cfg(unix)]
    #[arg(long, value_name = "EFFECT", value_enum, ignore_case = true, default_value = "snapshot")]
    sighup_effect: Effect,
}

/// Effect of a signal on a training run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Effect {
    /// Ignore the signal
    None,
    /// After the current iteration, write a snapshot and stop
    Stop,
    /// After the current iteration, write a snapshot and continue
    Snapshot,
}

/// Signal with an installed handler: whether the process has received the signal, and the signal's
/// effect.
struct HandledSignal {
    received: Arc<AtomicBool>,
    effect: Effect,
}

impl Signals {
    /// Installs handlers for SIGINT, SIGTERM and SIGHUP. Returns a closure that the solver polls
    /// for the action that the received signals request.
    ///
    /// SIGTERM always has the effect `Stop`. A second SIGINT or SIGTERM ends the process at once if
    /// the solver has not yet reacted to the first signal.
    pub(super) fn install(&self) -> Result<impl FnMut() -> Action + Send + 'static> {
        let signals = [
            (SIGINT, self.sigint_effect),
            (SIGTERM, Effect::Stop),
            #[cfg(unix)]
            (SIGHUP, self.sighup_effect),
        ];
        let handlers =
            signals.into_iter().map(|(signal, effect)| HandledSignal::new(signal, effect));
        let handlers: Vec<_> = handlers.collect::<io::Result<_>>().map_err(install_error)?;
        Ok(move || {
            let mut actions = handlers.iter().map(HandledSignal::action);
            actions.find(|action| *action != Action::Continue).unwrap_or(Action::Continue)
        })
    }
}

/// Effect of a second SIGINT or SIGTERM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SecondSignal {
    /// End the process at once.
    Exit,
    /// Ignore the signal, because the process is about to remove incomplete files.
    Ignore,
}

/// Installs handlers for SIGINT and SIGTERM, and returns the flag that the handlers set.
pub(super) fn stop_flag(second: SecondSignal) -> Result<Arc<AtomicBool>> {
    let received = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        if second == SecondSignal::Exit {
            // When the shutdown handler handles the first signal, `received` is not yet set, so
            // only a second signal ends the process.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&received))
                .map_err(install_error)?;
        }
        flag::register(signal, Arc::clone(&received)).map_err(install_error)?;
    }
    Ok(received)
}

fn install_error(error: io::Error) -> Error {
    Error::InvalidData(format!("cannot install a signal handler: {error}"))
}

impl HandledSignal {
    fn new(signal: c_int, effect: Effect) -> io::Result<Self> {
        let received = Arc::new(AtomicBool::new(false));
        // The handlers for a signal run in the order of registration. When the shutdown handler
        // handles the first signal, `received` is not yet set, so only a second signal ends the
        // process.
        if effect != Effect::None && [SIGINT, SIGTERM].contains(&signal) {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&received))?;
        }
        flag::register(signal, Arc::clone(&received))?;
        Ok(Self { received, effect })
    }

    fn action(&self) -> Action {
        match self.effect {
            Effect::Stop if self.received.load(Relaxed) => Action::Stop,
            Effect::Snapshot if self.received.swap(false, Relaxed) => Action::Snapshot,
            _ => Action::Continue,
        }
    }
}

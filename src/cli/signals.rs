//! What signals ask of a training run.

use crate::{
    error::{Error, Result},
    solver::Action,
};
use clap::{Args, ValueEnum};
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

/// What each signal does.
#[derive(Args)]
pub(super) struct Signals {
    /// What Ctrl-C does
    #[arg(long, value_name = "EFFECT", value_enum, ignore_case = true, default_value = "stop")]
    sigint_effect: Effect,
    /// What a hangup does, such as of the terminal
    #[cfg(unix)]
    #[arg(long, value_name = "EFFECT", value_enum, ignore_case = true, default_value = "snapshot")]
    sighup_effect: Effect,
}

/// What a signal does.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Effect {
    /// Nothing
    None,
    /// Stops after the current iteration, with a snapshot
    Stop,
    /// Writes a snapshot after the current iteration, and goes on
    Snapshot,
}

/// A signal that is watched for.
struct Watched {
    came: Arc<AtomicBool>,
    effect: Effect,
}

impl Signals {
    /// Asks the solver for what the signals ask that came to this process since the last time.
    ///
    /// SIGTERM stops. A second SIGINT or SIGTERM, while the first waits to be heard, ends the
    /// process at once.
    pub(super) fn watch(&self) -> Result<impl FnMut() -> Action + Send + 'static> {
        let signals = [
            (SIGINT, self.sigint_effect),
            (SIGTERM, Effect::Stop),
            #[cfg(unix)]
            (SIGHUP, self.sighup_effect),
        ];
        let watched = signals.into_iter().map(|(signal, effect)| Watched::new(signal, effect));
        let watched: Vec<_> = watched
            .collect::<io::Result<_>>()
            .map_err(|error| Error::InvalidData(format!("cannot watch for signals: {error}")))?;
        Ok(move || {
            let mut actions = watched.iter().map(Watched::action);
            actions.find(|action| *action != Action::Continue).unwrap_or(Action::Continue)
        })
    }
}

impl Watched {
    fn new(signal: c_int, effect: Effect) -> io::Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        // The handlers of a signal run in this order: the first one sees what the last time left.
        if effect != Effect::None && [SIGINT, SIGTERM].contains(&signal) {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&came))?;
        }
        flag::register(signal, Arc::clone(&came))?;
        Ok(Self { came, effect })
    }

    fn action(&self) -> Action {
        match self.effect {
            Effect::Stop if self.came.load(Relaxed) => Action::Stop,
            Effect::Snapshot if self.came.swap(false, Relaxed) => Action::Snapshot,
            _ => Action::Continue,
        }
    }
}

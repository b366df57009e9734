//! The state that a net is built in: phase, level and stages.

use crate::proto::{NetState, Phase};
use clap::{Args, ValueEnum};

/// A phase as an argument.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PhaseArg {
    Train,
    Test,
}

impl From<PhaseArg> for Phase {
    fn from(when: PhaseArg) -> Self {
        match when {
            PhaseArg::Train => Self::Train,
            PhaseArg::Test => Self::Test,
        }
    }
}

/// What a net is built for, besides its phase.
#[derive(Args)]
pub(super) struct NetStateArgs {
    /// Builds the net for this level; for that of its file if not given
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i32>,
    /// Builds the net for these stages, besides those of its file
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    stage: Vec<String>,
}

impl NetStateArgs {
    /// Adds what was given to a state.
    pub(super) fn put(&self, state: &mut NetState) {
        state.level = self.level.or(state.level);
        state.stage.extend(self.stage.iter().filter(|stage| !stage.is_empty()).cloned());
    }
}

//! Command-line flags for Caffe's net state: phase, level and stages.

use clap::{Args, ValueEnum};
use cortado::proto::{NetState, Phase};

/// Value of the flag `--phase`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PhaseArg {
    Train,
    Test,
}

impl From<PhaseArg> for Phase {
    fn from(phase: PhaseArg) -> Self {
        match phase {
            PhaseArg::Train => Self::Train,
            PhaseArg::Test => Self::Test,
        }
    }
}

/// Command-line flags `--level` and `--stage` of a net state.
#[derive(Args)]
pub(super) struct NetStateArgs {
    /// Level of the net state; default: the level in the definition
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i32>,
    /// Stages of the net state, added to those in the definition
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    stage: Vec<String>,
}

impl NetStateArgs {
    /// Applies the flags `--level` and `--stage` to a net state.
    pub(super) fn apply(&self, state: &mut NetState) {
        state.level = self.level.or(state.level);
        state.stage.extend(self.stage.iter().filter(|stage| !stage.is_empty()).cloned());
    }
}

//! The command `cortado upgrade-solver`, which upgrades a solver definition from Caffe's older
//! formats.

use super::upgrade_net::{read_text, report};
use clap::Args;
use cortado::{
    error::Result,
    proto::{self, upgrade},
};
use std::path::PathBuf;

/// Upgrade a solver definition from any of Caffe's older formats
///
/// IN and OUT may be the same file. Comments in the file are not preserved. Net definitions inside
/// the solver definition are not upgraded.
#[derive(Args)]
#[command(after_help = "Example: cortado upgrade-solver old.prototxt new.prototxt")]
pub(super) struct UpgradeSolver {
    /// Solver definition in text format
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// Output file, written in text format
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// Skip unknown fields, with a warning for each field
    #[arg(long)]
    skip_unknown: bool,
}

impl UpgradeSolver {
    pub(super) fn run(self) -> Result<()> {
        let Self { from, to, skip_unknown } = self;
        let solver = read_text(&from, skip_unknown)
            .map_err(|error| proto::read_solver(&from).err().unwrap_or(error))?;
        let upgraded =
            upgrade::solver(solver).map_err(|error| error.context(from.display().to_string()))?;
        proto::write_text(&to, &upgraded.message)?;
        report(&from, &upgraded.changes)
    }
}

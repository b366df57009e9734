//! `cortado upgrade-net`

use crate::{
    error::{Error, Result},
    proto::{self, upgrade},
};
use clap::Args;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Brings a net of any of Caffe's formats up to date
///
/// Both files may be the same. Comments in a text file are lost.
#[derive(Args)]
#[command(after_help = "Example: cortado upgrade-net old.prototxt new.prototxt")]
pub(super) struct UpgradeNet {
    /// Net definition, in text format; or trained net, in binary format
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// File to write, in the same format
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// Binary format; not needed if the name of IN ends in .caffemodel or .binaryproto
    #[arg(long)]
    binary: bool,
}

impl UpgradeNet {
    pub(super) fn run(self) -> Result<()> {
        let Self { from, to, binary } = self;
        let binary = binary || is_binary(&from);
        let read = if binary { proto::read_binary(&from) } else { proto::read_text(&from) };
        let upgraded =
            upgrade::net(read?).map_err(|error| error.within(from.display().to_string()))?;
        if binary {
            proto::write_binary(&to, &upgraded.message)?;
        } else {
            proto::write_text(&to, &upgraded.message)?;
        }
        report(&from, &upgraded.changes)
    }
}

fn is_binary(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "caffemodel" || end == "binaryproto")
}

/// Prints what was done to a file, if anything.
pub(super) fn report(file: &Path, changes: &[upgrade::Change]) -> Result<()> {
    let file = file.display();
    let print = || {
        let mut out = io::stdout().lock();
        if changes.is_empty() {
            writeln!(out, "{file}: up to date")?;
        }
        changes.iter().try_for_each(|change| writeln!(out, "{file}: {change}"))?;
        out.flush()
    };
    print().map_err(|error: io::Error| Error::io("standard output", error))
}

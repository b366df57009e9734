//! The command `cortado upgrade-net`, which upgrades a net from Caffe's older formats.

use super::output::print;
use clap::Args;
use cortado::{
    error::Result,
    proto::{self, CaffeMessage, UnknownFields, upgrade},
};
use std::path::{Path, PathBuf};

/// Upgrade a net from any of Caffe's older formats
///
/// IN and OUT may be the same file. Comments in a text file are not preserved. Unknown fields in a
/// binary file are preserved.
#[derive(Args)]
#[command(after_help = "Example: cortado upgrade-net old.prototxt new.prototxt")]
pub(super) struct UpgradeNet {
    /// Net definition in text format, or trained net in binary format
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// Output file, written in the format of IN
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// Read IN as binary; implied by the extensions .caffemodel and .binaryproto
    #[arg(long)]
    binary: bool,
    /// Read IN as text, even if its extension is .caffemodel or .binaryproto
    #[arg(long, conflicts_with = "binary")]
    text: bool,
    /// Skip unknown fields, with a warning for each field
    #[arg(long, conflicts_with = "binary")]
    skip_unknown: bool,
}

impl UpgradeNet {
    pub(super) fn run(self) -> Result<()> {
        let Self { from, to, binary, text, skip_unknown } = self;
        let binary = binary || (!text && is_binary(&from));
        let upgrade =
            |net| upgrade::net(net).map_err(|error| error.context(from.display().to_string()));
        let upgraded = if binary {
            let (net, mut unknown) = UnknownFields::read(&from).map_err(|error| {
                // The error of `read_trained_net` names the kind of file that it found.
                proto::read_trained_net(&from).err().unwrap_or(error)
            })?;
            let upgraded = upgrade(net)?;
            upgraded.relocate(&mut unknown);
            unknown.write(&to, &upgraded.message)?;
            upgraded
        } else {
            let net = read_text(&from, skip_unknown)
                .map_err(|error| proto::read_net(&from).err().unwrap_or(error))?;
            let upgraded = upgrade(net)?;
            proto::write_text(&to, &upgraded.message)?;
            upgraded
        };
        report(&from, &upgraded.changes)
    }
}

/// Reads a message from a file in text format. Unknown fields are an error unless `skip_unknown` is
/// true.
pub(super) fn read_text<M>(path: &Path, skip_unknown: bool) -> Result<M>
where
    M: CaffeMessage,
{
    if skip_unknown { proto::read_text_lossy(path) } else { proto::read_text(path) }
}

fn is_binary(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "caffemodel" || end == "binaryproto")
}

/// Prints the changes that an upgrade made to a definition or trained net.
pub(super) fn report(file: &Path, changes: &[upgrade::Change]) -> Result<()> {
    let file = file.display();
    print(&match changes {
        [] => format!("{file}: up to date\n"),
        _ => changes.iter().map(|change| format!("{file}: {change}\n")).collect(),
    })
}

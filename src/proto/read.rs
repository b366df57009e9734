//! Nets and solvers in files of any age.

use std::path::Path;

use log::{info, warn};

use super::{
    NetParameter, read_binary,
    upgrade::{self, Change, Upgraded},
};
#[cfg(feature = "net")]
use super::{SolverParameter, read_text};
use crate::error::Result;

/// Reads a net's definition from a text file of any format that Caffe ever had: as
/// [`read_text`](super::read_text), then upgraded, with a line in the log for each change.
///
/// # Errors
/// Those of [`read_text`](super::read_text) and of [`upgrade::net`], with the file's name.
#[cfg(feature = "net")]
#[doc(alias = "ReadNetParamsFromTextFileOrDie")]
pub fn read_net(path: impl AsRef<Path>) -> Result<NetParameter> {
    let path = path.as_ref();
    logged(upgrade::net(read_text(path)?), &path.display().to_string())
}

/// Reads a trained net from a binary file of any format that Caffe ever had: as [`read_binary`],
/// then upgraded, with a line in the log for each change.
///
/// # Errors
/// Those of [`read_binary`] and of [`upgrade::net`], with the file's name.
#[doc(alias = "ReadNetParamsFromBinaryFileOrDie")]
pub fn read_trained_net(path: impl AsRef<Path>) -> Result<NetParameter> {
    let path = path.as_ref();
    logged(upgrade::net(read_binary(path)?), &path.display().to_string())
}

/// Reads a solver's definition from a text file: as [`read_text`](super::read_text), then upgraded,
/// with a line in the log for each change.
///
/// # Errors
/// Those of [`read_text`](super::read_text) and of [`upgrade::solver`], with the file's name.
#[cfg(feature = "net")]
#[doc(alias = "ReadSolverParamsFromTextFileOrDie")]
pub fn read_solver(path: impl AsRef<Path>) -> Result<SolverParameter> {
    let path = path.as_ref();
    logged(upgrade::solver(read_text(path)?), &path.display().to_string())
}

/// The upgraded message, once the log has what was done; `from` says where it came from.
pub(crate) fn logged<M>(upgraded: Result<Upgraded<M>>, from: &str) -> Result<M> {
    let Upgraded { message, changes, .. } = upgraded.map_err(|error| error.within(from))?;
    for change in changes {
        match change {
            Change::Dropped { .. } => warn!("{from}: {change}"),
            _ => info!("{from}: {change}"),
        }
    }
    Ok(message)
}

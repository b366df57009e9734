//! Nets and solvers in files of any age.

use std::path::Path;

use log::{info, warn};

use super::{
    NetParameter, SolverState, hdf5, read_binary,
    upgrade::{self, Change, Upgraded},
    write_binary,
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

/// Reads a trained net from a file of any format that Caffe ever had: binary, as [`read_binary`],
/// then upgraded, with a line in the log for each change; or HDF5, with the feature `hdf5`, if the
/// name ends in `.h5` or the content says so.
///
/// Of each layer, an HDF5 file has the name and the blobs: `data/<layer>/<index>`, and the gradients
/// in `diff`. A blob that shares another's values is left out there; here it is an empty message.
/// Numbers of any type are read.
///
/// # Errors
/// Those of [`read_binary`] and of [`upgrade::net`], with the file's name. [`Error::InvalidData`](crate::Error::InvalidData) for an
/// HDF5 file, with its name and that of the dataset or group: one that is damaged, is missing, or
/// has no place in this layout; without the feature, for each.
#[doc(alias = "ReadNetParamsFromBinaryFileOrDie")]
pub fn read_trained_net(path: impl AsRef<Path>) -> Result<NetParameter> {
    let path = path.as_ref();
    if hdf5::is_hdf5(path) {
        return hdf5::read_net(path);
    }
    logged(upgrade::net(read_binary(path)?), &path.display().to_string())
}

/// Writes a trained net, whole or not at all: as HDF5 if the name ends in `.h5`, with the feature
/// `hdf5`, else as [`write_binary`] does.
///
/// HDF5 is laid out as [`read_trained_net`] has it, with a group for each layer, so that Caffe and
/// HDF5 since 1.8 read it. `float` stays `float`, and `double` `double`.
///
/// Memory: the net, and up to twice the file.
///
/// # Errors
/// Those of [`write_binary`]. [`Error::InvalidData`](crate::Error::InvalidData) for an HDF5 file whose layers have names that cannot
/// be those of groups, such as with a slash; without the feature, for each.
pub fn write_trained_net(path: impl AsRef<Path>, net: &NetParameter) -> Result<()> {
    let path = path.as_ref();
    if hdf5::is_named(path) { hdf5::write_net(path, net) } else { write_binary(path, net) }
}

/// Reads a solver's state from a binary file, or from one of HDF5 as [`read_trained_net`] does:
/// `iter`, `learned_net`, `current_step` and `history/<index>`.
///
/// # Errors
/// As [`read_trained_net`].
pub fn read_solver_state(path: impl AsRef<Path>) -> Result<SolverState> {
    let path = path.as_ref();
    if hdf5::is_hdf5(path) { hdf5::read_state(path) } else { read_binary(path) }
}

/// Writes a solver's state as [`write_trained_net`] writes a net.
///
/// # Errors
/// As [`write_trained_net`].
pub fn write_solver_state(path: impl AsRef<Path>, state: &SolverState) -> Result<()> {
    let path = path.as_ref();
    if hdf5::is_named(path) { hdf5::write_state(path, state) } else { write_binary(path, state) }
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
    let Upgraded { message, changes, .. } = upgraded.map_err(|error| error.context(from))?;
    for change in changes {
        match change {
            Change::Dropped { .. } => warn!("{from}: {change}"),
            _ => info!("{from}: {change}"),
        }
    }
    Ok(message)
}

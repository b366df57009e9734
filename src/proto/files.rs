//! Files of nets and solver states in Caffe's current and older formats.

use std::path::Path;
#[cfg(feature = "net")]
use std::{fs::File, io::Read};

use log::{info, warn};

use super::{
    binary::{read_binary, write_binary},
    hdf5,
    messages::{NetParameter, SolverState},
    upgrade::{self, Change, Upgraded},
};
#[cfg(feature = "net")]
use super::{messages::SolverParameter, text::read_text};
use crate::error::{Error, Result};

/// Reads a net's definition from a text file in any of Caffe's formats. Upgrades the definition to
/// the current format and logs each change.
///
/// # Errors
/// Returns any error from [`read_text`](super::read_text) and from [`upgrade::net`], with the
/// file's name. The error names the kind of the file's content if the file holds a solver
/// definition, a trained net or a solver state.
#[cfg(feature = "net")]
#[doc(alias = "ReadNetParamsFromTextFileOrDie")]
pub fn read_net(path: impl AsRef<Path>) -> Result<NetParameter> {
    let path = path.as_ref();
    let text = read_text(path).map_err(|error| {
        if read_text::<SolverParameter>(path).is_ok() {
            let expected = "a net definition; pass the net that the solver names";
            return wrong_kind(path, "a solver definition", expected);
        }
        explain_binary(path, error, "a net definition")
    })?;
    log_changes(upgrade::net(text), &path.display().to_string())
}

/// Reads a trained net from a file in any of Caffe's formats. Upgrades a net that comes from a
/// binary file, and logs each change. Reads a file as HDF5 (feature `hdf5`) if the file's name ends
/// in `.h5` or the file starts with the HDF5 signature.
///
/// An HDF5 file stores only the name and the blobs of each layer: values in `data/<layer>/<index>`,
/// gradients in `diff/<layer>/<index>`. A parameter that shares the values of another parameter has
/// no dataset for values; for such a parameter, the function returns a `BlobProto` without values.
/// The datasets of an HDF5 file may have any numeric type.
///
/// ```no_run
/// use cortado::{prelude::*, proto::{read_net, read_trained_net}};
///
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&read_net("deploy.prototxt")?)?;
/// let copied_layers = net.copy_trained_from(&read_trained_net("lenet.caffemodel")?)?;
/// println!("weights of the layers {copied_layers:?}");
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// Returns any error from [`read_binary`] and from [`upgrade::net`], with the file's name. Returns
/// [`Error::InvalidData`](crate::Error::InvalidData) for an HDF5 file in which a dataset or group
/// is damaged, missing or not part of Caffe's layout. The error message names the HDF5 file and the
/// dataset or group. Without the feature `hdf5`, reading an HDF5 file is an error.
#[doc(alias = "ReadNetParamsFromBinaryFileOrDie")]
pub fn read_trained_net(path: impl AsRef<Path>) -> Result<NetParameter> {
    let path = path.as_ref();
    if hdf5::is_hdf5(path) {
        return hdf5::read_net(path);
    }
    let binary = read_binary(path).map_err(|error| {
        if read_binary(path).is_ok_and(|state: SolverState| state.learned_net.is_some()) {
            let expected = "trained weights; pass the caffemodel of the same snapshot";
            return wrong_kind(path, "a solver state", expected);
        }
        explain_text(path, error, "trained weights")
    })?;
    log_changes(upgrade::net(binary), &path.display().to_string())
}

/// Writes a trained net atomically: as HDF5 (feature `hdf5`) if the file name ends in `.h5`,
/// otherwise in binary form like [`write_binary`].
///
/// The documentation of [`read_trained_net`] describes the layout of the HDF5 file. Caffe and HDF5
/// 1.8 or later can read the HDF5 file, which has a group for each layer. The HDF5 file keeps the
/// type of the values, `float` or `double`.
///
/// In addition to the net, writing needs memory of up to twice the file size.
///
/// # Errors
/// Returns any error from [`write_binary`]. Returns
/// [`Error::InvalidData`](crate::Error::InvalidData) for an HDF5 file if a layer's name is not a
/// valid HDF5 group name, for example because of a slash. Without the feature `hdf5`, writing an
/// HDF5 file is an error.
pub fn write_trained_net(path: impl AsRef<Path>, net: &NetParameter) -> Result<()> {
    let path = path.as_ref();
    if hdf5::has_extension(path) { hdf5::write_net(path, net) } else { write_binary(path, net) }
}

/// Reads a solver's state from a file, and detects the file's format like [`read_trained_net`]. An
/// HDF5 file of a solver state has the datasets `iter`, `learned_net`, `current_step` and
/// `history/<index>`, and `run` if cortado wrote the file.
///
/// # Errors
/// Returns any error from [`read_trained_net`].
pub fn read_solver_state(path: impl AsRef<Path>) -> Result<SolverState> {
    let path = path.as_ref();
    if hdf5::is_hdf5(path) {
        return hdf5::read_state(path);
    }
    let mut state: SolverState =
        read_binary(path).map_err(|error| explain_text(path, error, "a solver state"))?;
    for (index, blob) in state.history.iter_mut().enumerate() {
        upgrade::expand_raw_data(blob)
            .map_err(|error| error.context(format!("{}: history {index}", path.display())))?;
    }
    Ok(state)
}

/// Writes a solver's state in the format that [`write_trained_net`] chooses for the file name.
///
/// # Errors
/// Returns any error from [`write_trained_net`].
pub fn write_solver_state(path: impl AsRef<Path>, state: &SolverState) -> Result<()> {
    let path = path.as_ref();
    if hdf5::has_extension(path) {
        hdf5::write_state(path, state)
    } else {
        write_binary(path, state)
    }
}

/// Reads a solver's definition from a text file. Upgrades the solver's definition to the current
/// format and logs each change.
///
/// # Errors
/// Returns any error from [`read_text`](super::read_text) and from [`upgrade::solver`], with the
/// file's name. The error names the kind of the file's content if the file holds a net definition,
/// a trained net or a solver state.
#[cfg(feature = "net")]
#[doc(alias = "ReadSolverParamsFromTextFileOrDie")]
pub fn read_solver(path: impl AsRef<Path>) -> Result<SolverParameter> {
    let path = path.as_ref();
    let text = read_text(path).map_err(|error| {
        if read_text::<NetParameter>(path).is_ok() {
            let expected = "a solver definition; pass a solver that names the net";
            return wrong_kind(path, "a net definition", expected);
        }
        explain_binary(path, error, "a solver definition")
    })?;
    log_changes(upgrade::solver(text), &path.display().to_string())
}

/// Explains why a file cannot be read as text: returns an error that names the file's binary
/// format, or `error` if the format is unknown.
#[cfg(feature = "net")]
fn explain_binary(path: &Path, error: Error, expected: &str) -> Error {
    let trained = |net: NetParameter| !net.layer.is_empty() || !net.layers.is_empty();
    let found = if matches!(error.root(), Error::Io { .. }) {
        return error;
    } else if let Some(kind) = foreign_kind(path) {
        kind
    } else if read_binary(path).is_ok_and(trained) {
        "a trained net in binary form"
    } else if read_binary(path).is_ok_and(|state: SolverState| state.learned_net.is_some()) {
        "a solver state in binary form"
    } else {
        return error;
    };
    wrong_kind(path, found, &format!("{expected} in text format"))
}

/// Returns the kind of a file that contains no protobuf message, detected by the file's first
/// bytes; `None` if the kind is unknown.
#[cfg(feature = "net")]
fn foreign_kind(path: &Path) -> Option<&'static str> {
    let mut start = [0; 20];
    let read_len = File::open(path).and_then(|file| file.take(20).read(&mut start)).ok()?;
    match &start[..read_len] {
        [0x89, b'H', b'D', b'F', ..] => Some("an HDF5 file"),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some("a NumPy array"),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive such as .npz"),
        // A safetensors file starts with the header's length in eight bytes, followed by the JSON
        // header.
        [_, _, _, _, _, _, 0, 0, b'{', ..] => Some("a safetensors file"),
        [0x89, b'P', b'N', b'G', ..] => Some("a PNG image"),
        [0xff, 0xd8, 0xff, ..] => Some("a JPEG image"),
        [.., 0xde, 0xc0, 0xef, 0xbe] if read_len == 20 => Some("an LMDB database"),
        _ => None,
    }
}

/// Explains why a file cannot be read as a binary message: returns an error that names the kind of
/// the file, or `error` if the kind is unknown.
fn explain_text(path: &Path, error: Error, expected: &str) -> Error {
    #[cfg(feature = "net")]
    if matches!(error.root(), Error::Io { .. }) {
        return error;
    } else if let Some(kind) = foreign_kind(path) {
        return wrong_kind(path, kind, expected);
    } else if read_text::<NetParameter>(path).is_ok() {
        return wrong_kind(path, "a net definition in text format", expected);
    } else if read_text::<SolverParameter>(path).is_ok() {
        return wrong_kind(path, "a solver definition in text format", expected);
    }
    let _ = (path, expected);
    error
}

fn wrong_kind(path: &Path, found: &str, expected: &str) -> Error {
    Error::InvalidData(format!("found {found}, expected {expected}"))
        .context(path.display().to_string())
}

/// Logs each change of an upgrade and returns the upgraded message. `source` names the file or the
/// message in log lines and errors.
pub(crate) fn log_changes<M>(upgraded: Result<Upgraded<M>>, source: &str) -> Result<M> {
    let Upgraded { message, changes, .. } = upgraded.map_err(|error| error.context(source))?;
    for change in changes {
        match change {
            Change::Dropped { .. } => warn!("{source}: {change}"),
            _ => info!("{source}: {change}"),
        }
    }
    Ok(message)
}

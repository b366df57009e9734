//! Stubs of the HDF5 functions for builds without the feature `hdf5`. Every stub returns an error.

use crate::{
    error::{Error, Result},
    proto::messages::{NetParameter, SolverState},
};
use std::path::Path;

pub(in crate::proto) fn read_net(path: &Path) -> Result<NetParameter> {
    Err(unavailable(path))
}

pub(in crate::proto) fn write_net(path: &Path, _net: &NetParameter) -> Result<()> {
    Err(unavailable(path))
}

pub(in crate::proto) fn read_state(path: &Path) -> Result<SolverState> {
    Err(unavailable(path))
}

pub(in crate::proto) fn write_state(path: &Path, _state: &SolverState) -> Result<()> {
    Err(unavailable(path))
}

#[cfg(feature = "net")]
pub(crate) fn write_hdf5_blobs<'a>(
    path: &Path,
    _blobs: impl IntoIterator<Item = (&'a str, &'a crate::proto::BlobProto)>,
) -> Result<()> {
    Err(unavailable(path))
}

#[cfg(feature = "net")]
pub(crate) fn check_hdf5_names<'a>(_layers: impl Iterator<Item = &'a str>) -> Result<()> {
    Err(Error::InvalidData(UNAVAILABLE.into()))
}

const UNAVAILABLE: &str = "this build does not support HDF5; enable the feature `hdf5`";

fn unavailable(path: &Path) -> Error {
    Error::InvalidData(format!("{}: {UNAVAILABLE}", path.display()))
}

//! Definitions of nets and solvers from files that may be one another's.

use crate::{
    error::{Error, Result},
    proto::{self, NetParameter, SolverParameter},
    solver,
};
use std::path::Path;

/// Reads a net's definition.
pub(super) fn read_net(path: &Path) -> Result<NetParameter> {
    proto::read_net(path).map_err(|error| match proto::read_solver(path) {
        Ok(_) => mistaken(path, "a solver's definition, not a net's: give the net that it names"),
        Err(_) => error,
    })
}

/// Reads a solver's definition.
pub(super) fn read_solver(path: &Path) -> Result<SolverParameter> {
    solver::read_definition(path).map_err(|error| match proto::read_net(path) {
        Ok(_) => mistaken(path, "a net's definition, not a solver's: give a solver that names it"),
        Err(_) => error,
    })
}

fn mistaken(path: &Path, why: &str) -> Error {
    Error::InvalidData(why.into()).context(path.display().to_string())
}

//! Readers of net and solver definitions, which report a file that holds the wrong kind of
//! definition.

use cortado::{
    error::{Error, Result},
    proto::{self, NetParameter, SolverParameter},
    solver,
};
use std::path::Path;

/// Reads a net definition, with a specific error if the file holds a solver definition.
pub(super) fn read_net(path: &Path) -> Result<NetParameter> {
    proto::read_net(path).map_err(|error| match proto::read_solver(path) {
        Ok(_) => wrong_kind(
            path,
            "found a solver definition, expected a net definition; pass the net that the solver names",
        ),
        Err(_) => error,
    })
}

/// Reads a solver definition, with a specific error if the file holds a net definition.
pub(super) fn read_solver(path: &Path) -> Result<SolverParameter> {
    solver::read_definition(path).map_err(|error| match proto::read_net(path) {
        Ok(_) => wrong_kind(
            path,
            "found a net definition, expected a solver definition; pass a solver that names the net",
        ),
        Err(_) => error,
    })
}

fn wrong_kind(path: &Path, reason: &str) -> Error {
    Error::InvalidData(reason.into()).context(path.display().to_string())
}

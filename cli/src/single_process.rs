//! The single process of a training run, in a command that was built without MPI.

use super::{device_args::DeviceArgs, launch::Launch};
use cortado::{
    communicator::Communicator,
    error::{Error, Result},
    solver::SolverBuilder,
};

/// A run with one process.
pub(super) struct Processes;

impl Processes {
    /// Checks that this process is the only one of the run.
    ///
    /// # Errors
    /// Fails if a launcher has started several processes. Each process would train alone and
    /// overwrite the snapshots of the others.
    pub(super) fn connect(subcommand: &str) -> Result<Self> {
        let Some(launch) = Launch::detect() else { return Ok(Self) };
        let error = Error::InvalidData(format!(
            "{subcommand}: the launcher has started {} processes, but this command was built \
             without MPI; install the command with `cargo install cortado-cli --features mpi`",
            launch.size
        ));
        launch.delay_report(&error);
        Err(error)
    }

    pub(super) fn rank(&self) -> usize {
        0
    }

    pub(super) fn size(&self) -> usize {
        1
    }

    pub(super) fn device_args(&self, args: &DeviceArgs) -> Result<DeviceArgs> {
        Ok(args.clone())
    }

    pub(super) fn communicator(&mut self) -> Option<&mut dyn Communicator> {
        None
    }

    pub(super) fn connect_solver(&mut self, solver: SolverBuilder<f32>) -> SolverBuilder<f32> {
        solver
    }

    pub(super) fn finish(self, outcome: Result<()>) -> Result<()> {
        outcome
    }
}

//! The processes of a training run, connected by MPI.

use super::{device_args::DeviceArgs, failure_report::report_failure, launch::Launch};
use cortado::{
    communicator::Communicator,
    error::{Error, Result},
    solver::SolverBuilder,
};
use cortado_mpi::{Mpi, MpiCommunicator};
use std::{thread, time::Duration};

/// Time between the report of an error and the end of all processes. In this time, the launcher
/// reads the report from a pipe and prints it. When a process ends the run, MPICH's `mpiexec` drops
/// the output that it has not read yet.
const FORWARD_DELAY: Duration = Duration::from_millis(500);

/// The connection of this process to the other processes of its run. A run with one process has no
/// connection.
pub(super) struct Processes {
    mpi: Option<Mpi>,
    communicator: Option<MpiCommunicator>,
}

impl Processes {
    /// Connects this process to the others that a launcher has started. `subcommand` is part of
    /// error messages.
    ///
    /// # Errors
    /// Fails if the command was built without an MPI library, or with another MPI library than that
    /// of the launcher.
    pub(super) fn connect(subcommand: &str) -> Result<Self> {
        let Some(launch) = Launch::detect() else {
            return Ok(Self { mpi: None, communicator: None });
        };
        let size = launch.size;
        let connection = Mpi::init().map_err(|error| {
            error.context(format!("{subcommand}: cannot connect the {size} processes"))
        });
        let connection = connection.and_then(|(mpi, communicator)| {
            if mpi.size() == size {
                return Ok(Self { mpi: Some(mpi), communicator: Some(communicator) });
            }
            // Without this check, each process would train alone and overwrite the snapshots.
            Err(Error::InvalidData(format!(
                "{subcommand}: expected {size} processes, as the launcher has started, found {} \
                 with the library {}; start the command with the mpiexec of this library, or build \
                 the command with the library of the launcher",
                mpi.size(),
                mpi.library_version()
            )))
        });
        connection.inspect_err(|error| launch.delay_report(error))
    }

    pub(super) fn rank(&self) -> usize {
        self.mpi.as_ref().map_or(0, Mpi::rank)
    }

    pub(super) fn size(&self) -> usize {
        self.mpi.as_ref().map_or(1, Mpi::size)
    }

    /// Returns the device flags of this process: its part of the GPUs or processors of its host.
    pub(super) fn device_args(&self, args: &DeviceArgs) -> Result<DeviceArgs> {
        match &self.mpi {
            Some(mpi) => args.for_process(mpi.host_rank(), mpi.host_size()),
            None => Ok(args.clone()),
        }
    }

    /// Returns the communicator, unless this process is alone or a solver has the communicator.
    pub(super) fn communicator(&mut self) -> Option<&mut dyn Communicator> {
        self.communicator.as_mut().map(|communicator| communicator as _)
    }

    /// Makes the solver train together with those of the other processes.
    pub(super) fn connect_solver(&mut self, solver: SolverBuilder<f32>) -> SolverBuilder<f32> {
        match self.communicator.take() {
            Some(communicator) => solver.communicator(communicator),
            None => solver,
        }
    }

    /// Disconnects this process after its work. If the work has failed, reports the error and ends
    /// all processes of the run.
    ///
    /// # Errors
    /// In a run with one process, returns the error of the work.
    pub(super) fn finish(self, outcome: Result<()>) -> Result<()> {
        drop(self.communicator);
        let Some(mpi) = self.mpi else { return outcome };
        let Err(error) = outcome else { return mpi.finalize() };
        let launch = Launch { rank: mpi.rank(), size: mpi.size() };
        launch.delay_report(&error);
        // The error of an exchange or of the comparison of settings names a process.
        let error = match error.to_string().contains("process ") {
            true => error,
            false => error.context(format!("process {}", launch.rank)),
        };
        report_failure(&error);
        thread::sleep(FORWARD_DELAY);
        mpi.abort(1)
    }
}

//! Communication between the processes of a training run through MPI.
//!
//! [`Mpi`] connects the process to the other processes that `mpiexec` has started. The
//! [`MpiCommunicator`] of the process is a [`Communicator`](cortado::communicator::Communicator), with
//! which a solver trains on all processes.
//!
//! The build script looks for an MPI library of the machine: through the environment variable
//! `MPICC`, or else the program `mpicc`, or else pkg-config. Without a library, the package builds
//! too, but [`Mpi::init`] fails. After the installation of a library,
//! `cargo clean -p cortado-mpi` makes Cargo look for the library again.

mod communicator;
#[cfg(not(mpi_found))]
#[path = "absent_library.rs"]
mod library;
#[cfg(mpi_found)]
mod library;
mod mpi;

pub use communicator::MpiCommunicator;
pub use mpi::Mpi;

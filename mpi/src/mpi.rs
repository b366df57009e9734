//! The connection of this process to the other processes of its run.

use crate::{MpiCommunicator, library::Library};
use cortado::error::{Error, Result};
use std::{
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The connection of this process to the other processes that `mpiexec` has started.
///
/// If a process ends without [`finalize`](Self::finalize), `mpiexec` treats the process as failed
/// and ends the other processes. [`abort`](Self::abort) ends all processes at once.
///
/// ```no_run
/// use cortado::communicator::all_gather;
/// use cortado_mpi::Mpi;
///
/// fn main() -> cortado::Result<()> {
///     let (mpi, mut communicator) = Mpi::init()?;
///     let ranks = all_gather(&mut communicator, &[mpi.rank() as u8])?;
///     println!("process {} of {}: {ranks:?}", mpi.rank(), mpi.size());
///     drop(communicator);
///     mpi.finalize()
/// }
/// ```
pub struct Mpi {
    library: Arc<Library>,
    rank: usize,
    size: usize,
    host_rank: usize,
    host_size: usize,
    /// Makes the type `!Send`, because the thread that initialized MPI must finalize MPI.
    not_send: PhantomData<*const ()>,
}

impl Mpi {
    /// Initializes MPI and returns the connection, and the communicator of this process. If other
    /// code of the program has already initialized MPI, uses this MPI and does not finalize it.
    ///
    /// Call this function in the main thread, before the process starts other threads. The
    /// communicator may then move to another thread.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the package was built without an MPI library, if the
    /// process has called this function before, if MPI cannot reach the other processes, or if the
    /// MPI library supports only one thread.
    pub fn init() -> Result<(Self, MpiCommunicator)> {
        static IS_INITIALIZED: AtomicBool = AtomicBool::new(false);
        if IS_INITIALIZED.swap(true, Relaxed) {
            return Err(failure("already initialized; call Mpi::init once per process"));
        }
        let library = Arc::new(Library::init().map_err(failure)?);
        let [rank, size, host_rank, host_size] = library.places().map_err(failure)?;
        let communicator = MpiCommunicator::new(Arc::clone(&library), rank, size);
        Ok((
            Self { library, rank, size, host_rank, host_size, not_send: PhantomData },
            communicator,
        ))
    }

    /// Returns the index of this process among the processes of the run, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of processes of the run.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the index of this process among the processes of the run on the same host, from 0.
    pub fn host_rank(&self) -> usize {
        self.host_rank
    }

    /// Returns the number of processes of the run on the same host.
    pub fn host_size(&self) -> usize {
        self.host_size
    }

    /// Returns the name and the version of the MPI library, in the words of the library.
    pub fn library_version(&self) -> String {
        self.library.version()
    }

    /// Waits until all processes of the run have reached this call, and ends the connection. Drop
    /// the communicator before this call.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the communicator still exists, or if MPI fails.
    pub fn finalize(self) -> Result<()> {
        if self.has_communicator() {
            return Err(failure("the communicator still exists; drop it before Mpi::finalize"));
        }
        self.library.finalize().map_err(failure)
    }

    /// Ends all processes of the run at once. `mpiexec` returns the exit status `status`, or another
    /// status that is not 0.
    pub fn abort(&self, status: u8) -> ! {
        self.library.abort(status, self.has_communicator())
    }

    fn has_communicator(&self) -> bool {
        Arc::strong_count(&self.library) > 1
    }
}

fn failure(reason: impl Into<String>) -> Error {
    Error::InvalidData(format!("MPI: {}", reason.into()))
}

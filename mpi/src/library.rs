//! The MPI library: calls of the C functions in `shim.c`.
#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_int, c_void},
    process, thread,
    time::{Duration, Instant},
};

unsafe extern "C" {
    fn cortado_mpi_init(thread_level: *mut c_int) -> c_int;
    fn cortado_mpi_places(places: *mut c_int) -> c_int;
    fn cortado_mpi_start(
        peer: c_int,
        send: *const c_void,
        send_length: c_int,
        receive: *mut c_void,
        receive_length: c_int,
    ) -> c_int;
    fn cortado_mpi_test(length: *mut c_int) -> c_int;
    fn cortado_mpi_is_idle(is_idle: *mut c_int) -> c_int;
    fn cortado_mpi_finalize() -> c_int;
    fn cortado_mpi_text_capacity() -> c_int;
    fn cortado_mpi_error_text(code: c_int, text: *mut c_char, length: *mut c_int) -> c_int;
    fn cortado_mpi_version_text(text: *mut c_char, length: *mut c_int) -> c_int;
    fn cortado_mpi_abort(status: c_int) -> c_int;
}

/// `MPI_SUCCESS`, which the MPI standard defines as 0.
const SUCCESS: c_int = 0;

/// Time during which a thread that waits for an exchange polls MPI without a pause. Most exchanges
/// of a few bytes between processes on one host take less than this time.
const POLL: Duration = Duration::from_micros(20);

/// Time during which the thread yields the processor between two polls. While a thread yields, the
/// operating system runs the computing threads of the same core. A thread that sleeps instead
/// resumes late, and each exchange of a training step then takes longer. Two processes on two cores
/// (AMD EPYC of family 26, Open MPI 4.1.4, 32 images per process) train LeNet at 282, 300, 316 and
/// 334 iterations per second if the thread yields for 0.2, 1, 3 and 10 ms. AlexNet and GoogLeNet
/// are as fast with 10 ms as with 0.2 ms.
const YIELD: Duration = Duration::from_millis(10);

/// Pause between two polls, after the time `YIELD`. Only a thread that waits for a slower process
/// waits long enough to pause.
const PAUSE: Duration = Duration::from_micros(50);

/// Longest wait for MPI to release the buffers of a failed exchange.
const RELEASE: Duration = Duration::from_secs(3);

/// The initialized MPI library.
pub(crate) struct Library {
    /// Whether several threads may call MPI at the same time.
    is_concurrent: bool,
}

impl Library {
    /// Initializes MPI. The caller calls this function once per process.
    pub(crate) fn init() -> Result<Self, String> {
        let mut thread_level = 0;
        // SAFETY: the argument points to an int.
        check(unsafe { cortado_mpi_init(&mut thread_level) })?;
        if thread_level == 0 {
            let reason = "the library supports only one thread (MPI_THREAD_FUNNELED), but cortado \
                          needs MPI_THREAD_SERIALIZED; use an MPI library that supports threads";
            return Err(reason.into());
        }
        Ok(Self { is_concurrent: thread_level > 1 })
    }

    /// Returns this process's rank and the number of processes, first among all processes of the
    /// run, then among those on this host.
    pub(crate) fn places(&self) -> Result<[usize; 4], String> {
        let mut places: [c_int; 4] = [0; 4];
        // SAFETY: MPI is initialized, and the argument points to four ints.
        check(unsafe { cortado_mpi_places(places.as_mut_ptr()) })?;
        Ok(places.map(|place| usize::try_from(place).unwrap_or(0)))
    }

    /// Returns the name and the version of the library.
    pub(crate) fn version(&self) -> String {
        // SAFETY: `text` passes a buffer of the capacity that the library requires.
        let text = text(|text, length| unsafe { cortado_mpi_version_text(text, length) });
        // Libraries add details of their build, after a comma or in further lines.
        text.split([',', '\n']).next().unwrap_or_default().replace('\t', " ")
    }

    /// Sends `send` to the process `peer` and receives a message from it. Returns the length of the
    /// message in bytes, which may exceed `receive`; the message is then lost. One thread at a time
    /// calls this function.
    pub(crate) fn exchange(
        &self,
        peer: usize,
        send: &[u8],
        receive: &mut [u8],
    ) -> Result<usize, String> {
        let int = |value: usize| c_int::try_from(value).map_err(|_| format!("{value}: too large"));
        let (peer, send_len, receive_len) = (int(peer)?, int(send.len())?, int(receive.len())?);
        let (source, target) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
        // SAFETY: MPI is initialized and no other exchange is in progress. MPI accesses the two
        // slices, which are borrowed until this function returns; `wait` and `release` return only
        // after MPI's last access.
        let started =
            check(unsafe { cortado_mpi_start(peer, source, send_len, target, receive_len) });
        started.and_then(|()| self.wait()).inspect_err(|_| self.release())
    }

    /// Waits until the exchange in progress is complete, and returns the length of the message from
    /// the peer.
    fn wait(&self) -> Result<usize, String> {
        let start = Instant::now();
        loop {
            let mut length = -1;
            // SAFETY: MPI is initialized, and the argument points to an int.
            check(unsafe { cortado_mpi_test(&mut length) })?;
            if let Ok(length) = usize::try_from(length) {
                return Ok(length);
            }
            let waited = start.elapsed();
            if waited > YIELD {
                thread::sleep(PAUSE);
            } else if waited > POLL {
                thread::yield_now();
            }
        }
    }

    /// Waits until MPI no longer accesses the buffers of the failed exchange, because the exchange
    /// borrows these buffers only until it returns. If the wait takes longer than `RELEASE`, ends
    /// all processes.
    fn release(&self) {
        let start = Instant::now();
        while start.elapsed() < RELEASE {
            let mut is_idle = 0;
            // SAFETY: MPI is initialized, and the argument points to an int.
            unsafe { cortado_mpi_is_idle(&mut is_idle) };
            if is_idle != 0 {
                return;
            }
            thread::sleep(PAUSE);
        }
        self.abort(1, false)
    }

    /// Waits for all processes, and finalizes MPI. The caller calls no other function afterwards.
    pub(crate) fn finalize(&self) -> Result<(), String> {
        // SAFETY: MPI is initialized. `Mpi` is the only owner of the library, and does not leave the
        // thread that initialized MPI.
        check(unsafe { cortado_mpi_finalize() })
    }

    /// Ends all processes of the run. `is_busy` says whether another thread may be calling MPI.
    pub(crate) fn abort(&self, status: u8, is_busy: bool) -> ! {
        if self.is_concurrent || !is_busy {
            // SAFETY: MPI is initialized, and accepts this call now.
            unsafe { cortado_mpi_abort(status.into()) };
        }
        // Because this process has not finalized MPI, mpiexec ends the other processes.
        process::exit(status.into())
    }
}

/// Converts the error code that an MPI function returned to a `Result`.
fn check(code: c_int) -> Result<(), String> {
    if code == SUCCESS {
        return Ok(());
    }
    // SAFETY: `text` passes a buffer of the capacity that the library requires.
    let description = text(|text, length| unsafe { cortado_mpi_error_text(code, text, length) });
    let description = description.replace('\n', " ");
    Err(if description.is_empty() { format!("MPI error {code}") } else { description })
}

/// Returns the text that `write` writes to a buffer, with the length of the text.
fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    // SAFETY: the function has no preconditions.
    let capacity = unsafe { cortado_mpi_text_capacity() };
    let mut bytes = vec![0u8; usize::try_from(capacity).unwrap_or(0)];
    let mut length = 0;
    if write(bytes.as_mut_ptr().cast(), &mut length) != SUCCESS {
        return String::new();
    }
    bytes.truncate(usize::try_from(length).unwrap_or(0));
    String::from_utf8_lossy(&bytes).trim_end_matches(['\0', '\n']).into()
}

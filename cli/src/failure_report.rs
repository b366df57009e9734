//! The report of a failed subcommand.

use super::{escape::escape_control, logger};
use cortado::error::Error;
use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Reports the error of a subcommand on standard error and in the log files. Returns the exit status
/// of a failed subcommand.
pub(super) fn report_failure(error: &Error) -> ExitCode {
    let error = escape_control(&error.to_string());
    logger::log_to_files(&error);
    // One write, because `writeln!` writes each part of the line alone, and `mpiexec` may print its
    // own lines between two parts. Ignore a write error, because the exit status still shows that
    // the subcommand failed.
    let _ = io::stderr().write_all(format!("cortado: {error}\n").as_bytes());
    ExitCode::FAILURE
}

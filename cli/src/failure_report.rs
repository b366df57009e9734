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
    // Ignore a write error, because the exit status still shows that the subcommand failed.
    let _ = writeln!(io::stderr(), "cortado: {error}");
    ExitCode::FAILURE
}

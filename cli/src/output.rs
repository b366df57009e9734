//! Output of a command's results to standard output.

use super::escape::escape_lines;
use cortado::error::{Error, Result};
use std::io::{self, Write};

/// Writes `text` to standard output and returns write errors. Escapes control characters other than
/// line breaks, because names in files may contain them.
pub(super) fn print(text: &str) -> Result<()> {
    print_unescaped(&escape_lines(text))
}

/// Writes `text` to standard output without changes and returns write errors.
pub(super) fn print_unescaped(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let outcome = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    outcome.map_err(|error| Error::io("standard output", error))
}

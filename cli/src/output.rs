//! Output of a command's results to standard output.

use cortado::error::{Error, Result};
use std::io::{self, Write};

/// Writes `text` to standard output and returns write errors.
pub(super) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| Error::io("standard output", error))
}

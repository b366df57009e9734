//! The terminal on standard error: whether it can redraw a line, and its width.

use std::{env, io, io::IsTerminal};

/// Width that is assumed for a terminal of unknown width, in characters.
const DEFAULT_WIDTH: usize = 80;

/// Returns whether standard error is a terminal that can redraw a line. A terminal with the type
/// `dumb` cannot.
pub(super) fn can_redraw() -> bool {
    io::stderr().is_terminal() && env::var_os("TERM").is_none_or(|kind| kind != "dumb")
}

/// Returns the number of characters that fit in a line of the terminal without wrapping.
pub(super) fn line_width() -> usize {
    let size = terminal_size::terminal_size_of(io::stderr());
    let width = size.map_or(DEFAULT_WIDTH, |(width, _)| width.0.into());
    // Some terminals wrap a line as soon as its last column is written.
    width.saturating_sub(1)
}
